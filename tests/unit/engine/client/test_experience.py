"""What a client holds against a stage, and what no stage can talk itself out of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.client.experience import Experience
from engine.client.stopwatch import WINDOW
from engine.config import ClientConfig, SwarmConfig
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop, Route, Span
from engine.core.snapshot import SwarmSnapshot
from engine.models.known import starter_spec
from engine.swarm.handshake import Membership
from engine.swarm.links import Links
from engine.swarm.memory_transport import MemoryNetwork
from tests.support.builders import snapshot, stage_info

ME, STAGE, OTHER = PeerId("me"), PeerId("stage"), PeerId("other")
ROUTE = Route((Hop(STAGE, Span(0, 4)),))
SAID_S, TAKEN_S = 0.02, 0.2
SESSION = SessionId(1)


@dataclass
class HandClock:
    """A clock that the test moves."""

    now_s: float = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def unix_s(self) -> float:
        return self.now_s


@dataclass
class Told:
    """What the stages say now."""

    now: SwarmSnapshot

    def snapshot(self) -> SwarmSnapshot:
        return self.now

    async def refresh(self) -> SwarmSnapshot:
        return self.now


def with_sessions(count: int) -> SwarmSnapshot:
    """The stage, which says how long a row takes, and how many sequences pass through it."""
    said = stage_info(
        STAGE, 0, 4, decode_tokens_per_s=1 / SAID_S, decode_row_s=0.01, sessions=count
    )
    return snapshot(4, said, stage_info(OTHER, 0, 4, decode_tokens_per_s=10))


async def believed_tokens_per_s(
    when_chosen: SwarmSnapshot, while_measured: SwarmSnapshot, own_rows: int
) -> float:
    """What the client believes of the stage after an answer that took ten times what it says."""
    clock, told = HandClock(), Told(when_chosen)
    links = Links(MemoryNetwork().transport(ME), SwarmConfig(), clock, Membership("test"))
    experience = Experience(told, links, starter_spec(), ClientConfig(), clock)
    watch = experience.stopwatch(ROUTE, [SESSION], lambda: {STAGE: own_rows})
    told.now = while_measured
    for token in range(WINDOW + 1):
        clock.now_s += TAKEN_S
        watch.arrived(SESSION, is_last=token == WINDOW)
    found = experience.snapshot().stage(STAGE)
    assert found is not None
    return found.decode_tokens_per_s


async def test_slow_stage_cannot_excuse_itself_by_rows_that_it_tells_of_while_it_is_measured() -> (
    None
):
    believed = await believed_tokens_per_s(with_sessions(0), with_sessions(50), own_rows=1)
    assert believed == pytest.approx(
        await believed_tokens_per_s(with_sessions(0), with_sessions(0), own_rows=1)
    )
    assert believed < 0.5 / SAID_S


async def test_rows_that_it_told_of_when_it_was_chosen_excuse_it() -> None:
    believed = await believed_tokens_per_s(with_sessions(50), with_sessions(50), own_rows=1)
    assert believed == pytest.approx(1 / SAID_S)


async def test_other_rows_of_our_own_excuse_it() -> None:
    believed = await believed_tokens_per_s(with_sessions(0), with_sessions(0), own_rows=51)
    assert believed == pytest.approx(1 / SAID_S)
