"""`shoal bench speculation`: what drafts save, beside the same answers without, in the same run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.bed import Bed, say, started
from engine.bench.measured import Measured
from engine.bench.ready_model import ready_model
from engine.bench.request import SwarmBench
from engine.bench.specs import Question
from engine.bench.speculation_prompts import PromptKind
from engine.bench.speculation_rows import CompactionTime, Row, Setting, row_of
from engine.core.generation import MAX_DRAFT_TOKENS, PrefixUse, Speculation

PLAIN = Speculation("off")
_WARM_UP_TOKENS, _WARM_UP_S = 24, 1.0
_KEPT = 2.0
"""Room for beginnings of prompts that are kept from one answer to the next, over what runs."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is compared with plain decoding, of one kind of prompts."""

    kind: PromptKind
    ways: tuple[Speculation, ...]
    """How to draft."""
    temperature: float = 0.0
    prunes: bool = True
    """Whether the first stage may leave out drafted tokens."""


class SpeculationReport(BaseModel):
    """What `--json` prints."""

    rows: list[Row]
    model_id: str
    vocab_size: int
    spans: list[tuple[int, int]]
    new_tokens: int
    dtype: str
    pairs: int

    @property
    def ids_equal(self) -> bool:
        """Whether drafts changed no token."""
        return all(row.ids_equal is not False for row in self.rows)


async def measure(bench: SwarmBench, works: Sequence[Work]) -> SpeculationReport:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.check()
    model = await ready_model(bench, say)
    most = max(bench.batch_sizes)
    # Few sequences get other prompts in every pair; many are various enough together.
    number = max(most, min(bench.batch_sizes) * bench.repeat)
    prompts = await model.prompts_to_draft((work.kind for work in works), number, bench.seed)
    longest = max(len(prompt) for some in prompts.values() for prompt in some)
    room = most * (longest + bench.new_tokens + MAX_DRAFT_TOKENS)
    async with started(bench, model, round(_KEPT * room)) as bed:
        rows = [
            row
            for batch_size in bench.batch_sizes
            for work in works
            for row in await _compare(bed, work, prompts[work.kind], batch_size)
        ]
    return SpeculationReport(
        rows=rows,
        model_id=model.files.spec.model_id,
        vocab_size=model.files.spec.vocab_size,
        spans=[(span.start, span.end) for span in model.spans],
        new_tokens=bench.new_tokens,
        dtype=model.machine.dtype_name,
        pairs=bench.repeat,
    )


async def _compare(
    bed: Bed, work: Work, prompts: Sequence[list[int]], batch_size: int
) -> list[Row]:
    """Decode the same prompts plainly and in each way, now in one order, now in the other."""
    bench = bed.bench
    ways = [PLAIN, *work.ways]
    found: dict[Speculation, list[Measured]] = {way: [] for way in ways}
    asker = _Asker(bed, work)
    for way in ways:
        await asker.ask(prompts[:batch_size], way, _WARM_UP_TOKENS, _WARM_UP_S)
    for number in range(bench.repeat):
        say(f"Measuring {batch_size} × {work.kind}, {number + 1} of {bench.repeat}")
        start = number * batch_size
        some = [prompts[(start + i) % len(prompts)] for i in range(batch_size)]
        # All ways find the prompts computed, so that their sequences set out together.
        await asker.ask(some, PLAIN, 2)
        for way in ways[:: -1 if number % 2 else 1]:
            found[way].append(
                await asker.ask(some, way, bench.new_tokens, bench.slow_down * bench.answer_limit_s)
            )
    setting = Setting(
        link=link_name(bench),
        prompts=work.kind,
        network=bench.network,
        ideal_client_link=bench.ideal_client_link,
        temperature=work.temperature,
        prunes=work.prunes,
        emulated=bench.stretching is not None,
        slow_down=bench.slow_down,
    )
    return [row_of(setting, way, found[PLAIN], found[way]) for way in work.ways]


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks the swarm for one kind of answers."""

    bed: Bed
    work: Work

    async def ask(
        self, prompts: Sequence[list[int]], way: Speculation, tokens: int, limit_s: float = 0.0
    ) -> Measured:
        return await self.bed.generate(
            Question(
                prompts=list(prompts),
                new_tokens=tokens,
                prefixes=PrefixUse.OWN,
                speculation=way,
                temperature=self.work.temperature,
                prunes=self.work.prunes,
                limit_s=limit_s,
            )
        )


def link_name(bench: SwarmBench) -> str:
    """What the lines are called in the report."""
    if bench.env is not None:
        return bench.env
    if bench.link is None:
        return "none"
    return f"{bench.link.rate_bytes_per_s * 8e-6:g}mbit,{bench.link.delay_s * 1e3:g}ms"


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The rows for a person."""
    yield (
        f"{'link':>14}{'batch':>6}  {'prompts':8}{'draft':7}{'mode':7}{'N':>3}{'speed-up':>10}"
        f"{'interval':>13}{'accepted':>9}{'a round':>8}{'up':>10}{'down':>9}{'round':>9}"
        f"  = {'draft':>6}{'up':>7}{'stages':>7}{'lines':>7}{'down':>7}{'other':>7}{'plain':>9}"
    )
    for row in rows:
        low, high = row.speedup_interval
        times = row.round_times_ms
        parts = (times.up, times.stages, times.between, times.down, times.other)
        yield (
            f"{row.link:>14}{row.batch:>6}  {row.prompts:8}{row.draft:7}{row.mode:7}"
            f"{row.draft_tokens:>3}{row.speedup:>9.2f}×{low:>7.2f}–{high:<5.2f}"
            f"{row.acceptance:>8.0%}{row.tokens_per_round:>8.2f}{row.up_bytes_per_round:>8.1f} B"
            f"{row.down_bytes_per_round:>7.1f} B{row.round_ms:>6.0f} ms  = {times.draft:>6.1f}"
            + "".join(f"{part:>7.1f}" for part in parts)
            + f"{row.plain_step_ms:>6.0f} ms"
            + (f"  {row.pruned_share:.0%} pruned" if row.pruned_share else "")
            + ("" if row.prunes else "  nothing may be pruned")
            + _compaction(row.compaction_ms)
            + ("  the token ids differ" if row.ids_equal is False else "")
            + (f"  {_modes(row)}" if row.mode == "auto" and row.mode_rounds else "")
        )


def _compaction(times: CompactionTime) -> str:
    if not times.before + times.after:
        return ""
    return f"  compaction {times.after:.2f} ms behind answers, {times.before:.2f} ms before them"


def _modes(row: Row) -> str:
    """As the controller has chosen."""
    return ", ".join(f"{mode} {rounds}" for mode, rounds in sorted(row.mode_rounds.items()))
