"""DSD, DSSD and DISCO through real stages and frames: what comes out follows the target."""

from __future__ import annotations

import math
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from scipy.stats import chisquare

from engine.client.client import Client
from engine.client.drafter import Drafter
from engine.client.drafting import Drafting, drafting_for
from engine.client.steering import BY_PROBABILITIES, LOOKUPS, MODELS
from engine.config import ClientConfig, StageConfig
from engine.core.errors import RequestError
from engine.core.generation import DraftMode, FinishReason, Speculation, TokenEvent
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.rejection import normalised
from engine.server.replica_order import ReplicaOrder
from engine.speculation.controller import Decision, Reason
from engine.speculation.costs import PLAIN, SLOW_BYTES_PER_S, Costs, Option, Source
from engine.speculation.estimates import Timing
from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.worker_process import DraftOrder
from tests.support.drawn_rounds import Likelihoods, ManyRounds, likelihoods
from tests.support.local_swarm import CLOCK, LocalSwarm, collect, local_swarm
from tests.support.losing_stages import at, lose
from tests.support.swarm import eventually
from tests.support.tiny_draft import write_tiny_draft

SPANS = (Span(0, 2), Span(2, 4))
SPARES = ("spare0", "spare1")
PROMPT = [5, 99, 301, 7]
PARAMS = SamplingParams(temperature=4.0, top_k=6, repetition_penalty=1.1, max_new_tokens=8)
GAMMA, ROUNDS, ROWS = 2, 4, 256
SURE_ENOUGH = 1e-4
"""Chance of a right rule to fail; the seeds are fixed, so it either does or does not."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class Bed:
    swarm: LocalSwarm
    folder: Path
    sha256: str
    target: Likelihoods
    draft: Likelihoods


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bed(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bed]:
    folder = tmp_path_factory.mktemp("drafts") / "tiny"
    config = StageConfig(max_batch_tokens=512, kv_budget_bytes=64 << 20)
    async with local_swarm(tiny, config=config) as swarm:
        sha256 = write_tiny_draft(folder, tiny, swarm.spec, wrong=0.03)
        swarm.replica = ReplicaOrder(32 << 20, folder, sha256)
        for index, span in enumerate(SPANS):
            await swarm.add_stage(f"s{index}", span)
        swarm.replica = None
        for name, span in zip(SPARES, SPANS, strict=True):
            await swarm.add_stage(name, span)
        swarm.hidden = set(SPARES)
        yield Bed(swarm, folder, sha256, *likelihoods(tiny, swarm.spec, folder, PARAMS, PROMPT))


async def committed(
    bed: Bed, name: str, mode: DraftMode, **options: float
) -> tuple[list[list[int]], ManyRounds]:
    node = ManyRounds(await bed.swarm.node(name), SPANS, bed.draft, bed.sha256, **options)
    samples: list[list[int]] = []
    for number in range(ROUNDS):
        samples += await node.run(mode, number * ROWS, ROWS, GAMMA)
    return samples, node


def chance(target: Likelihoods, samples: Sequence[Sequence[int]]) -> float:
    """How likely counts as uneven are in a draw from the target: of the first tokens, and of those
    after the first one that is followed most often."""
    firsts = Counter(sample[0] for sample in samples)
    followed = [sample for sample in samples if len(sample) > 1]
    ((common, _),) = Counter(sample[0] for sample in followed).most_common(1)
    seconds = Counter(sample[1] for sample in followed if sample[0] == common)
    return min(p_value(target, (), firsts), p_value(target, (common,), seconds))


def p_value(target: Likelihoods, path: tuple[int, ...], counts: Counter[int]) -> float:
    p = normalised(target.after(path))
    if any(p[token] == 0 for token in counts):
        return 0.0
    possible = np.flatnonzero(p)
    observed = np.array([counts[int(token)] for token in possible])
    return float(chisquare(observed, p[possible] / p[possible].sum() * observed.sum()).pvalue)


@pytest.mark.parametrize("mode", [DraftMode.DSD, DraftMode.DSSD, DraftMode.DISCO])
async def test_what_a_round_commits_follows_the_target(bed: Bed, mode: DraftMode) -> None:
    samples, node = await committed(bed, f"honest-{mode}", mode)
    assert chance(bed.target, samples) > SURE_ENOUGH
    lengths = Counter(len(sample) for sample in samples)
    assert min(lengths[length] for length in (1, 2, 3)) > 20  # tokens were refused and accepted
    assert node.no_replica == ""
    assert (node.refusals > 0) == (mode is DraftMode.DSSD)


async def test_replica_has_seen_what_clients_drew_from(bed: Bed) -> None:
    node = ManyRounds(await bed.swarm.node("measured"), SPANS, bed.draft, bed.sha256)
    await node.run(DraftMode.DISCO, 0, ROWS, GAMMA)
    use = bed.swarm.stages[1].handler.pace.replica
    assert use.rounds > 50
    assert use.disagreements == 0
    assert use.max_difference < 1e-3  # a step of a two-byte number below 1
    assert bed.swarm.stages[0].handler.pace.replica.rounds == 0


async def test_client_that_lies_bends_its_own_answers_and_no_others(bed: Bed) -> None:
    liar, _ = await committed(bed, "liar", DraftMode.DSSD, told_share=4.0)
    assert chance(bed.target, liar) < SURE_ENOUGH
    honest, _ = await committed(bed, "beside-the-liar", DraftMode.DISCO)
    assert chance(bed.target, honest) > SURE_ENOUGH


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def drafter(bed: Bed, tiny: Path) -> AsyncIterator[Drafter]:
    order = DraftOrder(ModelFiles(bed.swarm.spec, tiny, ""), bed.folder, threads=1)
    drafter = Drafter(order, CLOCK)
    yield drafter
    await drafter.stop()


ASKED = [
    SamplingParams(temperature=4.0, top_k=6, repetition_penalty=1.1, seed=3, max_new_tokens=30),
    SamplingParams(max_new_tokens=12),
    SamplingParams(temperature=4.0, top_k=6, seed=4, max_new_tokens=30),
]
PROMPTS = [PROMPT, [7, 8, 9], [20, 21, 22, 23, 24]]


async def answers(
    bed: Bed,
    name: str,
    drafter: Drafter,
    mode: DraftMode,
    params: Sequence[SamplingParams] = ASKED,
) -> list[list[TokenEvent]]:
    links = await bed.swarm.node(name)
    client = Client(links, bed.swarm, bed.swarm.spec, ClientConfig(), CLOCK, drafter)
    events: list[list[TokenEvent]] = [[] for _ in params]
    speculation = Speculation("model", 4, mode=mode)
    prompts = PROMPTS[: len(params)]
    async for index, event in client.generate(prompts, params, speculation=speculation):
        events[index].append(event)
    return events


def ids_of(events: Sequence[Sequence[TokenEvent]]) -> list[list[int]]:
    return [[event.id for event in some] for some in events]


async def test_client_answers_in_every_mode_and_greedy_answers_are_plain_ones(
    bed: Bed, drafter: Drafter
) -> None:
    plain = await collect(await bed.swarm.add_client("plain"), PROMPTS, ASKED)
    of_mode = {mode: await answers(bed, f"asks-{mode}", drafter, mode) for mode in DraftMode}
    assert ids_of(of_mode[DraftMode.SHARED]) == ids_of(plain)
    for mode, events in of_mode.items():
        assert [len(some) for some in events] == [30, 12, 30]
        assert [some[-1].finish for some in events] == [FinishReason.LENGTH] * 3
        assert ids_of(events)[1] == ids_of(plain)[1]
        sampled = [*events[0], *events[2]]
        assert 0 < sum(e.accepted_tokens for e in sampled) < sum(e.drafted_tokens for e in sampled)
        assert {e.mode for e in sampled if e.drafted_tokens} == {mode}
    # The three draw by the same numbers; only the way in which q or p travels is another.
    one, two, three = (ids_of(of_mode[mode]) for mode in list(DraftMode)[1:])
    assert one == two == three != ids_of(plain)


async def test_stop_token_that_the_client_draws_itself_ends_the_answer(
    bed: Bed, drafter: Drafter
) -> None:
    (events, *_) = await answers(bed, "whole", drafter, DraftMode.DSSD)
    drawn = next(e for e in events[3:] if e.drafted_tokens > e.accepted_tokens)
    end = events.index(drawn)
    assert drawn.id not in ids_of([events[:end]])[0]
    params = [replace(ASKED[0], stop_token_ids=(drawn.id,))]
    (stopped,) = await answers(bed, "stopped", drafter, DraftMode.DSSD, params)
    assert ids_of([stopped]) == ids_of([events[: end + 1]])
    assert stopped[-1].finish is FinishReason.STOP


async def test_log_probabilities_are_refused_with_a_mode(bed: Bed, drafter: Drafter) -> None:
    params = [replace(ASKED[0], logprobs=1)]
    with pytest.raises(RequestError, match="cannot be had with this draft_mode"):
        await answers(bed, "logprobs", drafter, DraftMode.DISCO, params)


async def test_last_stage_that_has_another_draft_says_so_and_lets_the_client_draw(bed: Bed) -> None:
    node = ManyRounds(await bed.swarm.node("other"), SPANS, bed.draft, "0" * 64)
    samples = [s for n in range(ROUNDS) for s in await node.run(DraftMode.DISCO, n * ROWS, ROWS, 2)]
    assert node.no_replica == "The last stage has another draft for this model."
    assert node.refusals > 100
    assert chance(bed.target, samples) > SURE_ENOUGH


SURE = [
    SamplingParams(temperature=1.0, top_k=1, repetition_penalty=1.3, max_new_tokens=30),
    SamplingParams(temperature=1.0, top_k=1, repetition_penalty=1.3, seed=2, max_new_tokens=30),
]
"""Nothing is left to chance: whatever is drawn, refused and drawn again, one answer alone is right."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sure(bed: Bed) -> list[list[int]]:
    return ids_of(await collect(await bed.swarm.add_client("sure"), PROMPTS[:2], SURE))


async def sure_client(bed: Bed, name: str, drafter: Drafter) -> Client:
    await drafter.ready()
    config = ClientConfig(reuse_prefixes=False, speculation="off")
    return Client(await bed.swarm.node(name), bed.swarm, bed.swarm.spec, config, CLOCK, drafter)


async def sure_answers(
    bed: Bed,
    client: Client,
    drafting: Drafting | None,
    see: Callable[[int], None] = lambda tokens: None,
) -> list[list[TokenEvent]]:
    """`see` is told how long the first one is."""
    events: list[list[TokenEvent]] = [[] for _ in SURE]
    async for index, event in client.generate(PROMPTS[:2], SURE, drafting=drafting):
        events[index].append(event)
        see(len(events[0]))
    for stage in bed.swarm.stages:
        bed.swarm.restore(stage.peer)
    bed.swarm.hidden = set(SPARES)
    return events


def modes_of(events: Sequence[TokenEvent]) -> set[DraftMode]:
    return {event.mode for event in events if event.drafted_tokens}


@pytest.mark.parametrize("place", [0, 1], ids=["first_stage", "last_stage"])
@pytest.mark.parametrize("mode", [DraftMode.DSD, DraftMode.DSSD, DraftMode.DISCO])
async def test_stage_that_dies_between_drawn_rounds_is_replaced_and_the_answer_is_whole(
    bed: Bed, drafter: Drafter, sure: list[list[int]], mode: DraftMode, place: int
) -> None:
    lost = at(7, lambda: lose(bed.swarm, bed.swarm.stages[place]))
    drafting = drafting_for(Speculation("model", 4, mode=mode), drafter, SURE)
    client = await sure_client(bed, f"{mode}-{place}", drafter)
    events = await sure_answers(bed, client, drafting, lost)
    assert ids_of(events) == sure
    assert client.recoveries.stages_replaced == 1
    for some in events:
        assert any(event.drafted_tokens > event.accepted_tokens for event in some)
        assert mode in modes_of(some[:7])
    # The last stage that takes over has no replica of the draft.
    changes = mode is DraftMode.DISCO and place == 1
    assert modes_of(events[0][-8:]) == {DraftMode.DSSD if changes else mode}


@pytest.mark.parametrize("mode", [DraftMode.DSSD, DraftMode.DISCO])
@pytest.mark.parametrize("place", [0, 1], ids=["first_stage", "last_stage"])
async def test_stage_that_dies_while_the_client_draws_again_is_replaced_and_the_answer_is_whole(
    bed: Bed,
    drafter: Drafter,
    sure: list[list[int]],
    mode: DraftMode,
    place: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spares = bed.swarm.stages[2:]
    first = spares if mode is DraftMode.DISCO else bed.swarm.stages[:2]  # it has no replica there
    bed.swarm.hidden = {stage.peer for stage in bed.swarm.stages} - {s.peer for s in first}
    client = await sure_client(bed, f"again-{mode}-{place}", drafter)
    honest, drawn = drafter.draw_again, 0

    async def draw_again(*asked: Any) -> int:
        nonlocal drawn
        drawn += 1
        if drawn == 2:
            lose(bed.swarm, first[place])
            await eventually(lambda: client.recoveries.seconds)
        return await honest(*asked)

    monkeypatch.setattr(drafter, "draw_again", draw_again)
    drafting = drafting_for(Speculation("model", 4, mode=mode), drafter, SURE)
    events = await sure_answers(bed, client, drafting)
    assert ids_of(events) == sure
    assert drawn >= 2
    assert client.recoveries.stages_replaced == 1


class Fickle:
    """Takes another way to draft in each round, then none for a while, whatever happens."""

    ways = (PLAIN, PLAIN, *BY_PROBABILITIES[1::3], MODELS[1], *BY_PROBABILITIES[:2], LOOKUPS[0])

    def __init__(self, costs: Costs, timing: Timing) -> None:
        self.costs = costs
        self.rounds: list[Option] = []

    def set_costs(self, costs: Costs) -> None:
        self.costs = costs

    def choose(self, silent: Collection[Source] = ()) -> Decision:
        return Decision(self.ways[len(self.rounds) % len(self.ways)], Reason.PAYS, 1.0)

    def observe(self, option: Option, committed: float, round_s: float) -> None:
        self.rounds.append(option)

    def observe_guesses(self, option: Option, guessed: int, right: int) -> None:
        pass

    def disturbed(self, round_s: float) -> None:
        pass


async def test_modes_that_change_within_an_answer_leave_it_right(
    bed: Bed, drafter: Drafter, sure: list[list[int]]
) -> None:
    policies: list[Fickle] = []
    told_s = bed.swarm.stages[1].handler.pace.replica.mean_s

    def policy(costs: Costs, timing: Timing) -> Fickle:
        policies.append(Fickle(costs, timing))
        return policies[-1]

    drafting = Drafting(PromptLookup, 8, policy, drafter, wants_replica=True)
    events = await sure_answers(bed, await sure_client(bed, "fickle", drafter), drafting)
    assert ids_of(events) == sure
    assert set().union(*map(modes_of, events)) >= set(DraftMode)
    # What rounds of each mode take is known as far as it can be: of the line nothing, of the replica what
    # the last stage has told.
    costs = policies[0].costs
    assert costs.vocab_size == bed.swarm.spec.vocab_size
    assert costs.up_bytes_per_s == costs.down_bytes_per_s == SLOW_BYTES_PER_S
    assert 0 < costs.replica_s == pytest.approx(told_s)


async def test_where_the_last_stage_has_no_replica_it_is_not_counted_on(
    bed: Bed, drafter: Drafter, sure: list[list[int]]
) -> None:
    costs: list[Costs] = []

    def policy(seen: Costs, timing: Timing) -> Fickle:
        costs.append(seen)
        return Fickle(seen, timing)

    bed.swarm.hidden = {stage.peer for stage in bed.swarm.stages} - set(SPARES)
    drafting = Drafting(PromptLookup, 8, policy, drafter, wants_replica=True)
    events = await sure_answers(bed, await sure_client(bed, "none", drafter), drafting)
    assert ids_of(events) == sure
    assert costs[0].replica_s == math.inf


async def test_controller_may_choose_the_mode_where_a_request_lets_it(
    bed: Bed, drafter: Drafter, sure: list[list[int]]
) -> None:
    drafting = drafting_for(Speculation("auto", mode="auto"), drafter, SURE)
    events = await sure_answers(bed, await sure_client(bed, "auto", drafter), drafting)
    assert ids_of(events) == sure


async def test_draft_that_dies_while_it_shall_draw_again_ends_drafting_and_no_answer(
    bed: Bed, drafter: Drafter
) -> None:
    links = await bed.swarm.node("dies")
    client = Client(links, bed.swarm, bed.swarm.spec, ClientConfig(), CLOCK, drafter)
    got = 0  # the last test here: after a failure nothing drafts for a while
    speculation = Speculation("model", 4, mode=DraftMode.DSSD)
    async for _ in client.generate(PROMPTS[:1], ASKED[:1], speculation=speculation):
        got += 1
        if got == 5:
            os.kill(drafter.pid or 0, signal.SIGKILL)
    assert got == 30
