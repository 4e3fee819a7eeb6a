from __future__ import annotations

import pytest

from engine.client.patience import Patience
from engine.config import ClientConfig
from engine.core.errors import CacheFull, ContextTooLong, NoRoute, PeerUnreachable, StageRefused


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def patience(clock: HandClock) -> Patience:
    return Patience(ClientConfig(max_attempts=3, room_wait_s=10), clock)


def test_error_that_trying_again_cannot_help_is_final(patience: Patience) -> None:
    with pytest.raises(ContextTooLong):
        patience.after(ContextTooLong("too long"), may_recover=True, tried_all=False)


def test_attempts_are_counted_and_spaced_ever_wider(patience: Patience) -> None:
    first = patience.after(PeerUnreachable("gone"), may_recover=False, tried_all=False)
    second = patience.after(PeerUnreachable("gone"), may_recover=False, tried_all=False)
    assert first < second
    with pytest.raises(PeerUnreachable, match=r"gone \(tried 3 times\)"):
        patience.after(PeerUnreachable("gone"), may_recover=False, tried_all=False)


def test_final_error_tells_everything_that_was_tried(patience: Patience) -> None:
    patience.after(StageRefused("No."), may_recover=False, tried_all=False)
    patience.after(NoRoute("Nobody."), may_recover=False, tried_all=False)
    with pytest.raises(PeerUnreachable, match=r"No route worked. No. Then: Nobody."):
        patience.after(NoRoute("Nobody."), may_recover=False, tried_all=False)


def test_news_forgets_earlier_failures(patience: Patience) -> None:
    for _ in range(10):
        patience.after(PeerUnreachable("gone"), may_recover=False, tried_all=False)
        patience.got_on()


@pytest.mark.parametrize("error", [CacheFull("full"), NoRoute("loading")])
def test_room_and_joining_stages_are_waited_for_up_to_the_limit(
    error: CacheFull | NoRoute, patience: Patience, clock: HandClock
) -> None:
    for _ in range(20):
        patience.after(error, may_recover=True, tried_all=False)
        clock.now_s += 0.49
    clock.now_s = 10.0
    for _ in range(2):
        patience.after(error, may_recover=True, tried_all=False)
    with pytest.raises(type(error), match="tried 3 times"):
        patience.after(error, may_recover=True, tried_all=False)


def test_gap_that_nobody_will_close_is_not_waited_for(patience: Patience) -> None:
    for _ in range(2):
        patience.after(NoRoute("Nobody."), may_recover=False, tried_all=False)
    with pytest.raises(NoRoute):
        patience.after(NoRoute("Nobody."), may_recover=False, tried_all=False)
