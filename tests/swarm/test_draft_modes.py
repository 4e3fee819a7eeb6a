"""DSD, DSSD and DISCO through real stages and frames: what comes out follows the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from scipy.stats import chisquare

from engine.config import StageConfig
from engine.core.generation import DraftMode
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.sampling.rejection import normalised
from engine.server.replica_order import ReplicaOrder
from tests.support.drawn_rounds import Likelihoods, ManyRounds, likelihoods
from tests.support.local_swarm import LocalSwarm, local_swarm
from tests.support.tiny_draft import write_tiny_draft

SPANS = (Span(0, 2), Span(2, 4))
PROMPT = [5, 99, 301, 7]
PARAMS = SamplingParams(temperature=4.0, top_k=6, repetition_penalty=1.1, max_new_tokens=8)
GAMMA, ROUNDS, ROWS = 2, 6, 256
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
    after the commonest first one."""
    firsts = Counter(sample[0] for sample in samples)
    (common, _), *_ = firsts.most_common(1)
    seconds = Counter(s[1] for s in samples if len(s) > 1 and s[0] == common)
    return min(p_value(target, (), firsts), p_value(target, (common,), seconds))


def p_value(target: Likelihoods, path: tuple[int, ...], counts: Counter[int]) -> float:
    p = normalised(target.after(path))
    if not counts or any(p[token] == 0 for token in counts):
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


async def test_last_stage_that_has_another_draft_says_so_and_lets_the_client_draw(bed: Bed) -> None:
    node = ManyRounds(await bed.swarm.node("other"), SPANS, bed.draft, "0" * 64)
    samples = [s for n in range(ROUNDS) for s in await node.run(DraftMode.DISCO, n * ROWS, ROWS, 2)]
    assert node.no_replica == "The last stage has another draft for this model."
    assert node.refusals > 100
    assert chance(bed.target, samples) > SURE_ENOUGH
