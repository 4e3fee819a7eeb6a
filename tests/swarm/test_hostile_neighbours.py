"""A stage goes on serving whatever the stages beside it on a route send it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import StageConfig
from engine.core.generation import Lossy
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Codec, Dtype, Frame, Kind
from engine.protocol.messages import (
    Failed,
    HopMessage,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
    message_frame,
    parse,
)
from engine.protocol.rows import Row, RowFlags
from tests.support.local_swarm import FAST, collect, local_swarm
from tests.support.strangers import CAPACITY, SESSION, STAGE


async def test_row_that_cannot_be_computed_ends_its_own_session_alone(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2), Span(2, 4)) as swarm:
        last = swarm.stages[1]
        upstream = await swarm.node("upstream")
        failed: asyncio.Queue[Frame] = asyncio.Queue()
        upstream.on([Kind.FAILED], lambda _, frame: failed.put_nowait(frame))
        opened: asyncio.Queue[Frame] = asyncio.Queue()
        upstream.on([Kind.OPENED], lambda _, frame: opened.put_nowait(frame))
        tokens: asyncio.Queue[Frame] = asyncio.Queue()
        upstream.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
        sequences = tuple(
            SequenceMessage(
                session=n, capacity_tokens=4, prompt_tokens=1, sampling=SamplingMessage()
            )
            for n in (1, 2)
        )
        hops = (
            HopMessage(peer="upstream", start=0, end=2),
            HopMessage(peer=last.peer, start=2, end=4),
        )
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=sequences)
        upstream.send(last.peer, message_frame(Kind.OPEN, request))
        await asyncio.wait_for(opened.get(), 20)
        hidden = np.ones((2, 64), np.float32)
        hidden[0] = np.nan
        rows = tuple(Row(SessionId(n), 0, 1, 0, RowFlags.SAMPLE) for n in (1, 2))
        ids = np.array([1, 1], np.int32)
        upstream.send(last.peer, Frame(Kind.STEP, hidden.tobytes(), rows, ids, Dtype.FLOAT32, 64))
        assert parse(await asyncio.wait_for(failed.get(), 20), Failed).sessions == (1,)
        answer = await asyncio.wait_for(tokens.get(), 20)
        assert [row.session for row in answer.rows] == [2]
        assert not last.serving.done()


async def test_rows_behind_a_pass_that_failed_are_computed_after_it_has_been_tried_again(
    tiny: Path,
) -> None:
    config = StageConfig(max_batch_tokens=32)
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), config=config) as swarm:
        last = swarm.stages[1].peer
        upstream = await swarm.node("upstream")
        answers: asyncio.Queue[Frame] = asyncio.Queue()
        kinds = [Kind.OPENED, Kind.FAILED, Kind.TOKENS]
        upstream.on(kinds, lambda _, frame: answers.put_nowait(frame))
        hops = (HopMessage(peer="upstream", start=0, end=2), HopMessage(peer=last, start=2, end=4))
        sequences = tuple(
            SequenceMessage(
                session=n, capacity_tokens=48, prompt_tokens=44, sampling=SamplingMessage()
            )
            for n in (1, 2)
        )
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=sequences)
        upstream.send(last, message_frame(Kind.OPEN, request))
        await asyncio.wait_for(answers.get(), 20)
        hidden = np.ones((41, 64), np.float32)
        hidden[0] = np.nan
        # The long row takes two passes, and the first of them has the bad row too.
        rows = tuple(
            Row(SessionId(n), 0, count, 0, RowFlags.SAMPLE) for n, count in ((1, 1), (2, 40))
        )
        ids = np.ones(41, np.int32)
        upstream.send(last, Frame(Kind.STEP, hidden.tobytes(), rows, ids, Dtype.FLOAT32, 64))
        assert parse(await asyncio.wait_for(answers.get(), 20), Failed).sessions == (1,)
        for position in (40, 41):
            answer = await asyncio.wait_for(answers.get(), 20)
            assert answer.kind is Kind.TOKENS
            assert [(row.session, row.position) for row in answer.rows] == [(2, position)]
            step = (Row(SessionId(2), position, 1, 0, RowFlags.SAMPLE),)
            one = hidden[1:2].tobytes()
            upstream.send(last, Frame(Kind.STEP, one, step, ids[:1], Dtype.FLOAT32, 64))


@pytest.mark.parametrize("allowed", ["", "blocks8"])
async def test_rounded_rows_of_a_session_that_does_not_allow_them_drop_the_peer(
    tiny: Path, allowed: Lossy
) -> None:
    links_config = FAST.model_copy(update={"codec": "lossless"})
    async with local_swarm(tiny, Span(2, 4), links=links_config) as swarm:
        upstream = await swarm.node("upstream")
        opened: asyncio.Queue[Frame] = asyncio.Queue()
        upstream.on([Kind.OPENED], lambda _, frame: opened.put_nowait(frame))
        lost: asyncio.Queue[str] = asyncio.Queue()
        upstream.on_lost(lambda _, reason: lost.put_nowait(reason))
        tokens: asyncio.Queue[Frame] = asyncio.Queue()
        upstream.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
        sequence = SequenceMessage(
            session=SESSION,
            capacity_tokens=CAPACITY,
            prompt_tokens=4,
            sampling=SamplingMessage(),
            lossy=allowed,
        )
        hops = (HopMessage(peer="upstream", start=0, end=2), HopMessage(peer=STAGE, start=2, end=4))
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=(sequence,))
        upstream.send(STAGE, message_frame(Kind.OPEN, request))
        await asyncio.wait_for(opened.get(), 20)
        hidden = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32).tobytes()
        rows = (Row(SESSION, 0, 4, 0, RowFlags.SAMPLE),)
        ids = np.ones(4, np.int32)
        if allowed:
            honest = Frame(Kind.STEP, hidden, rows, ids, Dtype.FLOAT32, 64, Codec.BLOCKS8)
            upstream.send(STAGE, honest)
            await asyncio.wait_for(tokens.get(), 20)
        upstream.send(STAGE, Frame(Kind.STEP, hidden, rows, ids, Dtype.FLOAT32, 64, Codec.ROWS8))
        await asyncio.wait_for(lost.get(), 20)
        assert "rounded" in swarm.stages[0].links.gate.ban_reason(PeerId("upstream"))
        assert tokens.empty()


async def test_stage_that_sends_wrong_shapes_is_routed_around(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2), Span(2, 4)) as swarm:
        honest = await swarm.add_client("honest")
        params = [SamplingParams(max_new_tokens=5)]
        expected = await collect(honest, [[1, 2, 3]], params)
        liar = await swarm.node("a-liar")
        lies = 0

        def let_in(peer: PeerId, frame: Frame) -> None:
            reply = OpenReply(request=parse(frame, OpenRequest).request, lease_s=30)
            liar.send(peer, message_frame(Kind.OPENED, reply))

        def lie(_: PeerId, frame: Frame) -> None:
            nonlocal lies
            lies += 1
            hidden = bytes(len(frame.ids) * 63 * 4)
            lie = Frame(Kind.STEP, hidden, frame.rows, frame.ids, Dtype.FLOAT32, 63)
            liar.send(PeerId("s1"), lie)

        liar.on([Kind.OPEN], let_in)
        liar.on([Kind.STEP], lie)
        info = replace(swarm.snapshot().stages[0], peer=liar.local_peer)
        swarm.others = (info,)
        (events,) = await collect(await swarm.add_client("lied-to"), [[1, 2, 3]], params)
        assert lies == 1
        assert [events] == expected
