"""Drafts that no client of ours would send: refused, and nobody's session suffers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.client.drafting import Drafting
from engine.core.generation import DraftMode
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import OpenRequest, Sessions, message_frame, parse
from engine.protocol.recovery import DRAFT_REFUSED, Notice
from engine.protocol.rows import MAX_DRAFTED, Row, RowFlags
from engine.speculation.tree import TokenTree
from engine.swarm.links import Links
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.strangers import (
    SESSION,
    STAGE,
    Asking,
    ask_to_open,
    sequence,
    serves_others,
    until_empty,
)
from tests.support.tiny_models import VOCAB_SIZE

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOM = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_swarm(tiny: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(tiny, Span(0, 4)) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared_swarm: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    yield shared_swarm
    await until_empty(shared_swarm)  # the next test uses the same session ids


def drafted(position: int, ids: list[int], parents: tuple[int, ...], **fields: object) -> Frame:
    flags = fields.pop("flags", RowFlags.SAMPLE | RowFlags.OPEN)
    row = Row(SESSION, position, len(ids), 0, flags, parents, **fields)
    return Frame(Kind.STEP, b"", (row,), np.array(ids, np.int32))


def weighted(*weights: float, mode: DraftMode = DraftMode.DISCO, **fields: object) -> Frame:
    """A chain of two tokens and what its client says of their probabilities."""
    packed = np.array(weights, "<f2").tobytes()
    parents = fields.pop("parents", (-1, 0))
    return drafted(0, [1, 2, 3], parents, mode=mode, weights=packed, **fields)


def expected(position: int, ids: list[int], parents: tuple[int, ...], **fields: object) -> Frame:
    """What a client says may come, beside a closed ring."""
    row = Row(fields.pop("session", SESSION), position, len(ids), 0, parents=parents, **fields)
    return Frame(Kind.EXPECT, b"", (row,), np.array(ids, np.int32))


WHOLE = [1 / VOCAB_SIZE] * VOCAB_SIZE


async def open_with_room(swarm: LocalSwarm, name: str) -> tuple[Links, asyncio.Queue[Frame]]:
    links = await swarm.node(name)
    answers: asyncio.Queue[Frame] = asyncio.Queue()
    links.on([Kind.TOKENS], lambda _, frame: answers.put_nowait(frame))
    reply = await ask_to_open(links, sequence(SESSION, draft_tokens=ROOM))
    assert not reply.refused
    return links, answers


async def next_answer(answers: asyncio.Queue[Frame]) -> tuple[Row, int]:
    frame = await asyncio.wait_for(answers.get(), 20)
    return frame.rows[0], int(frame.ids[0])


FIRST = drafted(0, [1, 2, 5, 6, 7], (-1, -1, 1))
"""Two tokens, and a draft in which the third is a child of the second."""
UNASKED = Frame(
    Kind.STEP, b"", (Row(SESSION, 0, 3, 0, RowFlags.NONE, (-1, 0)),), np.array([1, 2, 3], np.int32)
)


@pytest.mark.parametrize(
    ("frame", "before", "reason"),
    [
        (weighted(0.5, 0.0), None, "probability 0.0, which is none"),
        (weighted(0.5, -0.5), None, "which is none"),
        (weighted(1.5, 0.5), None, "which is none"),
        (weighted(0.5, float("nan")), None, "which is none"),
        (weighted(float("inf"), 0.5), None, "which is none"),
        (weighted(0.5, 0.0, mode=DraftMode.DSSD), None, "which is none"),
        (weighted(*WHOLE[1:], *WHOLE[1:], mode=DraftMode.DSD), None, "as many"),
        (weighted(*WHOLE, *[0.5, 0.5, 0.0, 0.0], *WHOLE[4:], mode=DraftMode.DSD), None, "none"),
        (weighted(*WHOLE, *WHOLE[1:], float("nan"), mode=DraftMode.DSD), None, "none"),
        (weighted(0.5, 0.5, parents=(-1, -1)), None, "only if they are chains of"),
        (weighted(0.5, 0.5, flags=RowFlags.SAMPLE), None, "their client leads"),
        (drafted(0, [1, 2], (), mode=DraftMode.DSD), None, "without a draft"),
        (drafted(0, [1, 2, 3, 4], (-1, 3, -1)), None, "no tree"),
        (drafted(0, [1, 2, 3, 4], (-1, 1, 0)), None, "no tree"),
        (drafted(0, [1, 2, 3, 4], (-1, 2, 0)), None, "no tree"),
        (drafted(0, [1, 2, 3, 4], (-1, 200, 0)), None, "no tree"),
        (drafted(0, [1, *[2] * (ROOM + 1)], tuple(range(-1, ROOM))), None, "at most 4"),
        (drafted(0, [1, *[2] * MAX_DRAFTED], tuple(range(-1, MAX_DRAFTED - 1))), None, "at most 4"),
        (drafted(0, [1, 2, VOCAB_SIZE], (-1, 0)), None, "does not have"),
        (drafted(0, [1, 2, -5], (-1, 0)), None, "does not have"),
        (drafted(0, [1, 2, 2], (-1, -1)), None, "each alternative once"),
        (drafted(12, [1, 2, 3, 4, 5], (-1, 0, 1, 2)), drafted(0, [1] * 12, ()), "beyond the room"),
        (UNASKED, None, "before the tokens"),
        (expected(1, [1, 2, 3], (-1, 2, 0)), None, "no tree"),
        (expected(1, [1, 2, 3], (-1, 0, 200)), None, "no tree"),
        (expected(1, [2] * (ROOM + 1), tuple(range(-1, ROOM))), None, "at most 4"),
        (expected(1, [2] * MAX_DRAFTED, tuple(range(-1, MAX_DRAFTED - 1))), None, "at most 4"),
        (expected(1, [2, VOCAB_SIZE], (-1, 0)), None, "does not have"),
        (expected(1, [2, -5], (-1, 0)), None, "does not have"),
        (expected(1, [2, 2], (-1, -1)), None, "each alternative once"),
        (expected(13, [1, 2, 3, 4], (-1, 0, 1, 2)), None, "beyond the room"),
        (expected(1 << 31, [1], (-1,)), None, "beyond the room"),
        (drafted(3, [1], ()), FIRST, "does not fit together"),
        (drafted(3, [1], (), accepted=3), FIRST, "does not fit together"),
        (drafted(4, [1], (), accepted=2), FIRST, "does not fit together"),
        (drafted(3, [1], (), accepted=200), FIRST, "does not fit together"),
        (drafted(5, [1], (), accepted=3), FIRST, "does not fit together"),
    ],
    ids=["never-drawn", "negative", "above-one", "no-number", "infinite", "dssd-never-drawn",
         "whole-of-another-model", "whole-never-drawn", "whole-with-no-number", "tree-by-probabilities",
         "by-probabilities-round-the-ring", "by-probabilities-of-nothing",
         "parent-beyond-the-draft", "token-that-follows-itself", "cycle", "foreign-parent",
         "more-than-reserved", "as-many-as-fit-in-a-frame", "id-beyond-vocabulary", "negative-id",
         "twins", "beyond-the-room", "draft-before-its-prompt",
         "expects-a-cycle", "expects-a-foreign-parent", "expects-more-than-reserved",
         "expects-as-many-as-fit-in-a-frame", "expects-beyond-vocabulary", "expects-negative-id",
         "expects-twins", "expects-beyond-the-room", "expects-far-away",
         "accepts-nothing-but-goes-on",
         "path-of-another-length", "position-of-another-path", "token-that-was-not-drafted",
         "gap-behind-the-draft"],
)  # fmt: skip
async def test_draft_that_makes_no_sense_is_refused_and_its_session_goes_on(
    swarm: LocalSwarm,
    frame: Frame,
    before: Frame | None,
    reason: str,
    request: pytest.FixtureRequest,
) -> None:
    ids = [1, 2, 5, 6, 7]
    name = request.node.callspec.id
    links, answers = await open_with_room(swarm, name)
    notices: asyncio.Queue[Notice] = asyncio.Queue()
    links.on([Kind.NOTICE], lambda _, told: notices.put_nowait(parse(told, Notice)))
    known = 0
    if before is not None:
        links.send(STAGE, before)
        await next_answer(answers)
        known = before.rows[0].committed
    links.send(STAGE, frame)
    notice = await asyncio.wait_for(notices.get(), 20)
    assert (notice.code, notice.sessions) == (DRAFT_REFUSED, (SESSION,))
    assert reason in notice.reason
    held = await Asking(links).hold(1)
    assert [state.position for state in held.sessions] == [known]  # of drafts nothing counts
    row = Row(SESSION, 0, len(ids), 1, RowFlags.SAMPLE | RowFlags.OPEN)
    links.send(STAGE, Frame(Kind.STEP, b"", (row,), np.array(ids, np.int32)))
    answer, token = await next_answer(answers)
    assert answer.position == 5
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))
    params = [SamplingParams(max_new_tokens=1)]
    ((event,),) = await collect(await swarm.add_client(f"honest-{name}"), [ids], params)
    assert token == event.id


def ahead(position: int, ids: list[int], under_way: int, **fields: object) -> Frame:
    """Drafted before anybody knows what becomes of the draft before it."""
    chain = tuple(range(-1, len(ids) - 1))
    return drafted(position, ids, fields.pop("parents", chain), accepted=under_way, **fields)


def together(*frames: Frame) -> Frame:
    """All rows in one frame, so that none is computed before the last one has come."""
    rows = tuple(row for frame in frames for row in frame.rows)
    return Frame(Kind.STEP, b"", rows, np.concatenate([frame.ids for frame in frames]))


CHAIN = drafted(0, [1, 2, 5, 6], (-1, 0))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (ahead(0, [1, 2], 1), "no chain, or not here"),
        (together(FIRST, ahead(5, [8], 1)), "no chain, or not here"),
        (together(CHAIN, ahead(5, [8], 1)), "no chain, or not here"),
        (together(CHAIN, ahead(3, [8], 1)), "no chain, or not here"),
        (together(CHAIN, ahead(4, [7, 8, 9], 1, parents=(-1, -1, 0))), "with a tree"),
        (together(CHAIN, ahead(4, [7, 8], 2)), "under way"),
        (together(CHAIN, ahead(4, [7, 8], 0)), "under way"),
        (together(CHAIN, ahead(4, [7] * (ROOM + 1), 1)), "at most 4"),
        (together(CHAIN, ahead(4, [7, VOCAB_SIZE], 1)), "does not have"),
        (together(CHAIN, *(ahead(4 * n, [7] * 4, n) for n in range(1, 5))), "beyond the room"),
        (together(CHAIN, *(ahead(3 + n, [7], n) for n in range(1, 9))), "may be"),
        (together(CHAIN, ahead(4, [7], 1), drafted(5, [8], (), accepted=1)), "never computed"),
    ],
    ids=["from-nothing", "from-a-tree", "behind-a-gap", "from-within", "tree", "more-than-are",
         "from-none", "more-than-reserved", "id-beyond-vocabulary", "beyond-the-room", "too-many",
         "settled-before-it-was-computed"],
)  # fmt: skip
async def test_draft_that_goes_on_where_it_cannot_is_refused_and_its_session_goes_on(
    swarm: LocalSwarm, frame: Frame, reason: str, request: pytest.FixtureRequest
) -> None:
    links, answers = await open_with_room(swarm, request.node.callspec.id)
    notices: asyncio.Queue[Notice] = asyncio.Queue()
    links.on([Kind.NOTICE], lambda _, told: notices.put_nowait(parse(told, Notice)))
    links.send(STAGE, frame)
    notice = await asyncio.wait_for(notices.get(), 20)
    assert (notice.code, notice.sessions) == (DRAFT_REFUSED, (SESSION,))
    assert reason in notice.reason
    await Asking(links).hold(1)
    row = Row(SESSION, 0, 3, 1, RowFlags.SAMPLE | RowFlags.OPEN)
    links.send(STAGE, Frame(Kind.STEP, b"", (row,), np.array([1, 2, 5], np.int32)))
    while (await next_answer(answers))[0].attempt < 1:
        pass  # what had been computed before
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_drafts_that_a_verdict_makes_void_cost_nothing_and_are_no_fault(
    swarm: LocalSwarm,
) -> None:
    links, answers = await open_with_room(swarm, "void")
    links.send(STAGE, Frame(Kind.STEP, b"", (Row(SESSION, 0, 2, 0, CHAIN.rows[0].flags),),
                            np.array([1, 2], np.int32)))  # fmt: skip
    _, second = await next_answer(answers)
    wrong = (second + 1) % VOCAB_SIZE
    before = swarm.stages[0].handler.pace.tokens
    links.send(STAGE, together(drafted(2, [second, wrong], (-1,)), ahead(4, [7], 1)))
    answer, third = await next_answer(answers)
    assert (answer.position, answer.accepted) == (3, 0) or third == wrong
    for position in (4, 5, 6):
        links.send(STAGE, ahead(position, [7], 1))
    links.send(STAGE, drafted(3, [third], ()))
    answer, _ = await next_answer(answers)
    assert answer.position == 4
    assert swarm.stages[0].handler.pace.tokens - before <= 4  # the draft of one may have begun
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


@pytest.mark.parametrize(
    "frame",
    [
        drafted(1, [1], (-1,)),
        expected(1, [1, 2], (-1,)),
        expected(1, [1], ()),
        expected(1, [1], (-1,), flags=RowFlags.SAMPLE),
        expected(1, [1], (-1,), accepted=1),
        expected(1, [1], (-1,), kept=(True, False)),
        expected(1, [1], (-1,), mode=DraftMode.DISCO, weights=b"\0<"),
    ],
    ids=["flags", "own-tokens", "no-draft", "asks", "verdict", "bitmap", "weights"],
)
async def test_client_that_says_what_it_expects_as_something_else_loses_its_link(
    swarm: LocalSwarm, frame: Frame, request: pytest.FixtureRequest
) -> None:
    links, _ = await open_with_room(swarm, f"odd-{request.node.callspec.id}")
    lost = asyncio.Event()
    links.on_lost(lambda peer, reason: lost.set())
    links.send(STAGE, replace(frame, kind=Kind.EXPECT))
    await asyncio.wait_for(lost.wait(), 20)
    assert await serves_others(swarm, f"after-{request.node.callspec.id}")


async def test_stranger_expects_nothing_of_others(swarm: LocalSwarm) -> None:
    links, answers = await open_with_room(swarm, "expecting")
    stranger = await swarm.node("expecting-stranger")
    lost = asyncio.Event()
    stranger.on_lost(lambda peer, reason: lost.set())
    stranger.send(STAGE, expected(2, [1, 2], (-1, 0)))
    await asyncio.wait_for(lost.wait(), 20)
    links.send(STAGE, drafted(0, [1, 2], ()))
    await next_answer(answers)
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_expectations_without_end_keep_one_tree_and_end_no_answer(swarm: LocalSwarm) -> None:
    links, answers = await open_with_room(swarm, "many")
    ids = [1, 2, 3]
    rest = await truth(swarm, ids)
    links.send(STAGE, drafted(0, ids, (), flags=RowFlags.SAMPLE))
    got = list(ids)
    while len(got) < 3 + 5:
        for wrong in range(40):
            position = len(got) + wrong % 3
            links.send(STAGE, expected(position, [wrong, wrong + 1, 5], (-1, -1, 1)))
        frame = await asyncio.wait_for(answers.get(), 20)
        got += frame.ids.tolist()
    assert got[3:][:5] == rest[:5]
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_stranger_makes_no_draft_of_others_void(swarm: LocalSwarm) -> None:
    links, answers = await open_with_room(swarm, "owner")
    links.send(STAGE, drafted(0, [1, 2], ()))
    _, token = await next_answer(answers)
    rest = (await truth(swarm, [1, 2]))[1:3]
    links.send(STAGE, drafted(2, [token, *rest], (-1, 0)))
    answer, token = await next_answer(answers)
    assert answer.accepted == 2
    stranger = await swarm.node("stranger")
    lost = asyncio.Event()
    stranger.on_lost(lambda peer, reason: lost.set())
    stranger.send(STAGE, ahead(5, [(token + 1) % VOCAB_SIZE], 1))
    await asyncio.wait_for(lost.wait(), 20)
    links.send(STAGE, ahead(5, [token], 1))
    answer, _ = await next_answer(answers)
    assert (answer.position, answer.accepted) == (6, 1)
    links.send(STAGE, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def truth(swarm: LocalSwarm, prompt: list[int]) -> list[int]:
    params = [SamplingParams(max_new_tokens=5)]
    (events,) = await collect(await swarm.add_client("truth"), [prompt], params)
    return [event.id for event in events]


async def test_client_whose_draft_is_refused_goes_on_without(swarm: LocalSwarm) -> None:
    class Nonsense:
        def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
            return TokenTree((VOCAB_SIZE,), (-1,))

    client, params = await swarm.add_client("nonsense"), [SamplingParams(max_new_tokens=6)]
    (plain,) = await collect(client, [[5, 6, 7]], params)
    got = [
        event.id
        async for _, event in client.generate([[5, 6, 7]], params, drafting=Drafting(Nonsense, 4))
    ]
    assert got == [event.id for event in plain]


async def test_room_for_a_draft_beyond_what_frames_carry_is_refused(swarm: LocalSwarm) -> None:
    links = await swarm.node("greedy")
    lost = asyncio.Event()
    links.on_lost(lambda peer, reason: lost.set())
    asked = sequence(SESSION).model_dump() | {"draft_tokens": MAX_DRAFTED + 1}
    request = {"request": 1, "model_id": "tiny@0", "hops": [], "sequences": [asked]}
    raw = OpenRequest.model_construct(**request).model_dump_json(warnings=False)
    links.send(STAGE, Frame(Kind.OPEN, raw.encode()))
    await asyncio.wait_for(lost.wait(), 20)
    assert await serves_others(swarm, "after-greedy")
