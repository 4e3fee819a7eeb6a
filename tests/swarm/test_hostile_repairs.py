"""Nobody mends the way of another one's session, nor has a stage send the same for ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from engine.core.plans import Span
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import HopMessage
from engine.protocol.rows import Row
from engine.server.sessions import REPLAYS_PER_TOKEN
from engine.swarm.links import Links
from tests.support.local_swarm import LocalSwarm, local_swarm
from tests.support.strangers import STAGE, Asking, open_session, step


async def test_stranger_cannot_hold_lead_or_replay_the_session_of_another(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 4)) as swarm:
        owner = await open_session(swarm, "rightful")
        tokens: asyncio.Queue[Frame] = asyncio.Queue()
        owner.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
        thief = Asking(await swarm.node("leading"))
        assert not (await thief.hold(5)).sessions
        assert (await thief.lead(0, HopMessage(peer=STAGE, start=0, end=4))).refused
        assert (await thief.replay(0, 0)).refused
        owner.send(STAGE, step(0, [1, 2, 3]))
        answer = await asyncio.wait_for(tokens.get(), 20)
        assert [(row.position, row.attempt) for row in answer.rows] == [(3, 0)]
        assert not (await Asking(owner).lead(0, HopMessage(peer=STAGE, start=0, end=4))).refused


async def begin(
    swarm: LocalSwarm, name: str, hops: tuple[HopMessage, ...], rows: list[Row]
) -> tuple[Links, Asking]:
    """A client with a session of ten tokens, once `rows` of it have come out of the stage."""
    owner = await swarm.node(name)
    asking = Asking(owner)
    await asking.open(*hops)
    owner.send(STAGE, step(0, [1] * 10))
    async with asyncio.timeout(20):
        while not rows:
            await asyncio.sleep(0.01)
    return owner, asking


async def test_owner_that_asks_for_the_same_replay_over_and_over_is_refused(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2)) as swarm:
        victim = await swarm.node("victim")
        rows: list[Row] = []
        victim.on([Kind.STEP], lambda _, frame: rows.extend(frame.rows))
        hops = (HopMessage(peer=STAGE, start=0, end=2), HopMessage(peer="victim", start=2, end=4))
        owner, asking = await begin(swarm, "replaying", hops, rows)
        replayed = 0
        for attempt in range(1, 60):
            (held,) = (await asking.hold(attempt)).sessions
            assert (held.position, held.kept_from) == (10, 0)
            assert not (await asking.lead(attempt, *hops)).refused
            assert (await asking.replay(attempt, 11)).refused, "more than there is"
            replayed += not (await asking.replay(attempt, 10)).refused
        assert replayed == REPLAYS_PER_TOKEN
        async with asyncio.timeout(20):
            while len(rows) < 1 + REPLAYS_PER_TOKEN:
                await asyncio.sleep(0.01)
        assert [row.attempt for row in rows] == list(range(1 + REPLAYS_PER_TOKEN))
        # One more token earns one more replay of all, not as many as before.
        one = step(10, [1])
        owner.send(STAGE, replace(one, rows=(replace(one.rows[0], attempt=59),)))
        async with asyncio.timeout(20):
            while swarm.stages[0].handler.pace.tokens < 11:
                await asyncio.sleep(0.01)
        assert not (await asking.replay(59, 11)).refused
        assert (await asking.replay(59, 11)).refused


async def test_what_is_computed_while_a_replay_is_under_way_follows_it(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2)) as swarm:
        behind = await swarm.node("behind")
        rows: list[Row] = []
        behind.on([Kind.STEP], lambda _, frame: rows.extend(frame.rows))
        hops = (HopMessage(peer=STAGE, start=0, end=2), HopMessage(peer="behind", start=2, end=4))
        owner, asking = await begin(swarm, "mending", hops, rows)
        rows.clear()
        await asking.hold(1)
        assert not (await asking.lead(1, *hops)).refused
        more = step(10, [2] * 3)
        owner.send(STAGE, replace(more, rows=(replace(more.rows[0], attempt=1),)))
        async with asyncio.timeout(20):
            while swarm.stages[0].handler.pace.tokens < 13:
                await asyncio.sleep(0.01)
        assert not (await asking.replay(1, 10)).refused
        async with asyncio.timeout(20):
            while sum(row.count for row in rows) < 13:
                await asyncio.sleep(0.01)
        assert [(row.position, row.count) for row in rows] == [(0, 10), (10, 3)]
