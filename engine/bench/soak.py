"""How the stages' memory grows while the swarm generates for a long time."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.bed import Bed, say
from engine.bench.measured import Measured
from engine.bench.report import Run, plain_run
from engine.bench.specs import Question
from engine.config import Config

_SAMPLE_EVERY_S = 10.0


class MemorySample(BaseModel):
    """One stage at one moment."""

    t_s: float
    stage: int
    """From 1."""
    rss_bytes: int
    """Resident: agent and worker together."""
    agent_bytes: int
    worker_bytes: int
    daemon_bytes: int
    """Resident: its libp2p daemon."""
    kv_bytes: int
    """KV caches of the sequences that were being generated."""


class MemoryBudget(BaseModel):
    """What one stage may take beyond what it began with."""

    stage: int
    kv_bytes: int
    kept_bytes: int
    """Of outputs kept for a replay."""


@dataclass(slots=True)
class _Now:
    """What is being generated."""

    tokens: int = 0


async def measure_soak(
    bed: Bed,
) -> tuple[list[Run], set[str], list[MemorySample], list[MemoryBudget]]:
    """Generate batches of changing size and length until the time is over.

    Raises:
        BenchFailed: A program failed.
    """
    await bed.swarm.start_client({})
    await bed.warm_up(bed.model.prompts)
    samples: list[MemorySample] = []
    now = _Now()
    sampler = asyncio.create_task(_sample(bed, samples, now))
    try:
        measured = await _keep_busy(bed, now)
    finally:
        sampler.cancel()
        await asyncio.gather(sampler, return_exceptions=True)
    tokens = sum(len(times) for one in measured for times in one.arrivals_s)
    seconds = sum(max(map(max, one.arrivals_s)) - one.started_s for one in measured)
    # Each generation is of another size, so only all of them together have a rate.
    rates = {"tokens_per_s": tokens / seconds, "repeats_tokens_per_s": []}
    run = plain_run("shoal", measured, bed.shape(0)).model_copy(update=rates)
    return [run], {run.ids_sha256}, samples, _budgets(bed)


async def _keep_busy(bed: Bed, now: _Now) -> list[Measured]:
    bench, source = bed.bench, random.Random(bed.bench.seed)  # noqa: S311 - nothing secret
    ends_s = time.monotonic() + bench.soak_s
    measured: list[Measured] = []
    while not measured or time.monotonic() < ends_s:
        rows = source.randint(1, max(bench.batch_sizes))
        prompt_tokens = source.randint(max(1, bench.prompt_tokens // 4), bench.prompt_tokens)
        new_tokens = source.randint(2, bench.new_tokens)
        prompts = source.sample(bed.model.prompts, rows)
        question = Question(
            prompts=[prompt[:prompt_tokens] for prompt in prompts],
            new_tokens=new_tokens,
            steady=False,
        )
        say(f"{rows} sequences of {prompt_tokens} and {new_tokens} tokens")
        now.tokens = rows * (prompt_tokens + new_tokens)
        measured.append(await bed.generate(question))
        now.tokens = 0
    return measured


async def _sample(bed: Bed, samples: list[MemorySample], now: _Now) -> None:
    started_s = time.monotonic()
    while True:
        tokens = now.tokens
        for number, member in enumerate(bed.swarm.stages, start=1):
            resident = await member.child.resident_bytes()
            samples.append(
                MemorySample(
                    t_s=round(time.monotonic() - started_s, 1),
                    stage=number,
                    rss_bytes=resident["program"] + resident["workers"],
                    agent_bytes=resident["program"],
                    worker_bytes=resident["workers"],
                    daemon_bytes=resident["others"],
                    kv_bytes=bed.model.kv_bytes(tokens, member.span),
                )
            )
        await asyncio.sleep(_SAMPLE_EVERY_S)


def _budgets(bed: Bed) -> list[MemoryBudget]:
    budgets = []
    for number, member in enumerate(bed.swarm.stages, start=1):
        stage = Config.model_validate(bed.swarm.settings_of(member)).stage
        budgets.append(
            MemoryBudget(
                stage=number, kv_bytes=stage.kv_budget_bytes, kept_bytes=stage.kept_budget_bytes
            )
        )
    return budgets
