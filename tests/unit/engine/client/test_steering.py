from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from engine.client.batch import Sequence
from engine.client.drafter import Drafter
from engine.client.steering import LOOKUPS, MODELS, Steering, route_costs
from engine.core.generation import DraftingNow
from engine.core.ids import PeerId
from engine.core.plans import Hop, Route, Span
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.models.layout import ModelFiles
from engine.speculation.controller import Decision, Reason
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.worker_process import DraftOrder
from tests.support.api_backend import tiny_spec
from tests.support.drafting import Echo

COSTS = Costs(
    num_stages=1,
    compute_s=0.5,
    compute_token_s=0.01,
    token_bytes=100,
    bytes_per_s=1e6,
    rtt_s=0.0,
)


class Watch:
    """A clock that a test turns on."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return self.now_s


class Told:
    """A policy that says what a test wants, and remembers what it is told."""

    def __init__(self) -> None:
        self.option = PLAIN
        self.saves_s = 0.0
        self.rounds: list[tuple[Option, float, float]] = []
        self.guesses: list[tuple[Option, int, int]] = []

    def set_costs(self, costs: Costs) -> None:
        pass

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        option = PLAIN if self.option.source in silent else self.option
        return Decision(option, Reason.PAYS, 1.0, self.saves_s)

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        self.rounds.append((option, committed, pytest.approx(round_s)))

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        self.guesses.append((option, guessed, right))

    def disturbed(self, round_s: float) -> None:
        raise AssertionError("no draft got ready")


def sequence() -> Sequence:
    made = Sequence(0, [1, 2, 3, 1], 4, 100, SamplingParams())
    made.draft = Echo()
    return made


def test_plain_rounds_are_timed_and_look_up_guesses_unseen() -> None:
    watch, policy, one = Watch(), Told(), sequence()
    steering = Steering(policy, watch, COSTS)
    for token, at_s in ((2, 1.0), (3, 1.5), (9, 2.5)):
        watch.now_s = at_s
        one.ids.append(token)
        steering.answered(one, 0, 0, 1, is_open=False)
    assert policy.rounds == [(PLAIN, 1.0, 0.5), (PLAIN, 1.0, 1.0)]
    assert policy.guesses == [(LOOKUPS[0], 1, 1), (LOOKUPS[0], 1, 0)]
    assert steering.wanted([one]).is_plain


def test_client_takes_the_lead_where_drafting_pays_and_there_is_something_to_say() -> None:
    watch, policy, one = Watch(), Told(), sequence()
    policy.option = LOOKUPS[1]
    steering = Steering(policy, watch, COSTS)
    one.ids.append(7)  # never seen before
    steering.answered(one, 0, 0, 1, is_open=False)
    assert steering.wanted([one]).is_plain
    one.ids.append(1)
    steering.answered(one, 0, 0, 1, is_open=False)
    assert steering.wanted([one]) == LOOKUPS[1]
    one.leads = True
    steering.takes_lead(one)
    watch.now_s = 3.0
    one.ids.append(2)
    steering.answered(one, 0, 0, 1, is_open=True)
    assert len(policy.rounds) == 1  # what waited for the client's message is no plain round
    steering.begins(one, LOOKUPS[1], 4)
    watch.now_s = 3.25
    one.ids += [3, 1, 2]
    steering.answered(one, 3, 2, 1, is_open=True)
    assert policy.rounds[1:] == [(LOOKUPS[1], 3.0, 0.25)]
    assert policy.guesses[-1] == (LOOKUPS[1], 3, 2)


def test_rounds_of_a_batch_are_told_once_all_have_had_one() -> None:
    watch, policy = Watch(), Told()
    steering = Steering(policy, watch, COSTS)
    rows = [sequence(), sequence()]
    for turn in range(3):
        for place, one in enumerate(rows):
            watch.now_s = turn + place * 0.1 * turn
            steering.answered(one, 0, 0, 2, is_open=False)
    assert [option for option, _, _ in policy.rounds] == [PLAIN, PLAIN]


@pytest.mark.parametrize(("left_tokens", "starts"), [(50, False), (200, True)])
async def test_model_is_started_where_it_promises_more_than_that_takes_and_asked_once_it_is_there(
    left_tokens: int, starts: bool
) -> None:
    files = ModelFiles(tiny_spec(), Path("nowhere"), "nowhere")
    drafter = Drafter(DraftOrder(files, files), Watch())
    policy, one = Told(), sequence()
    policy.option, policy.saves_s = MODELS[1], 0.02
    try:
        steering = Steering(policy, Watch(), COSTS, drafter, lambda: left_tokens)
        assert drafter.is_starting is starts
        assert steering.wanted([one]).is_plain
        for token in (2, 3):
            one.ids.append(token)
            steering.answered(one, 0, 0, 1, is_open=False)
        # What takes long because of the start says nothing of plain rounds.
        assert bool(policy.rounds) is not starts
    finally:
        await drafter.stop()


def test_what_look_up_has_nothing_to_say_of_is_drafted_otherwise_or_not_at_all() -> None:
    policy, one = Told(), sequence()
    policy.option = LOOKUPS[1]
    steering = Steering(policy, Watch(), COSTS)
    assert steering.decision.option == LOOKUPS[1]
    assert steering.when_silent.option.is_plain
    one.ids.append(7)  # never seen before
    steering.answered(one, 0, 0, 1, is_open=False)
    assert steering.wanted([one]).is_plain
    assert steering.now == DraftingNow("ngram", Reason.PAYS.value)


def test_rows_of_a_batch_are_drafted_for_together_and_silent_ones_count_as_wrong() -> None:
    policy, one, other = Told(), sequence(), sequence()
    policy.option = LOOKUPS[1]
    steering = Steering(policy, Watch(), replace(COSTS, batch_size=2))
    one.ids.append(2)  # 3 came after it
    other.ids.append(7)  # never seen before
    for row in (one, other):
        steering.answered(row, 0, 0, 2, is_open=False)
    assert policy.guesses == [(LOOKUPS[0], 1, 0)]
    assert steering.wanted([one, other]) == LOOKUPS[1]
    assert steering.wanted([other]).is_plain
    for row in (one, other):
        row.leads = True
        steering.begins(row, LOOKUPS[1], 4 if row is one else 0)
    steering.answered(one, 2, 1, 2, is_open=True)
    steering.answered(other, 0, 0, 2, is_open=True)
    assert policy.rounds[-1] == (LOOKUPS[1], 1.5, 0.0)
    unseen = (LOOKUPS[0], 1, 0)  # what was said while it decoded plainly
    assert policy.guesses[1:] == [(LOOKUPS[1], 2, 1), unseen, (LOOKUPS[1], 1, 0)]


def test_costs_are_those_of_the_route() -> None:
    stages = tuple(
        StageInfo(
            PeerId(name), span, StageState.ONLINE, 100, 10.0, (), "test",
            decode_row_s=0.01, uplink_bytes_per_s=1e6,
        )
        for name, span in (("a", Span(0, 2)), ("b", Span(2, 4)))
    )  # fmt: skip
    route = Route(tuple(Hop(stage.peer, stage.span) for stage in stages))
    snapshot = SwarmSnapshot("m", 4, stages)
    link_s = {PeerId("a"): 0.02, PeerId("b"): 0.02}
    costs = route_costs(route, snapshot, link_s, 1000, batch_size=3)
    assert costs.num_stages == 2
    assert costs.compute_s == pytest.approx(0.09 + 0.03)
    assert costs.compute_token_s == pytest.approx(0.01)
    assert costs.bytes_per_s == pytest.approx(1e6)
    assert costs.client_rtt_s >= 0
