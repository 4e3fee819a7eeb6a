"""Stages between others that change a draft on its way: nobody else is blamed, and the answer is right."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.client.client import Client
from engine.client.drafting import Drafting
from engine.config import ClientConfig
from engine.core.generation import DraftMode, TokenEvent
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Frame, Kind
from engine.protocol.rows import Row
from tests.support.drafting import Prophet
from tests.support.local_swarm import CLOCK, LocalSwarm, collect, local_swarm

SPANS = (Span(0, 1), Span(1, 3), Span(3, 4), Span(0, 4))
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
PARAMS = SamplingParams(max_new_tokens=16, temperature=0.9, seed=11)
ROOM = 4

pytestmark = pytest.mark.asyncio(loop_scope="module")

Change = Callable[[Row, list[int]], tuple[Row, list[int]]]
"""What becomes of a row that samples; with the ids of prompt and answer."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def swarm(tiny: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(tiny, *SPANS) as swarm:
        yield swarm


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(swarm: LocalSwarm) -> list[TokenEvent]:
    (events,) = await collect(await swarm.add_client("plain"), [PROMPT], [PARAMS])
    return events


def longer(row: Row, truth: list[int]) -> tuple[Row, list[int]]:
    """One more token is drafted, and right."""
    if not 0 < len(row.parents) < ROOM:
        return row, []
    return _with_one_more(row, truth)


def made_up(row: Row, truth: list[int]) -> tuple[Row, list[int]]:
    """The same where nothing was drafted, too."""
    return _with_one_more(row, truth) if len(row.parents) < ROOM else (row, [])


def _with_one_more(row: Row, truth: list[int]) -> tuple[Row, list[int]]:
    end = row.position + row.count
    parents = (*row.parents, len(row.parents) - 1)
    return replace(row, count=row.count + 1, parents=parents), truth[end : end + 1]


def judged(row: Row, truth: list[int]) -> tuple[Row, list[int]]:
    """It shall be verified by probabilities, which the client has not named."""
    weights = np.ones(len(row.parents), "<f2").tobytes()
    return replace(row, mode=DraftMode.DSSD, weights=weights) if row.parents else row, []


def changed(frame: Frame, change: Change, truth: list[int]) -> Frame:
    (row,) = frame.rows
    if row.position + 1 >= len(truth) or row.is_prefill:
        return frame
    row, more = change(row, truth)
    state = len(frame.payload) // len(frame.ids)
    hidden = bytes(frame.payload) + bytes(frame.payload)[-state:] * len(more)
    return replace(
        frame, rows=(row,), payload=hidden, ids=np.append(frame.ids, np.array(more, np.int32))
    )


@pytest.mark.parametrize("change", [longer, judged, made_up])
async def test_last_stage_is_not_blamed_for_what_another_made_of_a_draft(
    swarm: LocalSwarm,
    plain: list[TokenEvent],
    change: Change,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    *stages, spare = swarm.stages
    _, middle, last = stages
    truth = [*PROMPT, *(event.id for event in plain)]
    links = await swarm.node(change.__name__)
    changes = 0

    def send(peer: PeerId, frame: Frame) -> None:
        nonlocal changes
        if frame.kind is Kind.STEP and peer == last.peer:
            other = changed(frame, change, truth)
            changes += other.rows != frame.rows
            frame = other
            # Another way is known from now on.
            swarm.hidden = set() if changes else swarm.hidden
        honest(peer, frame)

    honest = middle.links.send
    monkeypatch.setattr(middle.links, "send", send)
    swarm.hidden = {spare.peer}
    config = ClientConfig(reuse_prefixes=False, speculation="off")
    client = Client(links, swarm, swarm.spec, config, CLOCK)
    drafting = Drafting(lambda: Prophet(truth, right_share=0.8, width=1), ROOM)
    events = [e async for _, e in client.generate([PROMPT], [PARAMS], drafting=drafting)]
    assert changes
    assert [event.id for event in events] == truth[len(PROMPT) :]
    assert client.recoveries.seconds
    # Who changes rows that have no draft is left, with all who may have been it.
    assert bool(client.recoveries.stages_replaced) is (change is made_up)
    for stage in stages:
        assert not links.gate.ban_reason(stage.peer)


async def test_last_stage_is_blamed_where_no_other_but_ours_could_have_been_it(
    swarm: LocalSwarm, plain: list[TokenEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    *stages, whole = swarm.stages
    truth = [*PROMPT, *(event.id for event in plain)]
    links = await swarm.node("alone")

    def send(peer: PeerId, frame: Frame) -> None:
        if frame.kind is Kind.TOKENS:
            frame = replace(frame, rows=tuple(replace(r, accepted=ROOM + 1) for r in frame.rows))
            swarm.hidden = set()
        honest(peer, frame)

    honest = whole.links.send
    monkeypatch.setattr(whole.links, "send", send)
    swarm.hidden = {stage.peer for stage in stages}
    config = ClientConfig(reuse_prefixes=False, speculation="off")
    client = Client(links, swarm, swarm.spec, config, CLOCK)
    drafting = Drafting(lambda: Prophet(truth, width=1), ROOM)
    events = [e async for _, e in client.generate([PROMPT], [PARAMS], drafting=drafting)]
    assert [event.id for event in events] == truth[len(PROMPT) :]
    assert "accepted more" in links.gate.ban_reason(whole.peer)
