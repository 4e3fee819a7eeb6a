"""A stage goes on serving whatever a stranger sends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import HopMessage, OpenReply, Sessions, message_frame, parse
from engine.protocol.prefixes import digests
from engine.protocol.recovery import ROWS_MISSING, HoldRequest, Notice
from engine.protocol.rows import Row, RowFlags
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.strangers import (
    CAPACITY,
    SESSION,
    STAGE,
    Asking,
    ask_to_open,
    open_session,
    sequence,
    serves_others,
    step,
    until_empty,
)
from tests.support.tiny_models import VOCAB_SIZE

# One worker for all tests: starting it takes longer than any of them.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_swarm(tiny: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(tiny, Span(0, 4)) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared_swarm: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    yield shared_swarm
    await until_empty(shared_swarm)  # the next test uses the same session ids


async def test_stranger_gets_nothing_of_what_others_compute_or_have_left(swarm: LocalSwarm) -> None:
    owner, mallory = await open_session(swarm, "owner", 500), await swarm.node("mallory")
    owner.send(STAGE, step(0, [1] * 10, session=500))
    secret = list(range(5, 75))
    await collect(await swarm.add_client("left"), [secret], [SamplingParams(max_new_tokens=1)])
    asked = {"prefix_digests": tuple(digests(secret))}
    reply = await ask_to_open(
        mallory,
        sequence(501, 100, fork_of=500, fork_tokens=8),
        sequence(502, 100, **asked),
        sequence(503, 100, fork_of=503, fork_tokens=8),
    )
    assert reply.reused_tokens == (0, 0, 0)
    for links, sessions in ((owner, (500,)), (mallory, (501, 502, 503))):
        links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=sessions)))
    assert await serves_others(swarm, "after-mallory")


async def test_sessions_that_wait_for_each_other_harm_nobody(swarm: LocalSwarm) -> None:
    links = await swarm.node("circle")
    reply = await ask_to_open(
        links, sequence(600, fork_of=601, fork_tokens=8), sequence(601, fork_of=600, fork_tokens=8)
    )
    assert reply.reused_tokens == (8, 8)
    for session in (600, 601):
        links.send(STAGE, step(8, [1], session=session))
    (events,) = await collect(
        await swarm.add_client("beside"), [[1, 2, 3]], [SamplingParams(max_new_tokens=3)]
    )
    assert len(events) == 3
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(600, 601))))
    assert await serves_others(swarm, "after-circle")


@pytest.mark.parametrize(
    "frame",
    [
        step(0, [1, VOCAB_SIZE]),
        step(0, [-1]),
        step(5, [1]),
        step(0, [1] * (CAPACITY + 1)),
        step(0, [1], width=64),
        Frame(Kind.OPEN, b"{"),
        Frame(Kind.KEEP, b'{"sessions": [-1]}'),
        Frame(
            Kind.STEP,
            b"",
            (Row(SESSION, 0, 1, 0, RowFlags.EOS),),
            np.array([1], np.int32),
        ),
    ],
    ids=["id-beyond-vocabulary", "negative-id", "gap", "beyond-room", "hidden-at-first-stage",
         "not-json", "negative-session", "odd-flags"],
)  # fmt: skip
async def test_peer_that_breaks_the_rules_is_dropped_and_others_are_served(
    swarm: LocalSwarm, frame: Frame, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    links = await open_session(swarm, f"stranger-{name}")
    lost = asyncio.Event()
    links.on_lost(lambda peer, reason: lost.set())
    links.send(STAGE, frame)
    await asyncio.wait_for(lost.wait(), 20)
    assert await serves_others(swarm, f"honest-{name}")


async def test_gap_in_what_comes_round_the_ring_to_the_client_as_last_stage_is_no_fault(
    tiny: Path,
) -> None:
    async with local_swarm(tiny, Span(0, 2)) as swarm:
        both = await swarm.node("client and last stage")
        notices: asyncio.Queue[Frame] = asyncio.Queue()
        both.on([Kind.NOTICE], lambda _, frame: notices.put_nowait(frame))
        await Asking(both).open(
            HopMessage(peer=STAGE, start=0, end=2), HopMessage(peer=both.local_peer, start=2, end=4)
        )
        both.send(STAGE, step(5, [1]))
        assert parse(await asyncio.wait_for(notices.get(), 20), Notice).code == ROWS_MISSING
        assert not swarm.stages[0].links.gate.ban_reason(both.local_peer)


async def test_ids_that_were_dropped_before_they_were_computed_name_nothing(
    swarm: LocalSwarm,
) -> None:
    session = 700  # of its own: what it computes is kept under its id
    liar = await swarm.node("liar")
    assert not (await ask_to_open(liar, sequence(session, 128))).refused
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    liar.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    liar.send(STAGE, step(0, [1] * 64, session=session))
    await asyncio.wait_for(tokens.get(), 20)
    claimed = [2] * 32
    hold = HoldRequest(request=1, attempt=1, sessions=(session,))
    for frame in (
        step(0, claimed, session=session),
        message_frame(Kind.HOLD, hold),
        message_frame(Kind.CLOSE, Sessions(sessions=(session,))),
    ):
        swarm.stages[0].links._deliver(liar.local_peer, frame)  # no pass begins in between
    victim = await swarm.node("victim of lies")
    begun = sequence(session + 1, 128, prefix_digests=tuple(digests(claimed)))
    assert (await ask_to_open(victim, begun)).reused_tokens == (0,)
    closing = Sessions(sessions=(session + 1,))
    victim.send(STAGE, message_frame(Kind.CLOSE, closing))


async def test_peer_that_repeats_its_rows_cannot_fill_the_queue(swarm: LocalSwarm) -> None:
    links = await open_session(swarm, "flooding")
    lost = asyncio.Event()
    links.on_lost(lambda peer, reason: lost.set())
    for _ in range(50):
        links.send(STAGE, step(0, [1] * CAPACITY))
    await asyncio.wait_for(lost.wait(), 20)
    assert await serves_others(swarm, "honest-beside-flooding")


async def test_answer_counts_only_from_the_peer_that_was_asked(swarm: LocalSwarm) -> None:
    client = await swarm.add_client("asking")
    liar = await swarm.node("liar")

    async def lie() -> None:
        while True:
            for number in range(1, 100):
                lies = message_frame(Kind.OPENED, OpenReply(request=number, refused="No."))
                liar.send(client.local_peer, lies)
            await asyncio.sleep(0)

    lying = asyncio.create_task(lie())
    await asyncio.sleep(0.1)
    (events,) = await collect(client, [[1, 2, 3]], [SamplingParams(max_new_tokens=3)])
    assert not lying.done()
    lying.cancel()
    assert len(events) == 3


async def test_stranger_cannot_feed_or_close_the_session_of_another(swarm: LocalSwarm) -> None:
    owner = await open_session(swarm, "owner")
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    owner.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    thief = await open_session(swarm, "thief", session=78)
    thief.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))
    thief.send(STAGE, step(0, [5]))
    await asyncio.sleep(0.2)
    owner.send(STAGE, step(0, [1, 2, 3]))
    answer = await asyncio.wait_for(tokens.get(), 20)
    assert [row.position for row in answer.rows] == [3]
    owner.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_rows_of_unknown_sessions_are_ignored(swarm: LocalSwarm) -> None:
    links = await open_session(swarm, "late")
    links.send(STAGE, step(0, [1], session=4711))
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    links.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    links.send(STAGE, step(0, [1]))
    assert len((await asyncio.wait_for(tokens.get(), 20)).rows) == 1
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))
