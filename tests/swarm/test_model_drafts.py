"""Answers with a draft model are those without, whatever it says and whatever becomes of its process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import pytest_asyncio
import torch
from safetensors.torch import load_file, save_file

from engine.client.client import Client
from engine.client.drafter import Drafter, Wanted
from engine.client.drafting import Drafting, drafting_for
from engine.client.steering import LOOKUPS, LOOKUPS_BESIDE, MODELS, MODELS_BESIDE
from engine.config import ClientConfig, StageConfig, StageEmulation
from engine.core.errors import EnginePaused, ModelError, RequestError, WorkerFailed
from engine.core.generation import Speculation, SpeculationWish, TokenEvent
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.models.sources import resolve
from engine.speculation.controller import Decision, Reason
from engine.speculation.costs import PLAIN, Option, Source
from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.pruner_files import write_pruner
from engine.speculation.tree import TokenTree
from engine.speculation.worker_process import DraftOrder
from tests.support.drafted_answers import Moody, check_same, counts, total
from tests.support.drafting import Reciter
from tests.support.local_swarm import CLOCK, LocalSwarm, collect, local_swarm
from tests.support.losing_stages import SPANS, SPARE, Disturbance, spared
from tests.support.pruning import pruner_tensors
from tests.support.tiny_models import VOCAB_SIZE, save_tiny

NEW_TOKENS = 20
PROMPTS = [list(range(20, 90)), [5, 6, 7], [3, 1, 4, 1, 5, 9, 2, 6]]
PARAMS = [
    SamplingParams(max_new_tokens=NEW_TOKENS),
    SamplingParams(max_new_tokens=NEW_TOKENS, temperature=0.9, top_p=0.95, seed=11),
    SamplingParams(max_new_tokens=NEW_TOKENS, temperature=1.0, seed=3, repetition_penalty=1.3),
]
CONFIG = ClientConfig(reuse_prefixes=False, room_wait_s=30.0)

pytestmark = pytest.mark.asyncio(loop_scope="module")


def files_of(directory: Path) -> ModelFiles:
    return resolve(str(directory), directory.parent, "float32", lambda progress: None)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> DraftOrder:
    """A target with a pruner that knows nothing, and a sibling: the same weights, a little off."""
    directory = tmp_path_factory.mktemp("models")
    options = {"max_position_embeddings": 2048}
    target = save_tiny("llama", directory / "tiny", **options)
    sibling = save_tiny("llama", directory / "sibling", **options)
    tensors = pruner_tensors(64, VOCAB_SIZE, floor=-7.2)
    write_pruner(target / "pruner", tensors, {"target": "tiny@0", "num_blocks": 1})
    torch.manual_seed(0)
    weights = load_file(sibling / "model.safetensors")
    for weight in weights.values():
        weight += 0.03 * weight.std() * torch.randn_like(weight) if weight.dim() > 1 else 0
    save_file(weights, sibling / "model.safetensors", metadata={"format": "pt"})
    return DraftOrder(files_of(target), files_of(sibling), threads=1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(order: DraftOrder) -> AsyncIterator[LocalSwarm]:
    """Of stages that keep nothing: what is lost is computed again from a client's ids."""
    config = StageConfig(kept_budget_bytes=0)
    async with local_swarm(order.target.directory, *SPANS, config=config) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    with spared(shared):
        yield shared


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def drafter(order: DraftOrder) -> AsyncIterator[Drafter]:
    drafter = Drafter(order, CLOCK)
    yield drafter
    await drafter.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(shared: LocalSwarm) -> list[list[TokenEvent]]:
    with spared(shared):
        return await collect(shared.client(await shared.node("plain"), CONFIG), PROMPTS, PARAMS)


async def client_with(swarm: LocalSwarm, name: str, drafter: Drafter | None) -> Client:
    links = await swarm.node(name)
    return Client(links, swarm, swarm.spec, CONFIG, CLOCK, drafter)


async def generate(
    client: Client,
    speculation: Speculation | SpeculationWish | None = None,
    drafting: Drafting | None = None,
    disturb: Callable[[int], None] = lambda tokens: None,
) -> list[list[TokenEvent]]:
    return await collect(
        client, PROMPTS, PARAMS, speculation=speculation, drafting=drafting, disturb=disturb
    )


class MoodyModel(Moody):
    """Wants the model for a few rounds, then does not."""

    option = Option(Source.MODEL, 4)


async def test_model_reads_the_text_beside_plain_decoding_and_then_drafts(
    swarm: LocalSwarm, drafter: Drafter, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    await drafter.ready()
    moods: list[Moody] = []

    def policy(costs: object, timing: object) -> Moody:
        moods.append(MoodyModel(costs, timing))
        return moods[-1]

    drafting = Drafting(PromptLookup, 8, policy, drafter)
    events = await generate(await client_with(swarm, "moody", drafter), drafting=drafting)
    check_same(events, plain)
    (mood,) = moods
    assert {option.source for option in mood.rounds} == {Source.OFF, Source.MODEL}
    assert counts(events)[1]


class Fickle(Moody):
    """Takes another way to draft in each round, then none for a while."""

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        beside = (LOOKUPS_BESIDE[0], MODELS_BESIDE[-1], MODELS_BESIDE[0])
        wanted = (PLAIN, PLAIN, PLAIN, *beside, LOOKUPS[1], MODELS[1], MODELS[-1], LOOKUPS[0])
        return Decision(wanted[len(self.rounds) % len(wanted)], Reason.PAYS, 1.0)


BESIDE = Speculation("model", 4, pipelined="beside")
TREE = Drafting(None, 13, width=4, prune_threshold=0.0)
PRUNED = replace(TREE, prune_threshold=0.5)
"""At which the pruner, which knows nothing, leaves a part of a tree."""
WAYS: dict[str, Callable[[Drafter, Sequence[list[int]]], Drafting | None]] = {
    "look-up": lambda drafter, known: drafting_for(Speculation("ngram", 4)),
    "look-up ahead": lambda drafter, known: Drafting(map(Reciter, known).__next__, 3, ahead=4),
    "look-up beside": lambda drafter, known: Drafting(map(Reciter, known).__next__, 4, beside=True),
    "chain": lambda drafter, known: drafting_for(Speculation("model", 4), drafter),
    "chain beside": lambda drafter, known: drafting_for(BESIDE, drafter),
    "tree": lambda drafter, known: replace(TREE, drafter=drafter),
    "tree beside": lambda drafter, known: replace(TREE, drafter=drafter, beside=True),
    "pruned tree": lambda drafter, known: replace(PRUNED, drafter=drafter),
    "changing": lambda drafter, known: Drafting(PromptLookup, 13, Fickle, drafter),
}
SURE = ("look-up ahead", "look-up beside", "chain", "tree", "pruned tree")
"""Ways in which it takes neither luck nor a slow ring for something to be right."""
MATRIX = [
    (way, num_stages)
    for way in WAYS
    for num_stages in (1, 3)
    if num_stages > 1 or way != "pruned tree"
]
"""A single stage has nobody to spare bytes for; and chains are always sent whole."""


@pytest.mark.parametrize("is_disturbed", [False, True], ids=["calm", "disturbed"])
@pytest.mark.parametrize(("way", "num_stages"), MATRIX)
async def test_no_draft_changes_a_token_over_any_number_of_stages_whatever_happens(
    swarm: LocalSwarm,
    drafter: Drafter,
    plain: Sequence[Sequence[TokenEvent]],
    way: str,
    num_stages: int,
    is_disturbed: bool,
) -> None:
    await drafter.ready()
    client = await client_with(swarm, f"{way}-{num_stages}-{is_disturbed}", drafter)
    disturbance = Disturbance(swarm, client)
    known = [[*ids, *(e.id for e in some)] for ids, some in zip(PROMPTS, plain, strict=True)]
    if num_stages == 1:
        swarm.hidden = {stage.peer for stage in swarm.stages} - {SPARE}
    events = await generate(
        client,
        drafting=WAYS[way](drafter, known),
        disturb=disturbance.see if is_disturbed else lambda tokens: None,
    )
    check_same(events, plain)
    if way in SURE:
        drafted, accepted = counts(events)
        assert len(PROMPTS) * NEW_TOKENS / 6 < accepted < drafted
    assert (total(events, "pruned_tokens") > 0) == (way == "pruned tree")
    if is_disturbed:
        assert disturbance.is_over
        assert client.recoveries.seconds
        assert client.recoveries.resent_ids  # nobody had kept anything


async def test_model_where_it_pays_changes_no_token(
    swarm: LocalSwarm, drafter: Drafter, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    events = await generate(await client_with(swarm, "auto", drafter), Speculation("auto"))
    check_same(events, plain)


async def test_model_drafts_beside_a_ring_that_takes_longer_than_it(
    order: DraftOrder, drafter: Drafter, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    await drafter.ready()
    slow = StageEmulation(stage_s=0.06, rows=64, computes=True)
    async with local_swarm(order.target.directory) as swarm:
        await swarm.add_stage("s0", Span(0, 4), emulate=slow)
        client = await client_with(swarm, "beside", drafter)
        for way in ("chain beside", "tree beside"):
            events = await generate(client, drafting=WAYS[way](drafter, ()))
            check_same(events, plain)
            drafted, accepted = counts(events)
            assert NEW_TOKENS / 4 < accepted < drafted


async def test_process_ends_when_nobody_has_wanted_it_for_a_while_and_while_we_rest(
    swarm: LocalSwarm, order: DraftOrder
) -> None:
    reason = ""
    drafter = Drafter(order, CLOCK, lambda: reason, idle_s=0.2)
    client = await client_with(swarm, "idle", drafter)
    try:
        pids: list[int | None] = []
        speculation = Speculation("model", 4)
        await generate(client, speculation, disturb=lambda tokens: pids.append(drafter.pid))
        pid = pids[-1]
        assert pid is not None
        while drafter.pid is not None:
            await asyncio.sleep(0.05)
        while psutil.pid_exists(pid):
            await asyncio.sleep(0.05)
        reason = "You have paused Shoal."
        drafter.wake()
        with pytest.raises(EnginePaused, match="You have paused Shoal"):
            await drafter.ready()
    finally:
        await drafter.stop()


async def test_draft_with_another_tokenizer_is_refused_and_plain_decoding_goes_on(
    swarm: LocalSwarm,
    order: DraftOrder,
    plain: Sequence[Sequence[TokenEvent]],
    tmp_path: Path,
) -> None:
    other = save_tiny("llama", tmp_path / "other", num_hidden_layers=1)
    path = other / "tokenizer.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"Ġm": ', '"Ġmm": '), encoding="utf-8")
    drafter = Drafter(replace(order, draft=files_of(other)), CLOCK)
    client = await client_with(swarm, "other", drafter)
    with pytest.raises(ModelError, match="tokenizers differ in the tokens they have"):
        await generate(client, Speculation("model", 4))
    assert not drafter.may_start
    check_same(await generate(client, Speculation("auto")), plain)


async def test_settings_say_what_drafts_for_requests_that_do_not(
    swarm: LocalSwarm, drafter: Drafter, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    client = await client_with(swarm, "settings", drafter)
    for kind in ("model", "off"):
        client.follow(CONFIG.model_copy(update={"speculation": kind}))
        events = await generate(client)
        check_same(events, plain)
        assert bool(counts(events)[0]) is (kind == "model")


async def test_request_that_says_how_many_are_drafted_leaves_to_the_settings_by_what(
    swarm: LocalSwarm, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    client = await client_with(swarm, "wishes", None)
    for kind in ("ngram", "model"):
        client.follow(CONFIG.model_copy(update={"speculation": kind}))
        events = await generate(client, SpeculationWish(num_tokens=2))
        check_same(events, plain)
        drafted = [event.drafted_tokens for some in events for event in some]
        assert max(drafted) == (2 if kind == "ngram" else 0)


async def test_model_that_has_no_draft_here_is_said_to_have_none(swarm: LocalSwarm) -> None:
    client = await client_with(swarm, "none", None)
    with pytest.raises(RequestError, match="no draft for the model"):
        await generate(client, Speculation("model", 4))


class Text:
    """A sequence as a draft sees it."""

    def __init__(self, session: int, prompt_tokens: int) -> None:
        self.session = SessionId(session)
        self.prompt_tokens = prompt_tokens
        self.capacity_tokens = prompt_tokens + 64
        self.sampling = SamplingParams(temperature=0.8, seed=session)


async def test_long_text_is_read_in_pieces_between_proposals_for_others(drafter: Drafter) -> None:
    await drafter.ready()
    ids = [id_ % 500 for id_ in range(1500)]
    long, same, short = Text(1, len(ids)), Text(1, len(ids)), Text(3, 3)
    same.session = SessionId(2)
    done: list[str] = []

    async def ask(name: str, text: Text, ids: list[int]) -> list[TokenTree]:
        trees = await drafter.propose([Wanted(text, ids)], 4)
        done.append(name)
        return trees

    asked = [ask("long", long, ids), ask("short", short, [5, 6, 7])]
    (pieces, _) = await asyncio.gather(*asked)
    assert done == ["short", "long"]
    assert drafter.follows(long)
    for start in range(100, 1500, 200):  # as it grows, no step is long
        await drafter.propose([Wanted(same, ids[:start])], 1)
    assert await ask("again", same, ids) == pieces
    chains = await drafter.draw([Wanted(long, ids)], [3], whole=False)
    assert len(chains[0].ids) == 3
    drafter.close([long.session, same.session, short.session])


async def test_chain_that_the_process_has_not_drawn_fails_for_its_answer_alone(
    drafter: Drafter,
) -> None:
    await drafter.ready()
    pid, text, target = drafter.pid, Text(4, 3), np.full(512, 1 / 512, "<f2").tobytes()
    with pytest.raises(WorkerFailed, match="no longer knows the chain"):
        await drafter.draw_again(text, 0, target)
    (chain,) = await drafter.draw([Wanted(text, [5, 6, 7])], [2], whole=False)
    with pytest.raises(WorkerFailed, match="no longer knows the chain"):
        await drafter.draw_again(text, len(chain.ids), target)
    assert drafter.pid == pid
    assert drafter.is_ready
    drafter.close([text.session])


async def test_answer_goes_on_without_a_draft_whose_process_was_killed(
    swarm: LocalSwarm, drafter: Drafter, plain: Sequence[Sequence[TokenEvent]]
) -> None:
    await drafter.ready()
    client = await client_with(swarm, "killed", drafter)

    def kill(tokens: int) -> None:
        if tokens >= 6 and drafter.pid is not None:
            os.kill(drafter.pid, signal.SIGKILL)

    events = await generate(client, Speculation("model", 4), disturb=kill)
    check_same(events, plain)
    assert 0 < counts(events)[1] < len(PROMPTS) * NEW_TOKENS / 2
    assert drafter.pid is None
    assert not drafter.may_start  # not again and again
    with pytest.raises(WorkerFailed, match="nothing is drafted"):
        await generate(client, Speculation("model", 4))
    check_same(await generate(client, Speculation("auto")), plain)
