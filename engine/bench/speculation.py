"""`shoal bench speculation`: what drafts save, beside the same answers without, in the same run."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.bed import Bed, compute_threads, say
from engine.bench.children import Children
from engine.bench.measured import Counters, Measured
from engine.bench.peer_settings import settings_for
from engine.bench.ready_model import ready_model
from engine.bench.request import SwarmBench
from engine.bench.specs import Question
from engine.bench.speculation_prompts import PromptKind, speculation_prompts
from engine.bench.swarm_processes import SwarmPlan, start_swarm
from engine.core.generation import MAX_DRAFT_TOKENS, Speculation
from engine.models.tokenizer import ChatTokenizer
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.rows import ROW_BYTES

WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Work:
    """What is compared with plain decoding."""

    kinds: tuple[PromptKind, ...]
    ways: tuple[Speculation, ...]
    """How to draft."""


class Row(BaseModel):
    """One way to draft for one kind of prompts, beside plain decoding of the same prompts."""

    link: str
    batch: int
    prompts: PromptKind
    mode: str
    draft: str
    draft_tokens: int
    """The most for a round; `auto` decides itself."""
    speedup: float
    """Decode time of plain over that of speculative decoding, median over the pairs."""
    speedup_interval: tuple[float, float]
    """In which the median lies: 19 times of 20 from 6 pairs on, else from the least to the most."""
    acceptance: float
    """Accepted over drafted tokens."""
    tokens_per_round: float
    """That are committed, the target's own included."""
    drafted_per_round: float
    up_bytes_per_round: float
    """Of one sequence: ids and parents of drafts. With a batch of one exact, with more the frames'
    headers are in it, as far as rows do not share them; with `auto` all of the rows' frames."""
    down_bytes_per_round: float
    """The same of answers. Framing comes on top, per row 24 bytes and per frame 36."""
    round_ms: float
    compute_ms: float
    """Of a pass, through all stages."""
    draft_ms: float
    rest_ms: float
    """Lines, their daemons, waiting, the agents."""
    plain_step_ms: float
    plain_compute_ms: float
    ids_equal: bool


class SpeculationReport(BaseModel):
    """What `--json` prints."""

    rows: list[Row]
    model_id: str
    spans: list[tuple[int, int]]
    new_tokens: int
    dtype: str
    pairs: int

    @property
    def ids_equal(self) -> bool:
        """Whether drafts changed no token."""
        return all(row.ids_equal for row in self.rows)


async def measure(bench: SwarmBench, work: Work) -> SpeculationReport:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.check()
    model = await ready_model(bench, say)
    tokenizer = await asyncio.to_thread(ChatTokenizer.load, model.files.directory)
    most = max(bench.batch_sizes)
    prompts = {
        kind: speculation_prompts(tokenizer.encode_chat, kind, most * bench.repeat, bench.seed)
        for kind in work.kinds
    }
    longest = max(len(prompt) for some in prompts.values() for prompt in some)
    room = most * (longest + bench.new_tokens + MAX_DRAFT_TOKENS)
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
            settings=settings_for(bench, model, threads, room),
            models_dir=model.models_dir,
            host_exec=bench.host_exec,
            host_addr=bench.host_addr,
        )
        bed = Bed(bench, model, await start_swarm(children, plan))
        await bed.swarm.start_client({})
        rows = [
            await _compare(bed, kind, prompts[kind], batch_size, way)
            for batch_size in bench.batch_sizes
            for kind in work.kinds
            for way in work.ways
        ]
    return SpeculationReport(
        rows=rows,
        model_id=model.files.spec.model_id,
        spans=[(span.start, span.end) for span in model.spans],
        new_tokens=bench.new_tokens,
        dtype=model.machine.dtype_name,
        pairs=bench.repeat,
    )


async def _compare(
    bed: Bed, kind: PromptKind, prompts: Sequence[list[int]], batch_size: int, drafts: Speculation
) -> Row:
    """Decode the same prompts plainly and with drafts, now one, now the other first."""
    ways = [Speculation("off"), drafts]
    plain: list[Measured] = []
    drafted: list[Measured] = []
    for way in ways:
        warm_up = Question(
            prompts=list(prompts[:batch_size]), new_tokens=WARM_UP_TOKENS, speculation=way
        )
        await bed.generate(warm_up)
    for number in range(bed.bench.repeat):
        say(f"Measuring {batch_size} × {kind}, {drafts.draft}, pair {number + 1}")
        some = prompts[number * batch_size :][:batch_size]
        for way in ways[:: -1 if number % 2 else 1]:
            question = Question(
                prompts=list(some), new_tokens=bed.bench.new_tokens, speculation=way
            )
            measured = await bed.generate(question)
            (plain if way.draft == "off" else drafted).append(measured)
    return row_of(_link(bed.bench), kind, drafts, plain, drafted)


def _link(bench: SwarmBench) -> str:
    if bench.env is not None:
        return bench.env
    if bench.link is None:
        return "none"
    return f"{bench.link.rate_bytes_per_s * 8e-6:g}mbit,{bench.link.delay_s * 1e3:g}ms"


def row_of(
    link: str,
    kind: PromptKind,
    drafts: Speculation,
    plain: Sequence[Measured],
    drafted: Sequence[Measured],
) -> Row:
    """The comparison's numbers.

    Args:
        link: Its name.
        kind: Of the prompts.
        drafts: How they were drafted.
        plain: Answers without drafts.
        drafted: The same answers with them, in the same order.
    """
    batch_size = len(plain[0].arrivals_s)
    ratios = [decode_s(a) / decode_s(b) for a, b in zip(plain, drafted, strict=True)]
    speedup = statistics.median(ratios)
    proposed = sum(measured.drafted_tokens for measured in drafted)
    accepted = sum(measured.accepted_tokens for measured in drafted)
    # The round of each first token is the prompt's, and no draft's.
    rounds = sum(measured.rounds - batch_size for measured in drafted)
    tokens = sum(len(times) - 1 for measured in drafted for times in measured.arrivals_s)
    up = sum(measured.sent_row_bytes for measured in drafted) / max(1, rounds)
    down = sum(map(_answered_bytes, drafted)) / max(1, sum(map(_answers, drafted)))
    framing = ROW_BYTES + (HEADER_BYTES if batch_size == 1 else 0)
    round_ms = 1e3 * sum(map(decode_s, drafted)) * batch_size / max(1, rounds)
    compute_ms = 1e3 * statistics.median(map(_compute_s, drafted))
    draft_ms = 1e3 * sum(measured.draft_s for measured in drafted) * batch_size / max(1, rounds)
    steps = sum(len(times) - 1 for measured in plain for times in measured.arrivals_s)
    return Row(
        link=link,
        batch=batch_size,
        prompts=kind,
        mode="shared",
        draft=drafts.draft,
        draft_tokens=drafts.num_tokens,
        speedup=speedup,
        speedup_interval=median_interval(ratios),
        acceptance=accepted / proposed if proposed else 0.0,
        tokens_per_round=tokens / max(1, rounds),
        drafted_per_round=proposed / max(1, rounds),
        # Where the ring is closed in between, the client sends fewer rows than there are rounds.
        up_bytes_per_round=up if drafts.draft == "auto" else up - framing,
        down_bytes_per_round=down - framing,
        round_ms=round_ms,
        compute_ms=compute_ms,
        draft_ms=draft_ms,
        rest_ms=max(0.0, round_ms - compute_ms - draft_ms),
        plain_step_ms=1e3 * sum(map(decode_s, plain)) * batch_size / max(1, steps),
        plain_compute_ms=1e3 * statistics.median(map(_compute_s, plain)),
        ids_equal=[m.ids_sha256 for m in plain] == [m.ids_sha256 for m in drafted],
    )


def decode_s(measured: Measured) -> float:
    """From the first token of all sequences to the last one."""
    first = max(times[0] for times in measured.arrivals_s)
    return max(times[-1] for times in measured.arrivals_s) - first


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of what the values are drawn from lies, by order statistics."""
    ordered = sorted(values)
    n, chance, outside = len(ordered), 0.5 ** len(ordered), 0.0
    cut = 0
    for k in range(n // 2):
        outside += 2 * chance
        if outside > 0.05:
            break
        cut = k
        chance *= (n - k) / (k + 1)
    return ordered[cut], ordered[n - 1 - cut]


def _counters(measured: Measured) -> tuple[Counters, Counters]:
    assert measured.before is not None, "a swarm's run carries counters"
    assert measured.after is not None, "a swarm's run carries counters"
    return measured.before, measured.after


def _compute_s(measured: Measured) -> float:
    before, after = _counters(measured)
    return sum(
        (new.compute_s - old.compute_s) / max(1, new.forwards - old.forwards)
        for old, new in zip(before.stages, after.stages, strict=True)
    )


def _answered_bytes(measured: Measured) -> int:
    """Row frames from the last stage to the client while its passes were counted."""
    before, after = (counters.stages[-1] for counters in _counters(measured))
    sent, was_sent = (stage.sent_bytes.get(measured.client, 0) for stage in (after, before))
    return sent - was_sent


def _answers(measured: Measured) -> int:
    """Rows in them: one of each sequence in each of its rounds, which passes share."""
    before, after = (counters.stages[-1] for counters in _counters(measured))
    batch_size = len(measured.arrivals_s)
    if batch_size == 1:
        return after.forwards - before.forwards
    return measured.rounds - batch_size


def lines(report: SpeculationReport) -> Iterator[str]:
    """The report for a person."""
    yield (
        f"{'link':>12}{'batch':>6}  {'prompts':8}{'draft':7}{'N':>3}{'speed-up':>10}{'interval':>14}"
        f"{'accepted':>10}{'a round':>9}{'up':>8}{'down':>8}{'round':>10}{'plain step':>12}"
    )
    for row in report.rows:
        low, high = row.speedup_interval
        yield (
            f"{row.link:>12}{row.batch:>6}  {row.prompts:8}{row.draft:7}{row.draft_tokens:>3}"
            f"{row.speedup:>9.2f}×{low:>8.2f}–{high:.2f}{row.acceptance:>10.0%}"
            f"{row.tokens_per_round:>9.2f}{row.up_bytes_per_round:>6.1f} B"
            f"{row.down_bytes_per_round:>6.1f} B{row.round_ms:>7.1f} ms{row.plain_step_ms:>9.1f} ms"
            + ("" if row.ids_equal else "  the token ids differ")
        )
