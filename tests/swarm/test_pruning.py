"""Drafts that a first stage prunes: fewer bytes between stages, and not one other token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.client.client import Client
from engine.client.drafting import Drafting
from engine.config import ClientConfig, StageConfig
from engine.core.generation import TokenEvent
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Dtype, Frame, Kind
from engine.protocol.messages import HopMessage, OpenRequest, Sessions, message_frame, parse
from engine.protocol.recovery import DRAFT_REFUSED, Notice
from engine.protocol.rows import Row, RowFlags
from engine.speculation.pruner_files import write_pruner
from engine.speculation.tree import EMPTY, Draft, TokenTree
from tests.support.drafted_answers import check_same, total
from tests.support.drafting import Prophet
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.losing_stages import SPARE, BrokenLinks, at, lose, spared
from tests.support.pruning import pruner_tensors
from tests.support.strangers import SESSION, sequence
from tests.support.tiny_models import VOCAB_SIZE, save_tiny

SPANS = (Span(0, 2), Span(2, 3), Span(3, 4), Span(0, 4))
NEW_TOKENS = 24
PROMPTS = [list(range(20, 90)), [5, 6, 7], [9], [3, 1, 4, 1, 5, 9, 2, 6]]
PATIENT = ClientConfig(reuse_prefixes=False, room_wait_s=30.0)
GREEDY = SamplingParams(max_new_tokens=NEW_TOKENS)
SAMPLED = SamplingParams(
    max_new_tokens=NEW_TOKENS,
    temperature=1.0,
    top_p=0.95,
    seed=11,
    repetition_penalty=1.3,
    frequency_penalty=0.2,
    logprobs=2,
)
PARAMS = [GREEDY, SAMPLED, SAMPLED, GREEDY]
SOME, ALL = 0.5, 1.0
"""τ at which the random pruner leaves a part of a tree, and nothing."""
WIDTH = 64

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a pruner beside it that knows nothing, for first stages of one block or more."""
    directory = save_tiny("llama", tmp_path_factory.mktemp("pruned"), max_position_embeddings=2048)
    tensors = pruner_tensors(WIDTH, VOCAB_SIZE, floor=-7.2)
    write_pruner(directory / "pruner", tensors, {"target": "tiny@0", "num_blocks": 1})
    return directory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(model: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(model, *SPANS, config=StageConfig(max_batch_tokens=64)) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    with spared(shared):
        yield shared


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(shared: LocalSwarm) -> list[list[TokenEvent]]:
    with spared(shared):
        return await collect(shared.client(await shared.node("plain"), PATIENT), PROMPTS, PARAMS)


class Silent:
    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        return EMPTY


def drafts(
    plain: Sequence[Sequence[TokenEvent]], silent: Sequence[int] = (), **options: float
) -> Callable[[], Draft]:
    """A draft for each of `PROMPTS`, in their order; some have nothing to say."""
    made = iter(
        [
            Silent()
            if index in silent
            else Prophet([*prompt, *(event.id for event in events)], seed=index, **options)
            for index, (prompt, events) in enumerate(zip(PROMPTS, plain, strict=True))
        ]
    )
    return lambda: next(made)


async def generate(
    client: Client,
    make_draft: Callable[[], Draft],
    prune_threshold: float,
    disturb: Callable[[int], None] = lambda tokens: None,
) -> list[list[TokenEvent]]:
    drafting = Drafting(make_draft, 12, prune_threshold=prune_threshold)
    return await collect(client, PROMPTS, PARAMS, drafting=drafting, disturb=disturb)


@pytest.mark.parametrize("threshold", [SOME, ALL])
@pytest.mark.parametrize("silent", [(), (1, 3)], ids=["all-draft", "some-draft"])
async def test_pruned_drafts_change_no_token(
    swarm: LocalSwarm,
    plain: list[list[TokenEvent]],
    threshold: float,
    silent: tuple[int, ...],
) -> None:
    client = swarm.client(await swarm.node(f"p-{threshold}-{len(silent)}"), PATIENT)
    events = await generate(client, drafts(plain, silent, width=3), threshold)
    check_same(events, plain)
    assert not client.recoveries.seconds
    drafted, pruned, accepted = (
        total(events, name) for name in ("drafted_tokens", "pruned_tokens", "accepted_tokens")
    )
    if threshold == SOME:
        assert 0 < pruned < drafted
        assert 0 < accepted <= drafted - pruned
    else:  # trees that happen to be chains alone are left
        assert pruned > drafted / 2


async def test_a_dropped_token_is_not_sent(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    first, second = swarm.stages[:2]
    sent = []
    for threshold in (0.0, SOME, ALL):
        client = swarm.client(await swarm.node(f"bytes-{threshold}"), PATIENT)
        before = first.links.neighbours.sent_bytes()[second.peer]
        events = await generate(client, drafts(plain, width=3, right_share=0.0), threshold)
        check_same(events, plain)  # no draft is ever right, so all three take the same rounds
        number = first.links.neighbours.sent_bytes()[second.peer] - before
        sent.append((number, total(events, "pruned_tokens"), total(events, "drafted_tokens")))
    everything, some, nothing = sent
    assert everything[1] == 0 < some[1] < nothing[1]
    assert everything[2] == some[2] == nothing[2]
    for number, pruned, _ in (some, nothing):
        # A float32 state each, and an id; against it a bitmap of at most two bytes a round.
        saved = everything[0] - number
        assert saved >= pruned * (4 * WIDTH + 2) - 2 * len(PROMPTS) * NEW_TOKENS


async def test_chains_are_sent_whole(swarm: LocalSwarm, plain: list[list[TokenEvent]]) -> None:
    client = swarm.client(await swarm.node("chains"), PATIENT)
    events = await generate(client, drafts(plain, width=1), ALL)
    check_same(events, plain)
    assert total(events, "pruned_tokens") == 0 < total(events, "accepted_tokens")


async def test_a_model_in_one_stage_has_nothing_to_prune(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    swarm.hidden = {stage.peer for stage in swarm.stages} - {SPARE}
    client = swarm.client(await swarm.node("alone"), PATIENT)
    events = await generate(client, drafts(plain, width=3), ALL)
    check_same(events, plain)
    assert total(events, "pruned_tokens") == 0 < total(events, "accepted_tokens")


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_stage_that_dies_between_pruned_rounds_is_replaced_and_no_token_changes(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], index: int
) -> None:
    client = swarm.client(await swarm.node(f"loses-{index}"), PATIENT)
    gone = swarm.stages[index]
    events = await generate(client, drafts(plain, width=3), SOME, at(8, lambda: lose(swarm, gone)))
    check_same(events, plain)
    assert total(events, "pruned_tokens")
    assert client.recoveries.seconds


async def test_links_that_break_between_pruned_rounds_change_no_token(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("flaky"), PATIENT.model_copy(update={"max_attempts": 9}))
    links = BrokenLinks(swarm, times=3)
    events = await generate(client, drafts(plain, width=3), SOME, links.see)
    check_same(events, plain)
    assert links.broken == 3


def pruned_row(
    kept: tuple[bool, ...], parents: tuple[int, ...], position: int = 0, accepted: int = 0
) -> Frame:
    count = 1 + len(parents)
    flags = RowFlags.SAMPLE | RowFlags.OPEN
    row = Row(SESSION, position, count, 0, flags, parents, accepted, kept=kept)
    ids, hidden = np.arange(5, 5 + count, dtype=np.int32), np.ones((count, WIDTH), np.float32)
    return Frame(Kind.STEP, hidden.tobytes(), (row,), ids, Dtype.FLOAT32, WIDTH)


GOOD = pruned_row((False, True, True, False), (-1, 0))
"""Of four tokens the second and the third are left, one after the other."""


@pytest.mark.parametrize(
    ("before", "frame", "reason"),
    [
        (None, pruned_row((False, True, True, False), (-1,)), "2 tokens of its draft are left"),
        (None, pruned_row((False, True), ()), "1 tokens of its draft are left"),
        (None, pruned_row((False,), (-1, 0)), "0 tokens of its draft are left"),
        (None, pruned_row((False,) * 9, ()), "had 9 tokens"),
        (GOOD, pruned_row((), (), 2, accepted=1), "does not fit together"),
        (GOOD, pruned_row((), (), 3, accepted=4), "does not fit together"),
        (GOOD, pruned_row((), (), 3, accepted=2), "does not fit together"),
        (GOOD, pruned_row((), (), 3, accepted=5), "does not fit together"),
    ],
    ids=["more-in-the-bitmap", "bitmap-without-draft", "fewer-in-the-bitmap", "larger-than-reserved",
         "goes-on-from-a-dropped-one", "goes-on-from-another-dropped-one", "path-of-another-length",
         "goes-on-from-beyond-the-draft"],
)  # fmt: skip
async def test_bitmap_that_makes_no_sense_is_refused_and_its_session_goes_on(
    swarm: LocalSwarm,
    before: Frame | None,
    frame: Frame,
    reason: str,
    request: pytest.FixtureRequest,
) -> None:
    last = swarm.stages[2].peer
    upstream = await swarm.node(f"upstream-{request.node.callspec.id}")
    came: asyncio.Queue[Frame] = asyncio.Queue()
    upstream.on([Kind.OPENED, Kind.TOKENS, Kind.NOTICE], lambda _, told: came.put_nowait(told))
    hops = (
        HopMessage(peer=upstream.local_peer, start=0, end=3),
        HopMessage(peer=last, start=3, end=4),
    )
    opening = OpenRequest(
        request=1, model_id="tiny@0", hops=hops, sequences=(sequence(SESSION, draft_tokens=8),)
    )
    upstream.send(last, message_frame(Kind.OPEN, opening))
    await asyncio.wait_for(came.get(), 20)
    if before is not None:
        upstream.send(last, before)
        answer = (await asyncio.wait_for(came.get(), 20)).rows[0]
        assert answer.kept == before.rows[0].kept  # the client is told what was left
        assert answer.accepted == 0 or answer.kept[answer.accepted - 1]
    upstream.send(last, frame)
    notice = parse(await asyncio.wait_for(came.get(), 20), Notice)
    assert (notice.code, notice.sessions) == (DRAFT_REFUSED, (SESSION,))
    assert reason in notice.reason
    upstream.send(last, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))
    async with asyncio.timeout(20):  # the next one uses the same session id
        while swarm.stages[2].handler.num_sessions:
            await asyncio.sleep(0.01)


async def test_no_client_may_prune_by_itself(swarm: LocalSwarm) -> None:
    spare = swarm.stages[3].peer
    links = await swarm.node("prunes")
    came: asyncio.Queue[Frame] = asyncio.Queue()
    links.on([Kind.OPENED, Kind.NOTICE], lambda _, told: came.put_nowait(told))
    request = OpenRequest(
        request=1,
        model_id="tiny@0",
        hops=(HopMessage(peer=spare, start=0, end=4),),
        sequences=(sequence(SESSION, draft_tokens=8),),
    )
    links.send(spare, message_frame(Kind.OPEN, request))
    await asyncio.wait_for(came.get(), 20)
    row = Row(SESSION, 0, 3, 0, RowFlags.SAMPLE | RowFlags.OPEN, (-1, 0), kept=(True, False, True))
    links.send(spare, Frame(Kind.STEP, b"", (row,), np.array([5, 6, 7], np.int32)))
    notice = parse(await asyncio.wait_for(came.get(), 20), Notice)
    assert "only a first stage may" in notice.reason
    links.send(spare, message_frame(Kind.CLOSE, Sessions(sessions=(SESSION,))))


async def test_a_stage_with_a_damaged_pruner_says_so_and_sends_drafts_on_whole(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "model"
    directory.mkdir()
    for path in model.iterdir():
        if path.is_file():
            (directory / path.name).symlink_to(path)
    (directory / "pruner").mkdir()
    for path in (model / "pruner").iterdir():
        (directory / "pruner" / path.name).write_bytes(path.read_bytes()[:-1])
    async with local_swarm(directory, Span(0, 2), Span(2, 4)) as broken:
        assert "remove the folder, or train it again" in caplog.text
        client = broken.client(await broken.node("c"), PATIENT)
        expected = await collect(client, PROMPTS, PARAMS)
        events = await generate(client, drafts(expected, width=3), SOME)
    check_same(events, expected)
    assert total(events, "pruned_tokens") == 0 < total(events, "accepted_tokens")
