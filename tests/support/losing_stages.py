"""What happens to a swarm while it answers: lost stages, with one to spare, and links that break."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from engine.client.client import Client
from engine.config import ClientConfig
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import LocalStage, LocalSwarm

SPANS = (Span(0, 1), Span(1, 3), Span(3, 4), Span(0, 4))
"""Three stages in use, and one to spare."""
SPARE = PeerId("s3")
NEW_TOKENS = 24
PROMPTS = [list(range(20, 90)), [5, 6, 7]]
PARAMS = [
    SamplingParams(max_new_tokens=NEW_TOKENS),
    SamplingParams(
        max_new_tokens=NEW_TOKENS,
        temperature=1.0,
        top_p=0.95,
        seed=11,
        repetition_penalty=1.3,
        presence_penalty=0.4,
        frequency_penalty=0.2,
    ),
]
LONG = [token % 500 for token in range(3, 403)]
"""A prompt that takes many passes to prefill."""
PATIENT = ClientConfig(reuse_prefixes=False, room_wait_s=30.0)


class Counted:
    """What stages have computed and replayed since."""

    def __init__(self, swarm: LocalSwarm) -> None:
        self._stages = list(swarm.stages)
        self._before = [
            (s.handler.pace.tokens, s.handler.pace.replayed_tokens) for s in self._stages
        ]

    def computed(self, index: int) -> int:
        return self._stages[index].handler.pace.tokens - self._before[index][0]

    def replayed(self, index: int) -> int:
        return self._stages[index].handler.pace.replayed_tokens - self._before[index][1]


@contextlib.contextmanager
def spared(swarm: LocalSwarm) -> Iterator[LocalSwarm]:
    """Three stages in use, and one to spare that is not announced yet; in the end all are back."""
    swarm.hidden = {SPARE}
    try:
        yield swarm
    finally:
        for stage in swarm.stages:
            swarm.restore(stage.peer)
        swarm.hidden = set()


def at(count: int, action: Callable[[], object]) -> Callable[[int], None]:
    """Do it once, when an answer has `count` tokens or more, which drafts may make several at once."""
    done = False

    def disturb(tokens: int) -> None:
        nonlocal done
        if tokens >= count and not done:
            done = True
            action()

    return disturb


def lose(swarm: LocalSwarm, stage: LocalStage) -> None:
    """A stage is gone, and all that were hidden are announced."""
    swarm.vanish(stage.peer)
    swarm.hidden = set()


class BrokenLinks:
    """Links between stages in use that break again and again, and can be opened again at once."""

    def __init__(self, swarm: LocalSwarm, times: int) -> None:
        self._swarm = swarm
        self._times = times
        self.broken = 0

    def see(self, tokens: int) -> None:
        """The first answer has so many tokens."""
        if tokens >= 5 * (self.broken + 1) and self.broken < self._times:
            pair = [stage.peer for stage in self._swarm.stages[self.broken % 2 :][:2]]
            self._swarm.network.cut(*pair)
            self._swarm.network.heal(*pair)
            self.broken += 1


class Disturbance:
    """A link that breaks, and then a stage that is gone, in whose place others are announced."""

    def __init__(self, swarm: LocalSwarm, client: Client) -> None:
        self._swarm = swarm
        self._client = client
        self._broken = self.is_over = False

    def see(self, tokens: int) -> None:
        """The first answer has so many tokens."""
        (first, *_) = self._client.routes_in_use or (None,)
        if first is None:
            return
        if tokens >= 5 and not self._broken:
            self._broken = True
            ends = (first.first, first.last if len(first.hops) > 1 else self._client.local_peer)
            self._swarm.network.cut(*ends)
            self._swarm.network.heal(*ends)
        elif tokens >= 11 and not self.is_over:
            self.is_over = True
            self._swarm.hidden = set()
            self._swarm.vanish(first.last)
