"""A stage goes on serving whatever a stranger sends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.config import StageConfig
from engine.core.generation import Lossy, PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Codec, Dtype, Frame, Kind, Row, RowFlags
from engine.protocol.messages import (
    Failed,
    HopMessage,
    Message,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
    Sessions,
    message_frame,
    parse,
)
from engine.protocol.prefixes import digests
from engine.protocol.recovery import (
    ROWS_MISSING,
    CourseMessage,
    CourseReply,
    HoldReply,
    HoldRequest,
    Notice,
    ReplayRequest,
    ReplayUntil,
    RouteRequest,
)
from engine.server.sessions import REPLAYS_PER_TOKEN
from engine.swarm.links import Links
from tests.support.local_swarm import FAST, LocalSwarm, collect, local_swarm
from tests.support.tiny_models import VOCAB_SIZE, save_tiny

STAGE = PeerId("s0")
SESSION = SessionId(77)
CAPACITY = 16


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory)
    return directory


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
    return await asyncio.wait_for(opened, 5)


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
    async with asyncio.timeout(5):
        while swarm.stages[0].handler.num_sessions:
            await asyncio.sleep(0.02)


async def test_stranger_gets_nothing_of_what_others_compute_or_have_left(
    swarm: LocalSwarm,
) -> None:
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
        links,
        sequence(600, fork_of=601, fork_tokens=8),
        sequence(601, fork_of=600, fork_tokens=8),
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
    await asyncio.wait_for(lost.wait(), 5)
    assert await serves_others(swarm, f"honest-{name}")


async def test_gap_in_what_comes_round_the_ring_to_the_client_as_last_stage_is_no_fault(
    tiny: Path,
) -> None:
    async with local_swarm(tiny, Span(0, 2)) as swarm:
        both = await swarm.node("client and last stage")
        notices: asyncio.Queue[Frame] = asyncio.Queue()
        both.on([Kind.NOTICE], lambda _, frame: notices.put_nowait(frame))
        await Asking(both).open(
            HopMessage(peer=STAGE, start=0, end=2),
            HopMessage(peer=both.local_peer, start=2, end=4),
        )
        both.send(STAGE, step(5, [1]))
        assert parse(await asyncio.wait_for(notices.get(), 5), Notice).code == ROWS_MISSING
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
    await asyncio.wait_for(tokens.get(), 5)
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
    await asyncio.wait_for(lost.wait(), 5)
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
        await asyncio.wait_for(opened.get(), 5)
        hidden = np.ones((2, 64), np.float32)
        hidden[0] = np.nan
        rows = tuple(Row(SessionId(n), 0, 1, 0, RowFlags.SAMPLE) for n in (1, 2))
        ids = np.array([1, 1], np.int32)
        upstream.send(last.peer, Frame(Kind.STEP, hidden.tobytes(), rows, ids, Dtype.FLOAT32, 64))
        assert parse(await asyncio.wait_for(failed.get(), 5), Failed).sessions == (1,)
        answer = await asyncio.wait_for(tokens.get(), 5)
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
        hops = (
            HopMessage(peer="upstream", start=0, end=2),
            HopMessage(peer=last, start=2, end=4),
        )
        sequences = tuple(
            SequenceMessage(
                session=n, capacity_tokens=48, prompt_tokens=44, sampling=SamplingMessage()
            )
            for n in (1, 2)
        )
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=sequences)
        upstream.send(last, message_frame(Kind.OPEN, request))
        await asyncio.wait_for(answers.get(), 5)
        hidden = np.ones((41, 64), np.float32)
        hidden[0] = np.nan
        # The long row takes two passes, and the first of them has the bad row too.
        rows = tuple(
            Row(SessionId(n), 0, count, 0, RowFlags.SAMPLE) for n, count in ((1, 1), (2, 40))
        )
        ids = np.ones(41, np.int32)
        upstream.send(last, Frame(Kind.STEP, hidden.tobytes(), rows, ids, Dtype.FLOAT32, 64))
        assert parse(await asyncio.wait_for(answers.get(), 5), Failed).sessions == (1,)
        for position in (40, 41):
            answer = await asyncio.wait_for(answers.get(), 5)
            assert answer.kind is Kind.TOKENS
            assert [(row.session, row.position) for row in answer.rows] == [(2, position)]
            step = (Row(SessionId(2), position, 1, 0, RowFlags.SAMPLE),)
            one = hidden[1:2].tobytes()
            upstream.send(last, Frame(Kind.STEP, one, step, ids[:1], Dtype.FLOAT32, 64))


async def test_stranger_cannot_feed_or_close_the_session_of_another(swarm: LocalSwarm) -> None:
    owner = await open_session(swarm, "owner")
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    owner.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    thief = await open_session(swarm, "thief", session=78)
    thief.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))
    thief.send(STAGE, step(0, [5]))
    await asyncio.sleep(0.2)
    owner.send(STAGE, step(0, [1, 2, 3]))
    answer = await asyncio.wait_for(tokens.get(), 5)
    assert [row.position for row in answer.rows] == [3]
    owner.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_rows_of_unknown_sessions_are_ignored(swarm: LocalSwarm) -> None:
    links = await open_session(swarm, "late")
    links.send(STAGE, step(0, [1], session=4711))
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    links.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    links.send(STAGE, step(0, [1]))
    assert len((await asyncio.wait_for(tokens.get(), 5)).rows) == 1
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


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
        hops = (
            HopMessage(peer="upstream", start=0, end=2),
            HopMessage(peer=STAGE, start=2, end=4),
        )
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=(sequence,))
        upstream.send(STAGE, message_frame(Kind.OPEN, request))
        await asyncio.wait_for(opened.get(), 5)
        hidden = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32).tobytes()
        rows = (Row(SESSION, 0, 4, 0, RowFlags.SAMPLE),)
        ids = np.ones(4, np.int32)
        if allowed:
            honest = Frame(Kind.STEP, hidden, rows, ids, Dtype.FLOAT32, 64, Codec.BLOCKS8)
            upstream.send(STAGE, honest)
            await asyncio.wait_for(tokens.get(), 5)
        upstream.send(STAGE, Frame(Kind.STEP, hidden, rows, ids, Dtype.FLOAT32, 64, Codec.ROWS8))
        await asyncio.wait_for(lost.get(), 5)
        assert "rounded" in swarm.stages[0].links.gate.ban_reason(PeerId("upstream"))
        assert tokens.empty()


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
        return await asyncio.wait_for(self._answers.get(), 5)


async def test_stranger_cannot_hold_lead_or_replay_the_session_of_another(
    swarm: LocalSwarm,
) -> None:
    owner = await open_session(swarm, "rightful")
    tokens: asyncio.Queue[Frame] = asyncio.Queue()
    owner.on([Kind.TOKENS], lambda _, frame: tokens.put_nowait(frame))
    thief = Asking(await swarm.node("leading"))
    assert not (await thief.hold(5)).sessions
    assert (await thief.lead(0, HopMessage(peer=STAGE, start=0, end=4))).refused
    assert (await thief.replay(0, 0)).refused
    owner.send(STAGE, step(0, [1, 2, 3]))
    answer = await asyncio.wait_for(tokens.get(), 5)
    assert [(row.position, row.attempt) for row in answer.rows] == [(3, 0)]
    assert not (await Asking(owner).lead(0, HopMessage(peer=STAGE, start=0, end=4))).refused
    owner.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_owner_that_asks_for_the_same_replay_over_and_over_is_refused(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2)) as swarm:
        victim = await swarm.node("victim")
        rows: list[Row] = []
        victim.on([Kind.STEP], lambda _, frame: rows.extend(frame.rows))
        hops = (HopMessage(peer=STAGE, start=0, end=2), HopMessage(peer="victim", start=2, end=4))
        owner = await swarm.node("replaying")
        asking = Asking(owner)
        await asking.open(*hops)
        owner.send(STAGE, step(0, [1] * 10))
        async with asyncio.timeout(5):
            while not rows:
                await asyncio.sleep(0.01)
        replayed = 0
        for attempt in range(1, 60):
            (held,) = (await asking.hold(attempt)).sessions
            assert (held.position, held.kept_from) == (10, 0)
            assert not (await asking.lead(attempt, *hops)).refused
            assert (await asking.replay(attempt, 11)).refused, "more than there is"
            replayed += not (await asking.replay(attempt, 10)).refused
        assert replayed == REPLAYS_PER_TOKEN
        async with asyncio.timeout(5):
            while len(rows) < 1 + REPLAYS_PER_TOKEN:
                await asyncio.sleep(0.01)
        assert [row.attempt for row in rows] == list(range(1 + REPLAYS_PER_TOKEN))
        # One more token earns one more replay of all, not as many as before.
        one = step(10, [1])
        owner.send(STAGE, replace(one, rows=(replace(one.rows[0], attempt=59),)))
        async with asyncio.timeout(5):
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
        owner = await swarm.node("mending")
        asking = Asking(owner)
        await asking.open(*hops)
        owner.send(STAGE, step(0, [1] * 10))
        async with asyncio.timeout(5):
            while not rows:
                await asyncio.sleep(0.01)
        rows.clear()
        await asking.hold(1)
        assert not (await asking.lead(1, *hops)).refused
        more = step(10, [2] * 3)
        owner.send(STAGE, replace(more, rows=(replace(more.rows[0], attempt=1),)))
        async with asyncio.timeout(5):
            while swarm.stages[0].handler.pace.tokens < 13:
                await asyncio.sleep(0.01)
        assert not (await asking.replay(1, 10)).refused
        async with asyncio.timeout(5):
            while sum(row.count for row in rows) < 13:
                await asyncio.sleep(0.01)
        assert [(row.position, row.count) for row in rows] == [(0, 10), (10, 3)]


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
