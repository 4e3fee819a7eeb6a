"""The test bed: everything that a measurement of a swarm works with once it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from engine.bench.bounds import Limits
from engine.bench.children import Children
from engine.bench.measured import Measured
from engine.bench.peer_settings import settings_for
from engine.bench.ready_model import ReadyModel
from engine.bench.report import Shape
from engine.bench.request import SwarmBench
from engine.bench.specs import Question
from engine.bench.swarm_processes import RunningSwarm, SwarmPlan, start_swarm
from engine.node.compute import Compute

STEP_LIMIT_S = 30.0
"""Far beyond the time of one decode step; 16 tokens of prefill count as one."""
WARM_UP_TOKENS = 9
_BUSY_ROWS = 24
"""With so many for each stage, all of them compute at the same time."""


@dataclass(frozen=True, slots=True)
class Bed:
    """A running swarm, with what was asked for and the model."""

    bench: SwarmBench
    model: ReadyModel
    swarm: RunningSwarm

    async def generate(
        self, question: Question, on_reached: Callable[[Any], None] | None = None
    ) -> Measured:
        """One generation.

        Raises:
            OrderFailed: The swarm could not.
            BenchFailed: A program ended, or it took too long.
        """
        answer = await self.swarm.ask(question, time_limit_s(question), on_reached)
        return Measured.model_validate(answer)

    async def warm_up(self, prompts: Sequence[Sequence[int]]) -> Measured:
        """A short generation, so that nothing that is measured is done for the first time."""
        say(f"Warming up, {len(prompts)} sequences")
        tokens = min(WARM_UP_TOKENS, self.bench.new_tokens)
        return await self.generate(Question(prompts=list(map(list, prompts)), new_tokens=tokens))

    def limits(self) -> Limits:
        """What hardware and lines allow."""
        bench = self.bench
        stage_s = bench.emulate.stage_s if bench.emulate else 0.0
        return Limits(
            line_rate_bytes_per_s=bench.rate_bytes_per_s,
            machines=tuple(member.child.machine for member in self.swarm.stages),
            on_accelerator=self.model.machine.device != "cpu",
            emulated_tokens_per_s=bench.rows_of_emulated_pass / stage_s if stage_s else 0.0,
            ring_s=bench.ring_delay_s + bench.stages * stage_s,
            ideal_client_link=bench.ideal_client_link,
        )

    def shape(self, micro_batches: int) -> Shape:
        """For the report."""
        row_bytes = self.model.files.spec.hidden_size * self.model.element_bytes
        return Shape(micro_batches, row_bytes, self.bench.emulate is not None)


@asynccontextmanager
async def started(bench: SwarmBench, model: ReadyModel, kv_tokens: int) -> AsyncIterator[Bed]:
    """A swarm of stages alike, and its client; nothing of them outlives it.

    Args:
        bench: What was asked for.
        model: Ready.
        kv_tokens: The most tokens that run at once.

    Raises:
        ConfigError: What was asked for cannot be.
        BenchFailed: A process ended, failed or took too long.
    """
    threads = compute_threads(bench, model.machine)
    async with Children(bench.cores) as children:
        say(f"Starting {bench.stages} stages")
        plan = SwarmPlan(
            source=model.source,
            model_id=model.files.spec.model_id,
            spans=model.spans,
            spares=[],
            hosts=bench.stage_hosts,
            client_host=bench.client_host,
            settings=settings_for(bench, model, threads, kv_tokens),
            models_dir=model.models_dir,
            host_exec=bench.host_exec,
            host_addr=bench.host_addr,
        )
        bed = Bed(bench, model, await start_swarm(children, plan))
        await bed.swarm.start_client({})
        yield bed


def time_limit_s(question: Question) -> float:
    """Far more than the generation takes anywhere."""
    steps = question.new_tokens + sum(len(prompt) for prompt in question.prompts) / 16
    return STEP_LIMIT_S * (1 + steps)


def compute_threads(bench: SwarmBench, machine: Compute) -> int:
    """Compute threads of every process.

    All cores they may use, one per physical core. A large batch keeps all stages busy at once: then
    those that are on this machine share its cores.
    """
    if bench.threads is not None:
        return bench.threads
    usable = len(bench.cores or os.sched_getaffinity(0))
    cores = min(usable, psutil.cpu_count(logical=False) or usable)
    if bench.against or bench.host_exec or min(bench.batch_sizes) < _BUSY_ROWS * bench.stages:
        return cores
    return max(1, cores // bench.stages)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"{text} …", file=sys.stderr, flush=True)
