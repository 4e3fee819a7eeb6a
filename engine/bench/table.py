"""The report for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.bench.disturbed import Disturbance
from engine.bench.interference import Interference
from engine.bench.report import Run
from engine.bench.soak import MemoryBudget, MemorySample
from engine.bench.swarm import Report

_MIB = 1 << 20
_MAX_REPEATS = 5
"""More are summed up."""


def lines(report: Report) -> list[str]:
    """The runs side by side, a line for each number, then what else was measured."""
    runs, text = report.runs, []
    if runs:
        text += _side_by_side(runs)
    if report.ratio is not None:
        text.append(f"{runs[0].system} runs at {report.ratio:.3f} of {runs[1].system}'s tokens/s.")
    for name, ratio in report.ratios.items():
        text.append(f"{runs[0].placement} runs at {ratio:.3f} of {name}'s tokens/s.")
    if report.settings.emulate is not None:
        emulate = report.settings.emulate
        text.append(
            f"Emulated: every stage waits {1e3 * emulate['stage_s']:g} ms a pass of up to "
            f"{emulate['rows']} rows; hidden states of width {emulate['hidden_size']} are made of "
            "recorded ones."
        )
    if report.disturbance is not None:
        text += _disturbance(report.disturbance)
    if report.interference is not None:
        text += _interference(report.interference)
    text += _memory(report.memory, report.memory_budget)
    return text


def _side_by_side(runs: Sequence[Run]) -> list[str]:
    rows = [(title, [cell(run) for run in runs]) for title, cell in _ROWS]
    widths = [max(len(cell) for cell in cells) for cells in zip(*(r for _, r in rows), strict=True)]
    title_width = max(len(title) for title, _ in rows)
    return [
        "  ".join(
            [title.ljust(title_width)]
            + [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        ).rstrip()
        for title, cells in rows
    ]


def _disturbance(found: Disturbance) -> Iterator[str]:
    yield (
        f"{found.equal} of {found.generations} generations gave the ids of the undisturbed one "
        f"({found.reference}); {found.failed} ended with an error, {found.kills} stages were killed."
    )
    if found.recovery_s_max is not None:
        yield (
            f"{found.recoveries} recoveries from noticing to the next token, the longest "
            f"{found.recovery_s_max:.2f} s; {found.stages_replaced} stages were replaced and "
            f"{found.resent_ids} ids sent again."
        )
    if found.pauses_s:
        yield f"pauses between two tokens after kills, s: {_numbers(sorted(found.pauses_s), 2)}"
    yield from (f"error: {error}" for error in found.errors)


def _interference(found: Interference) -> Iterator[str]:
    yield (
        f"{found.chats} chats beside a prompt of {found.long_prompt_tokens} tokens, which took "
        f"{found.prefill_s:.1f} s; between two tokens of a chat, ms:"
    )
    for name, intervals in (("before", found.before_ms), ("during", found.during_ms)):
        yield (
            f"  {name}: median {intervals.median:.1f}, p95 {intervals.p95:.1f}, "
            f"max {intervals.max:.1f} ({intervals.count} intervals)"
        )
    yield f"  during / before: median {found.ratio_median:.2f}, p95 {found.ratio_p95:.2f}"


def _memory(samples: Sequence[MemorySample], budgets: Sequence[MemoryBudget]) -> Iterator[str]:
    for budget in budgets:
        own = [sample for sample in samples if sample.stage == budget.stage]
        yield (
            f"stage {budget.stage}, resident MiB every 10 s (budgets: KV "
            f"{budget.kv_bytes / _MIB:.0f}, kept outputs {budget.kept_bytes / _MIB:.0f}):"
        )
        yield "  agent:  " + _numbers([sample.agent_bytes / _MIB for sample in own], 0)
        yield "  worker: " + _numbers([sample.worker_bytes / _MIB for sample in own], 0)


def _numbers(values: Sequence[float], digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values) or "–"


def _name(run: Run) -> str:
    return f"{run.system} (emulated)" if run.emulated else run.system


def _batch(run: Run) -> str:
    asked = f", {run.micro_batches} asked for" if run.micro_batches else ""
    passes = max((stage.forwards for stage in run.stages), default=0.0)
    return f"{run.batch_size} in {passes:.1f} passes{asked}" if passes else str(run.batch_size)


def _placement(run: Run) -> str:
    stages = zip(run.spans, run.hosts, strict=True)
    return ", ".join(f"{start}-{end} at {host}" for (start, end), host in stages) or "–"


def _predicted(run: Run) -> str:
    if run.predicted_tokens_per_s is None or run.prediction_error is None:
        return "–"
    return f"{run.predicted_tokens_per_s:.2f} ({run.prediction_error:+.1%})"


def _repeats(run: Run) -> str:
    rates = run.repeats_tokens_per_s
    if len(rates) <= _MAX_REPEATS:
        return _numbers(rates, 1)
    return f"{min(rates):.1f} to {max(rates):.1f} ({len(rates)})"


def _codec_ratios(run: Run) -> str:
    ratios = [link.codec_ratio for link in run.links if link.codec_ratio is not None]
    return _numbers(ratios, 3)


def _bound(run: Run) -> str:
    if run.bound_tokens_per_s is None or run.bound_share is None:
        return "–"
    return f"{run.bound_tokens_per_s:.1f} by {run.bound_by}, reached {run.bound_share:.0%}"


def _latency_bound(run: Run) -> str:
    limit = run.latency_bound_tokens_per_s
    return "–" if limit is None else f"{limit:.1f}"


def _recovery(run: Run) -> str:
    return "–" if run.recovery_s_median is None else f"{run.recovery_s_median:.2f}"


_ROWS = (
    ("", _name),
    ("batch", _batch),
    ("placement", lambda run: run.placement or "–"),
    ("blocks at hosts", _placement),
    ("tokens/s, decoding", lambda run: f"{run.tokens_per_s:.2f}"),
    ("  of the repeats", _repeats),
    ("  predicted", _predicted),
    ("time to first token, s", lambda run: f"{run.ttft_s:.2f}"),
    ("step, median, ms", lambda run: f"{run.step_ms_median:.2f}"),
    ("step: compute, ms", lambda run: f"{run.step_ms.compute:.2f}"),
    ("step: encode, ms", lambda run: f"{run.step_ms.encode:.2f}"),
    ("step: wire, ms", lambda run: f"{run.step_ms.wire:.2f}"),
    ("step: wait, ms", lambda run: f"{run.step_ms.wait:.2f}"),
    ("bytes a step, each link", lambda run: _numbers(run.link_bytes_per_step, 0)),
    (
        "bytes a row, each link",
        lambda run: _numbers([link.bytes_per_row for link in run.links], 0),
    ),
    ("encoded / raw, each link", _codec_ratios),
    (
        "bytes a step, client",
        lambda run: (
            f"{run.client_bytes_per_step:.0f} ({run.client_bytes_per_sequence_step:.0f} a row)"
        ),
    ),
    ("bytes of hidden states, client", lambda run: str(run.client_activation_bytes)),
    ("bound, tokens/s", _bound),
    ("by the ring's delay, tokens/s", _latency_bound),
    ("recovery, median, s", _recovery),
    ("ids, SHA-256", lambda run: run.ids_sha256[:12]),
)
