"""Peers that speak to a stage by hand: what no client of ours would send."""

from __future__ import annotations

import asyncio

import numpy as np

from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Dtype, Frame, Kind
from engine.protocol.messages import (
    HopMessage,
    Message,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
    message_frame,
    parse,
)
from engine.protocol.recovery import (
    CourseMessage,
    CourseReply,
    HoldReply,
    HoldRequest,
    ReplayRequest,
    ReplayUntil,
    RouteRequest,
)
from engine.protocol.rows import Row, RowFlags
from engine.swarm.links import Links
from tests.support.local_swarm import LocalSwarm, collect

STAGE = PeerId("s0")
SESSION = SessionId(77)
CAPACITY = 16


async def open_session(swarm: LocalSwarm, name: str, session: int = SESSION) -> Links:
    """A stranger with a session of its own at the stage."""
    links = await swarm.node(name)
    assert not (await ask_to_open(links, sequence(session))).refused
    return links


def sequence(session: int, capacity_tokens: int = CAPACITY, **fields: object) -> SequenceMessage:
    return SequenceMessage(
        session=session,
        capacity_tokens=capacity_tokens,
        prompt_tokens=1,
        sampling=SamplingMessage(),
        **fields,
    )


async def ask_to_open(links: Links, *sequences: SequenceMessage) -> OpenReply:
    opened: asyncio.Future[OpenReply] = asyncio.get_running_loop().create_future()
    links.on([Kind.OPENED], lambda _, frame: opened.set_result(parse(frame, OpenReply)))
    request = OpenRequest(
        request=1,
        model_id="tiny@0",
        hops=(HopMessage(peer=STAGE, start=0, end=4),),
        sequences=sequences,
        prefixes=PrefixUse.SHARED,
    )
    links.send(STAGE, message_frame(Kind.OPEN, request))
    return await asyncio.wait_for(opened, 20)


def step(position: int, ids: list[int], *, session: int = SESSION, width: int = 0) -> Frame:
    row = Row(SessionId(session), position, len(ids), 0, RowFlags.SAMPLE)
    payload = bytes(len(ids) * width * 4)
    dtype = Dtype.FLOAT32 if width else Dtype.NONE
    return Frame(Kind.STEP, payload, (row,), np.array(ids, np.int32), dtype, width)


async def serves_others(swarm: LocalSwarm, name: str) -> bool:
    """Whether an honest client gets its answer, and the stranger's sessions are gone."""
    (events,) = await collect(
        await swarm.add_client(name), [[1, 2, 3]], [SamplingParams(max_new_tokens=3)]
    )
    await until_empty(swarm)
    return len(events) == 3


async def until_empty(swarm: LocalSwarm) -> None:
    """Wait for the end of every session at the stage."""
    async with asyncio.timeout(20):
        while swarm.stages[0].handler.num_sessions:
            await asyncio.sleep(0.02)


class Asking:
    """A node that speaks the repair messages by hand."""

    def __init__(self, links: Links, stage: PeerId = STAGE) -> None:
        self._links = links
        self._stage = stage
        self._answers: asyncio.Queue[Frame] = asyncio.Queue()
        links.on(
            [Kind.OPENED, Kind.HELD, Kind.ROUTED, Kind.REPLAYED],
            lambda _, frame: self._answers.put_nowait(frame),
        )

    async def hold(self, attempt: int) -> HoldReply:
        request = HoldRequest(request=1, attempt=attempt, sessions=(SESSION,))
        return parse(await self._ask(Kind.HOLD, request), HoldReply)

    async def lead(self, attempt: int, *hops: HopMessage) -> CourseReply:
        sessions = (CourseMessage(session=SESSION, send_from=0),)
        request = RouteRequest(request=1, attempt=attempt, hops=hops, sessions=sessions)
        return parse(await self._ask(Kind.ROUTE, request), CourseReply)

    async def replay(self, attempt: int, end: int) -> CourseReply:
        sessions = (ReplayUntil(session=SESSION, end=end),)
        request = ReplayRequest(request=1, attempt=attempt, sessions=sessions)
        return parse(await self._ask(Kind.REPLAY, request), CourseReply)

    async def open(self, *hops: HopMessage) -> None:
        request = OpenRequest(
            request=1, model_id="tiny@0", hops=hops, sequences=(sequence(SESSION),)
        )
        assert not parse(await self._ask(Kind.OPEN, request), OpenReply).refused

    async def _ask(self, kind: Kind, message: Message) -> Frame:
        self._links.send(self._stage, message_frame(kind, message))
        return await asyncio.wait_for(self._answers.get(), 20)
