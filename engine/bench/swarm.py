"""`shoal bench swarm`: start a swarm and what it is compared with, measure them alternately."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel

from engine.bench.children import Child, Children, Machine, Program
from engine.bench.measured import Measured
from engine.bench.prompts import make_prompts
from engine.bench.quantities import LinkShaping
from engine.bench.report import Limits, Run, local_run, swarm_run
from engine.bench.specs import LocalSpec, Question
from engine.bench.swarm_processes import READY_LIMIT_S, RunningSwarm, SwarmPlan, start_swarm
from engine.config import ModelConfig, StageConfig
from engine.core.errors import ConfigError
from engine.core.plans import Span
from engine.localapi.running import Home
from engine.localapi.schema import Progress
from engine.models.layout import ModelFiles
from engine.models.prepare import prepare
from engine.models.tokenizer import ChatTokenizer
from engine.node import compute
from engine.node.compute import Compute
from engine.planner.placement import even_spans
from engine.protocol.frames import ELEMENT_BYTES

STEP_LIMIT_S = 30.0
"""Far beyond the time of one decode step; 16 tokens of prefill count as one."""
WARM_UP_TOKENS = 9
_KV_MARGIN = 1.05


@dataclass(frozen=True, slots=True)
class SwarmBench:
    """What was asked for on the command line."""

    model: str
    stages: int
    batch_size: int
    prompt_tokens: int
    new_tokens: int
    model_config: ModelConfig
    link: LinkShaping | None = None
    line_rate_bytes_per_s: float = 0.0
    """What the hosts' own links carry, for the bound; 0: unknown."""
    host_exec: str | None = None
    host_addr: str | None = None
    against: str | None = None
    threads: int | None = None
    cores: tuple[int, ...] | None = None
    repeat: int = 1
    seed: int = 0


class Settings(BaseModel):
    """What was measured, as it turned out."""

    model_id: str
    spans: list[tuple[int, int]]
    batch_size: int
    prompt_tokens: int
    new_tokens: int
    dtype: str
    device: str
    threads: int
    cores: int
    repeat: int


class Report(BaseModel):
    """What `--json` prints."""

    runs: list[Run]
    ratio: float | None
    """Tokens/s of the first run over the second's; null without a second."""
    ids_equal: bool
    """Whether all repeats of all systems gave the same token ids."""
    settings: Settings


@dataclass(frozen=True, slots=True)
class _Model:
    """The model, ready on this machine."""

    source: str
    files: ModelFiles
    machine: Compute
    models_dir: Path
    spans: list[Span]
    prompts: list[list[int]]


async def measure(bench: SwarmBench) -> Report:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    model = await _prepare(bench)
    threads = _threads(bench, model.machine)
    async with Children(bench.cores) as children:
        against = bench.against == "local"
        swarm, local = await asyncio.gather(
            _start(children, bench, model, threads),
            _start_local(children, model, threads) if against else asyncio.sleep(0),
        )
        say("Warming up")
        warm_ups = [
            await _ask(children, swarm.client, model.prompts[:rows], _warm_up_tokens(bench))
            for rows in _micro_batches(bench.batch_size)
        ]
        if local is not None:
            await _ask(children, local, model.prompts, _warm_up_tokens(bench))
        ours: list[Measured] = []
        theirs: list[Measured] = []
        for number in range(1, bench.repeat + 1):
            say(f"Measuring, {number} of {bench.repeat}")
            ours.append(await _ask(children, swarm.client, model.prompts, bench.new_tokens))
            if local is not None:
                theirs.append(await _ask(children, local, model.prompts, bench.new_tokens))
    machines = tuple(stage.machine for stage in swarm.stages)
    runs = [swarm_run("shoal", ours, warm_ups, _limits(bench, model, machines, threads))]
    if theirs:
        runs.append(local_run("local", theirs))
    return _report(runs, {measured.ids_sha256 for measured in (*ours, *theirs)}, bench, model)


async def _prepare(bench: SwarmBench) -> _Model:
    machine = await asyncio.to_thread(compute.choose, bench.model_config)
    source = _source(bench.model)
    models_dir = Home.from_environment().models_dir
    say(f"Preparing {bench.model}")
    files = await prepare(source, models_dir, machine.dtype_name, None, _show)
    spec = files.spec
    if bench.prompt_tokens + bench.new_tokens > spec.max_position_embeddings:
        raise ConfigError(
            f"{bench.prompt_tokens} prompt and {bench.new_tokens} new tokens exceed the context of "
            f"{spec.name}, {spec.max_position_embeddings} tokens; ask for fewer."
        )
    try:
        spans = even_spans(spec.num_hidden_layers, bench.stages)
    except ValueError as error:
        raise ConfigError(
            f"{spec.name} has {spec.num_hidden_layers} blocks, so it cannot be spread over "
            f"{bench.stages} stages; choose fewer."
        ) from error
    whole = Span(0, spec.num_hidden_layers)
    files = await prepare(source, models_dir, machine.dtype_name, whole, _show)
    tokenizer = await asyncio.to_thread(ChatTokenizer.load, files.directory)
    try:
        prompts = make_prompts(
            tokenizer.encode,
            spec.vocab_size,
            batch_size=bench.batch_size,
            prompt_tokens=bench.prompt_tokens,
            seed=bench.seed,
        )
    except ValueError as error:
        raise ConfigError(f"The prompts cannot be made: {error}; ask for longer ones.") from error
    return _Model(source, files, machine, models_dir, spans, prompts)


def _source(model: str) -> str:
    # The engines may run in another folder.
    return str(Path(model).absolute()) if Path(model).is_dir() else model


async def _start(
    children: Children, bench: SwarmBench, model: _Model, threads: int
) -> RunningSwarm:
    say(f"Starting {bench.stages} stages and a client")
    shape = bench.link
    tokens = bench.batch_size * (bench.prompt_tokens + bench.new_tokens)
    element_bytes = ELEMENT_BYTES[model.machine.dtype]
    longest = max(len(span) for span in model.spans)
    kv_bytes = tokens * model.files.spec.kv_bytes_per_token(longest, element_bytes) * _KV_MARGIN
    usual = StageConfig()
    settings: dict[str, dict[str, Any]] = {
        "model": {"dtype": model.machine.dtype_name, "device": model.machine.device},
        "stage": {
            "threads": threads,
            "kv_budget_bytes": max(usual.kv_budget_bytes, math.ceil(kv_bytes)),
            "max_batch_rows": max(usual.max_batch_rows, bench.batch_size),
        },
    }
    if shape is not None:
        settings["swarm"] = {
            "shape": {"rate_bytes_per_s": shape.rate_bytes_per_s, "delay_s": shape.delay_s}
        }
    plan = SwarmPlan(
        model.source,
        model.files,
        model.spans,
        settings,
        model.models_dir,
        bench.host_exec,
        bench.host_addr,
    )
    return await start_swarm(children, plan)


async def _start_local(children: Children, model: _Model, threads: int) -> Child:
    say("Starting the local reference")
    local = await children.launch("The local reference")
    spec = LocalSpec(
        directory=str(model.files.directory),
        dtype=model.machine.dtype_name,
        device=model.machine.device,
        threads=threads,
    )
    program = Program(
        ["engine.bench.local_reference", "{home}/spec.json"],
        {"spec.json": spec.model_dump_json().encode()},
        # As in our worker: with threads that spin, every other process on the cores would make the
        # reference several times slower, which flatters us.
        {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"},
        talks=True,
    )
    await local.start(program, READY_LIMIT_S)
    await children.first(local.answer("ready", READY_LIMIT_S))
    return local


async def _ask(
    children: Children, child: Child, prompts: list[list[int]], new_tokens: int
) -> Measured:
    steps = new_tokens + sum(len(prompt) for prompt in prompts) / 16
    question = Question(prompts=prompts, new_tokens=new_tokens)
    answer = await children.first(child.ask(question.model_dump(), STEP_LIMIT_S * (1 + steps)))
    return Measured.model_validate(answer)


def _threads(bench: SwarmBench, machine: Compute) -> int:
    """Compute threads of every process: all cores they may use, one per physical core."""
    if bench.threads is not None:
        return bench.threads
    usable = len(bench.cores or os.sched_getaffinity(0))
    return min(usable, psutil.cpu_count(logical=False) or usable)


def _micro_batches(batch_size: int) -> list[int]:
    """Sizes tried for the compute bound, the largest last."""
    return sorted({batch_size, math.ceil(batch_size / 2), math.ceil(batch_size / 4)})


def _warm_up_tokens(bench: SwarmBench) -> int:
    return min(WARM_UP_TOKENS, bench.new_tokens)


def _limits(bench: SwarmBench, model: _Model, machines: Sequence[Machine], threads: int) -> Limits:
    rate = bench.line_rate_bytes_per_s or (bench.link.rate_bytes_per_s if bench.link else 0.0)
    if model.machine.device == "cpu":
        return Limits(rate, tuple(machines), threads)
    # Stages on one machine share its accelerator.
    return Limits(rate, tuple(Machine(machine.id, 1) for machine in machines), 1)


def _report(runs: list[Run], hashes: set[str], bench: SwarmBench, model: _Model) -> Report:
    return Report(
        runs=runs,
        ratio=runs[0].tokens_per_s / runs[1].tokens_per_s if len(runs) > 1 else None,
        ids_equal=len(hashes) == 1,
        settings=Settings(
            model_id=model.files.spec.model_id,
            spans=[(span.start, span.end) for span in model.spans],
            batch_size=bench.batch_size,
            prompt_tokens=bench.prompt_tokens,
            new_tokens=bench.new_tokens,
            dtype=model.machine.dtype_name,
            device=model.machine.device,
            threads=_threads(bench, model.machine),
            cores=len(bench.cores or os.sched_getaffinity(0)),
            repeat=bench.repeat,
        ),
    )


def must_be_equal(report: Report) -> bool:
    """Whether ids that differ break a promise: in float32 they do, elsewhere batch shapes decide."""
    return report.settings.dtype == "float32"


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"{text} …", file=sys.stderr, flush=True)


def _show(progress: Progress) -> None:
    if progress.total and progress.done >= progress.total:
        say(progress.what.removesuffix("."))
