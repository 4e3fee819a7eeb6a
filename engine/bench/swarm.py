"""`shoal bench swarm`: start a swarm, and what it is compared with; measure; report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from engine.bench import disturbed
from engine.bench.bed import Bed, compute_threads, say
from engine.bench.children import Child, Children, Program
from engine.bench.disturbed import Disturbance, measure_disturbed
from engine.bench.interference import Interference, chat_tokens, measure_interference
from engine.bench.peer_settings import settings_for
from engine.bench.placed import placed
from engine.bench.ready_model import ReadyModel, ready_model
from engine.bench.report import Run
from engine.bench.request import SwarmBench
from engine.bench.soak import MemoryBudget, MemorySample, measure_soak
from engine.bench.specs import LocalSpec
from engine.bench.steady import measure_steady
from engine.bench.swarm_processes import READY_LIMIT_S, SwarmPlan, start_swarm


class Settings(BaseModel):
    """What was measured, as it turned out."""

    model_id: str
    spans: list[tuple[int, int]]
    batch_size: int
    """The first of them, if there were several."""
    prompt_tokens: int
    new_tokens: int
    dtype: str
    device: str
    threads: int
    cores: int
    repeat: int
    seed: int
    env: str | None
    rate_bytes_per_s: float
    """Of every directed link, for the bound; 0: unlimited or unknown."""
    ring_delay_s: float
    """One-way delays on the way around the ring."""
    client_link: str
    """`ideal`: the client's links and the way back to the first stage have no limit or delay."""
    engine: dict[str, Any]
    """Settings of the engines that differ from the usual ones."""
    fail_rate: float
    emulate: dict[str, Any] | None
    """Stage time, and the rows and bytes that it is for."""


class Report(BaseModel):
    """What `--json` prints."""

    runs: list[Run]
    ratio: float | None = None
    """Tokens/s of the first run over the second's; null without a second."""
    ratios: dict[str, float] = {}
    """With several placements, tokens/s of the first one over each other's."""
    ids_equal: bool | None
    """Whether all repeats of all systems gave the same token ids; null where none are compared."""
    settings: Settings
    disturbance: Disturbance | None = None
    interference: Interference | None = None
    memory: list[MemorySample] = []
    memory_budget: list[MemoryBudget] = []

    @property
    def is_broken(self) -> bool:
        """Whether a promise was: in float32 all ids are equal; elsewhere batch shapes decide.

        An emulated model's ids depend on no shape.
        """
        must_be_equal = self.settings.dtype == "float32" or self.settings.emulate is not None
        failed = self.disturbance is not None and self.disturbance.failed > 0
        return failed or (must_be_equal and self.ids_equal is False)


async def measure(bench: SwarmBench) -> Report:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.check()
    if bench.placements:
        return merged([await measure(one) for one in placed(bench)])
    model = await ready_model(bench, say)
    threads = compute_threads(bench, model.machine)
    async with Children(bench.cores) as children:
        say(f"Starting {bench.stages} stages")
        # Failing transfers begin at once, so undisturbed ids must come from elsewhere.
        wants_local = bench.against == "local" or (bench.fail_rate and not bench.emulate)
        swarm, local = await asyncio.gather(
            start_swarm(children, _plan(bench, model, threads)),
            _start_local(children, model, threads) if wants_local else asyncio.sleep(0),
        )
        bed = Bed(bench, model, swarm)
        fields = await _measure(bed, children, local)
    return Report(settings=_settings(bench, model, threads), **fields)


def merged(reports: Sequence[Report]) -> Report:
    """One report of several placements of the same model; the settings are those of the first."""
    first, *others = runs = [run for report in reports for run in report.runs]
    are_equal = all(report.ids_equal for report in reports)
    return Report(
        runs=runs,
        ratios={run.placement: first.tokens_per_s / run.tokens_per_s for run in others},
        ids_equal=are_equal and len({run.ids_sha256 for run in runs}) == 1,
        settings=reports[0].settings,
    )


async def _measure(bed: Bed, children: Children, local: Child | None) -> dict[str, Any]:
    """The report's fields."""
    if bed.bench.soak_s:
        runs, _, samples, budgets = await measure_soak(bed)
        return {"runs": runs, "ids_equal": None, "memory": samples, "memory_budget": budgets}
    if bed.bench.long_prompt:
        found = await measure_interference(bed)
        return {"runs": [], "ids_equal": None, "interference": found}
    if bed.bench.disturbed:
        runs, hashes, disturbance = await measure_disturbed(bed, children, local)
        return {"runs": runs, "ids_equal": len(hashes) == 1, "disturbance": disturbance}
    runs, hashes = await measure_steady(bed, children, local)
    ratio = runs[0].tokens_per_s / runs[1].tokens_per_s if bed.bench.against else None
    return {"runs": runs, "ratio": ratio, "ids_equal": len(hashes) == 1}


def _plan(bench: SwarmBench, model: ReadyModel, threads: int) -> SwarmPlan:
    tokens = max(bench.batch_sizes) * (bench.prompt_tokens + bench.new_tokens)
    if bench.long_prompt:
        context = model.files.spec.max_position_embeddings
        chat = bench.prompt_tokens + chat_tokens(context, bench.prompt_tokens)
        tokens = bench.long_prompt + 1 + bench.chats * chat
    return SwarmPlan(
        source=model.source,
        model_id=model.files.spec.model_id,
        spans=model.spans,
        spares=disturbed.spare_spans(bench, model.spans),
        hosts=bench.stage_hosts,
        client_host=bench.client_host,
        settings=settings_for(bench, model, threads, tokens),
        models_dir=model.models_dir,
        host_exec=bench.host_exec,
        host_addr=bench.host_addr,
    )


async def _start_local(children: Children, model: ReadyModel, threads: int) -> Child:
    say("Starting the local reference")
    local = await children.launch("The local reference")
    spec = LocalSpec(
        directory=str(model.files.directory),
        dtype=model.machine.dtype_name,
        device=model.machine.device,
        threads=threads,
    )
    program = Program(
        ["engine.core.child_program", "engine.bench.local_reference", "{home}/spec.json"],
        {"spec.json": spec.model_dump_json().encode()},
        # As in our worker: with threads that spin, every other process on the cores would make the
        # reference several times slower, which flatters us.
        {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"},
        talks=True,
    )
    await local.start(program, READY_LIMIT_S)
    await children.first(local.answer("ready", READY_LIMIT_S))
    return local


def _settings(bench: SwarmBench, model: ReadyModel, threads: int) -> Settings:
    emulate = None
    if bench.emulate is not None:
        emulate = {
            "stage_s": bench.emulate.stage_s,
            "bytes": bench.emulate.payload_bytes,
            "rows": bench.rows_of_emulated_pass,
            "hidden_size": model.files.spec.hidden_size,
        }
    return Settings(
        model_id=model.files.spec.model_id,
        spans=[(span.start, span.end) for span in model.spans],
        batch_size=bench.batch_sizes[0],
        prompt_tokens=bench.prompt_tokens,
        new_tokens=bench.new_tokens,
        dtype=model.machine.dtype_name,
        device=model.machine.device,
        threads=threads,
        cores=len(bench.cores or os.sched_getaffinity(0)),
        repeat=bench.repeat,
        seed=bench.seed,
        env=bench.env,
        rate_bytes_per_s=bench.rate_bytes_per_s,
        ring_delay_s=bench.ring_delay_s,
        client_link="ideal" if bench.ideal_client_link else "shaped",
        engine={branch: dict(fields) for branch, fields in bench.settings.items()},
        fail_rate=bench.fail_rate,
        emulate=emulate,
    )
