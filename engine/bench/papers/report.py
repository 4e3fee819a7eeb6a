"""`shoal bench papers`: the papers' figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from pydantic import BaseModel

from engine.bench.papers.llama import LlamaTimes, fitted, option_s
from engine.bench.papers.published import (
    BATCH_SIZE,
    E6_MBIT_PER_S,
    E6_TOKENS_PER_S_30B,
    HEADER_BYTES,
    LLAMAS,
    MBIT_PER_S,
    SPECULATION_TOKENS_PER_S_30B,
    TOKENS_PER_S_30B,
    Option,
)
from engine.bench.papers.rows import Prediction, Row, calibrate, predict, published_rows
from engine.bench.papers.table4 import Table4, table
from engine.core.profiles import Calibration


class Constant(BaseModel):
    """A number that went into the predictions."""

    name: str
    value: float
    unit: str
    source: str
    is_fitted: bool
    """Or else it is published."""


class LlamaRate(BaseModel):
    """LLaMA-30B in one environment and configuration."""

    environment: str
    option: Option
    published_tokens_per_s: float
    predicted_tokens_per_s: float
    error: float
    is_fitted_to: bool
    """Whether constants were fitted to this rate among others."""


class PapersReport(BaseModel):
    """Everything; rows of one's own come without the papers' other tables."""

    rows: list[Prediction]
    max_error: float
    """Of the rows, without regard to its sign."""
    calibrations: dict[str, dict[str, float]]
    """By model: what was fitted."""
    constants: list[Constant] = []
    llama_30b: list[LlamaRate] = []
    table_4: Table4 | None = None


def of_rows(rows: Sequence[Row]) -> PapersReport:
    """Hold some rows against the cost model.

    Args:
        rows: At least one.
    """
    calibrations = calibrate(rows)
    predictions = predict(rows, calibrations)
    return PapersReport(
        rows=predictions,
        max_error=max(abs(prediction.error) for prediction in predictions),
        calibrations={model: _overheads(found) for model, found in calibrations.items()},
    )


def of_papers() -> PapersReport:
    """Hold everything that is published against it.

    Raises:
        ConfigError: scipy is not installed.
    """
    rows = published_rows()
    overhead_s = next(iter(calibrate(rows).values())).step_overhead_s
    times = fitted(overhead_s)
    delays_ms = {row.environment: row.delay_s * 1e3 for row in rows}
    return of_rows(rows).model_copy(
        update={
            "constants": [*_published(), *_fitted(times, delays_ms)],
            "llama_30b": _llama_rates(times),
            "table_4": table(times),
        }
    )


def lines(report: PapersReport) -> list[str]:
    """The report for people."""
    text = [
        "Tokens/s as measured, as our cost model says, and as it says if the client passed on "
        "every stage's output:",
        f"  {'model':13}  {'net':3}  {'M':>2}  {'codec':>5}  {'measured':>8}  {'model':>7}  "
        f"{'error':>6}  {'star':>7}",
    ]
    for row in report.rows:
        mark = "  calibrates" if row.calibrates else ""
        text.append(
            f"  {row.model:13}  {row.environment:3}  {row.num_microbatches:2}  "
            f"{row.codec_ratio:5.2f}  {row.measured_tokens_per_s:8.1f}  "
            f"{row.predicted_tokens_per_s:7.1f}  {row.error:+6.1%}  {row.star_tokens_per_s:7.1f}{mark}"
        )
    text.append(f"The largest error is {report.max_error:.1%}, with these overheads per step:")
    for model, overheads in report.calibrations.items():
        further = overheads["micro_batch_overhead_s"]
        more = f", {1e3 * further:.1f} ms for each micro-batch beyond the first" if further else ""
        text.append(f"  {model}: {1e3 * overheads['step_overhead_s']:.1f} ms{more}")
    if report.llama_30b:
        text += _llama_lines(report.llama_30b)
    if report.table_4 is not None:
        text += _table_lines(report.table_4)
    if report.constants:
        text.append("Constants:")
        text += [
            f"  {one.name}: {one.value:.5g}{one.unit and ' ' + one.unit} "
            f"({'fitted to ' if one.is_fitted else ''}{one.source})"
            for one in report.constants
        ]
    return text


def _llama_lines(rates: Sequence[LlamaRate]) -> list[str]:
    text = ["LLaMA-30B, tokens/s as published and as our cost model says:"]
    text += [
        f"  {rate.environment}  {rate.option:27}  {rate.published_tokens_per_s:6.1f}  "
        f"{rate.predicted_tokens_per_s:6.1f}  {rate.error:+6.1%}"
        f"{'' if rate.is_fitted_to else '  not fitted to'}"
        for rate in rates
    ]
    errors = [abs(rate.error) for rate in rates if rate.is_fitted_to]
    return [*text, f"The median error of those fitted to is {median(errors):.1%}."]


def _table_lines(found: Table4) -> list[str]:
    width = max(len(option) for option in Option)
    text = [
        "Table 4, the best configuration:",
        f"  {'':7}  {'published':{width}}  {'our cost model':{width}}  by environment alone",
    ]
    text += [
        f"  {cell.model} {cell.environment} {' ' if cell.ours is cell.published else '✗'}"
        f"  {cell.published:{width}}  {cell.ours:{width}}  {cell.rule}"
        for cell in found.cells
    ]
    text.append(
        f"Agreement: {found.ours} of {found.of} cells; a rule that looks at the environment alone "
        f"has {found.rule}."
    )
    text += [
        f"  {cell.model} {cell.environment}: {cell.published} would be {cell.loss:.1%} slower; "
        f"{cell.reason}."
        for cell in found.cells
        if cell.reason
    ]
    text.append("With one constant a tenth smaller, and a tenth larger, cells that agree:")
    text += [f"  {name}: {less}, {more}" for name, (less, more) in found.varied.items()]
    return text


def _overheads(found: Calibration) -> dict[str, float]:
    return {
        "step_overhead_s": found.step_overhead_s,
        "micro_batch_overhead_s": found.micro_batch_overhead_s,
    }


def _llama_rates(times: LlamaTimes) -> list[LlamaRate]:
    trees = [(env, Option.SPECULATION, v) for env, v in SPECULATION_TOKENS_PER_S_30B.items()]
    rates = []
    for environment, option, published in (*TOKENS_PER_S_30B, *trees, *E6_TOKENS_PER_S_30B):
        predicted = BATCH_SIZE / option_s(times, LLAMAS["30B"], environment, option)
        rates.append(
            LlamaRate(
                environment=environment,
                option=option,
                published_tokens_per_s=published,
                predicted_tokens_per_s=predicted,
                error=predicted / published - 1,
                is_fitted_to=environment != "E6",
            )
        )
    return rates


_LLAMA_SOURCES: Final = (
    ("delay_s", "λ of a hop, LLaMA", "s", "network times per hop of LLaMA-30B, [BB] §8"),
    ("line_share", "share of a line's rate for a lone message", "", "the same"),
    ("pass_s", "a stage's pass, LLaMA", "s", "rates of LLaMA-30B without micro-batches, [BB] §8"),
    (
        "half_pass",
        "half a batch's pass over a whole one's",
        "",
        "rates of LLaMA-30B with micro-batches, [BB] §8",
    ),
    ("line_share_of_two", "share of a line's rate for two messages in flight", "", "the same"),
    (
        "speculative_pass",
        "m/a: compute per committed token over a plain pass",
        "",
        "rates of LLaMA-30B with the pruned tree, [BB] §8.6",
    ),
    ("speculative_rows", "N/a: rows sent per committed token", "", "the same"),
)


def _fitted(times: LlamaTimes, delays_ms: Mapping[str, float]) -> list[Constant]:
    network = "mean of network times less V/rate, Falcon-7B and Mixtral-8x7B, [BB] §8"
    step = ("C: overhead of a step", times.step_overhead_s, "s", "tokens/s of both, [BB] §8")
    llama = [
        (name, getattr(times, field), unit, source) for field, name, unit, source in _LLAMA_SOURCES
    ]
    delays = [(f"λ in {name}", value, "ms", network) for name, value in delays_ms.items()]
    return [
        Constant(name=name, value=value, unit=unit, source=source, is_fitted=True)
        for name, value, unit, source in (*delays, step, *llama)
    ]


def _published() -> list[Constant]:
    known = [
        ("B: rows of a batch", float(BATCH_SIZE), "", "[BB] §8"),
        ("header of a message", float(HEADER_BYTES), "bytes", "volume per hop, [BB] §8"),
        *((f"rate in {name}", mbit, "Mbit/s", "[BB] §8") for name, mbit in MBIT_PER_S.items()),
        *(("rate in E6", mbit, "Mbit/s", "[BB] §8, between its sites") for mbit in E6_MBIT_PER_S),
        ("codec, encoded over raw, 13B", LLAMAS["13B"].codec_ratio, "", "[BB] Table 1"),
        ("codec, encoded over raw, 30B and 65B", LLAMAS["30B"].codec_ratio, "", "[BB] §8.5, 30B"),
        ("codec", LlamaTimes(0.0).codec_s_per_byte, "s/byte", "300 ms for 76.5 MiB, [BB] Table 1"),
        ("M with micro-batches", 2.0, "", "16 rows beat 8 at B = 32, [BB] §8"),
    ]
    return [
        Constant(name=name, value=value, unit=unit, source=source, is_fitted=False)
        for name, value, unit, source in known
    ]
