"""DSD, DSSD and DISCO through real stages and frames: what comes out follows the target."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from scipy.stats import chisquare

from engine.client.client import Client
from engine.client.drafter import Drafter
from engine.client.drafting import drafting_for
from engine.config import ClientConfig, StageConfig
from engine.core.errors import RequestError
from engine.core.generation import DraftMode, FinishReason, Speculation, TokenEvent
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.rejection import normalised
from engine.server.replica_order import ReplicaOrder
from engine.speculation.worker_process import DraftOrder
from tests.support.drawn_rounds import Likelihoods, ManyRounds, likelihoods
from tests.support.local_swarm import CLOCK, LocalSwarm, collect, local_swarm
from tests.support.tiny_draft import write_tiny_draft

SPANS = (Span(0, 2), Span(2, 4))
PROMPT = [5, 99, 301, 7]
PARAMS = SamplingParams(temperature=4.0, top_k=6, repetition_penalty=1.1, max_new_tokens=8)
GAMMA, ROUNDS, ROWS = 2, 4, 256
SURE_ENOUGH = 1e-4
"""Chance of a right rule to fail; the seeds are fixed, so it either does or does not."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class Bed:
    swarm: LocalSwarm
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
        yield Bed(swarm, sha256, *likelihoods(tiny, swarm.spec, folder, PARAMS, PROMPT))


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
    use = bed.swarm.stages[-1].handler.pace.replica
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
    folder = bed.swarm.replica.directory
    assert folder is not None
    order = DraftOrder(ModelFiles(bed.swarm.spec, tiny, ""), folder, threads=1)
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


async def test_log_probabilities_and_other_drafts_are_refused_with_a_mode(
    bed: Bed, drafter: Drafter
) -> None:
    params = [replace(ASKED[0], logprobs=1)]
    with pytest.raises(RequestError, match="shared_noise alone"):
        await answers(bed, "logprobs", drafter, DraftMode.DISCO, params)
    for kind in ("ngram", "auto", "off"):
        with pytest.raises(RequestError, match="draft set to model"):
            drafting_for(Speculation(kind, mode=DraftMode.DSD), drafter)


async def test_draft_that_dies_while_it_shall_draw_again_ends_drafting_and_no_answer(
    bed: Bed, drafter: Drafter
) -> None:
    links = await bed.swarm.node("dies")
    client = Client(links, bed.swarm, bed.swarm.spec, ClientConfig(), CLOCK, drafter)
    got = 0
    speculation = Speculation("model", 4, mode=DraftMode.DSSD)
    async for _ in client.generate(PROMPTS[:1], ASKED[:1], speculation=speculation):
        got += 1
        if got == 5:
            os.kill(drafter.pid or 0, signal.SIGKILL)
    assert got == 30


async def test_last_stage_that_has_another_draft_says_so_and_lets_the_client_draw(bed: Bed) -> None:
    node = ManyRounds(await bed.swarm.node("other"), SPANS, bed.draft, "0" * 64)
    samples = [s for n in range(ROUNDS) for s in await node.run(DraftMode.DISCO, n * ROWS, ROWS, 2)]
    assert node.no_replica == "The last stage has another draft for this model."
    assert node.refusals > 100
    assert chance(bed.target, samples) > SURE_ENOUGH
