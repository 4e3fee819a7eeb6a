"""The report for people."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bench.report import Run


def lines(runs: Sequence[Run], ratio: float | None) -> list[str]:
    """The runs side by side, a line for each number."""
    rows = [("", [run.system for run in runs])]
    rows.append(("tokens/s, decoding", [f"{run.tokens_per_s:.2f}" for run in runs]))
    rows.append(("  of each repeat", [_numbers(run.repeats_tokens_per_s, 1) for run in runs]))
    rows.append(("time to first token, s", [f"{run.ttft_s:.2f}" for run in runs]))
    rows.append(("step, median, ms", [f"{run.step_ms_median:.2f}" for run in runs]))
    rows.extend(
        (f"step: {part}, ms", [f"{getattr(run.step_ms, part):.2f}" for run in runs])
        for part in ("compute", "encode", "wire", "wait")
    )
    rows.append(("bytes a step, each link", [_numbers(run.link_bytes_per_step, 0) for run in runs]))
    rows.append(
        (
            "bytes a step, client",
            [
                f"{run.client_bytes_per_step:.0f} ({run.client_bytes_per_sequence_step:.0f} a row)"
                for run in runs
            ],
        )
    )
    rows.append(("bound, tokens/s", [_bound(run) for run in runs]))
    rows.append(("ids, SHA-256", [run.ids_sha256[:12] for run in runs]))
    widths = [max(len(cell) for cell in cells) for cells in zip(*(r for _, r in rows), strict=True)]
    title_width = max(len(title) for title, _ in rows)
    text = [
        "  ".join(
            [title.ljust(title_width)]
            + [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        )
        for title, cells in rows
    ]
    if ratio is not None:
        text.append(f"{runs[0].system} runs at {ratio:.3f} of {runs[1].system}'s tokens/s.")
    return text


def _numbers(values: Sequence[float], digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values) or "–"


def _bound(run: Run) -> str:
    if run.bound_tokens_per_s is None or run.bound_share is None:
        return "–"
    return f"{run.bound_tokens_per_s:.1f} by {run.bound_by}, reached {run.bound_share:.0%}"
