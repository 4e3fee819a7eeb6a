"""The LLaMA pipelines of [BB]: a few constants fitted to published times and rates.

Their network is not that of the table of step times: by [BB]'s own figures a hop takes 45 ms in E4,
where that table has 98.8. So the lines are fitted to what is published for LLaMA-30B. Each constant
is fitted to the figures that depend on it, one after the other, by least squares of the relative
errors, and none of them to Table 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.bench.papers.published import (
    BATCH_SIZE,
    CODEC_S_PER_BYTE,
    LLAMAS,
    NIC_S_30B,
    SPECULATION_TOKENS_PER_S_30B,
    TOKENS_PER_S_30B,
    Llama,
    Option,
    hop_bytes,
    line_bytes_per_s,
)
from engine.bench.solvers import scipy_modules
from engine.core.profiles import Calibration
from engine.planner.flow import Form, StageTimes, step_s


@dataclass(frozen=True, slots=True)
class LlamaTimes:
    """What the fits find, and where they start."""

    step_overhead_s: float
    """C: from the table of step times, of other models."""
    delay_s: float = 0.005
    """λ of a hop."""
    line_share: float = 0.7
    """Part of a line's rate that a message gets which travels alone …"""
    line_share_of_two: float = 0.9
    """… and what two in flight get."""
    pass_s: float = 0.04
    """One pass of the whole batch through one stage."""
    half_pass: float = 0.8
    """What half the batch takes of that: more than half, since weights are read all the same."""
    speculative_pass: float = 0.8
    """Compute per committed token, as part of a plain pass: m/a in [BB] eq. 7."""
    speculative_rows: float = 3.0
    """Rows sent per committed token: N/a of the pruned tree."""
    codec_s_per_byte: float = CODEC_S_PER_BYTE


def hop(times: LlamaTimes, llama: Llama, bytes_per_s: float, option: Option) -> StageTimes:
    """One micro-batch at a stage and on the line that follows.

    Args:
        times: Constants.
        llama: The model.
        bytes_per_s: Of the line.
        option: How the pipeline is run.
    """
    number = option.num_microbatches
    sent_bytes = hop_bytes(llama.hidden_size, -(-BATCH_SIZE // number))
    rows = times.speculative_rows if option is Option.SPECULATION else 1.0
    factor = llama.codec_ratio if option.is_compressed else rows
    work = times.speculative_pass if option is Option.SPECULATION else 1.0
    share = times.line_share if number == 1 else times.line_share_of_two
    return StageTimes(
        times.pass_s * (work if number == 1 else times.half_pass),
        times.codec_s_per_byte * sent_bytes if option.is_compressed else 0.0,
        factor * sent_bytes / (bytes_per_s * share),
        0.0,
        times.delay_s,
    )


def option_s(times: LlamaTimes, llama: Llama, environment: str, option: Option) -> float:
    """Time of a step in which every row gets a token, by our cost model.

    Args:
        times: Constants.
        llama: The model.
        environment: E1 to E6.
        option: How the pipeline is run.
    """
    rates = line_bytes_per_s(environment)
    hops = [
        hop(times, llama, rates[index % len(rates)], option)
        for index in range(llama.num_stages - 1)
    ]
    last = StageTimes(hop(times, llama, rates[0], option).pass_s)
    overhead = Calibration(step_overhead_s=times.step_overhead_s)
    return step_s([*hops, last], option.num_microbatches, overhead, form=Form.CHAIN)


def fitted(step_overhead_s: float) -> LlamaTimes:
    """Fit everything but C to what is published for LLaMA-30B.

    Args:
        step_overhead_s: C, of the table of step times.

    Raises:
        ConfigError: scipy is not installed.
    """
    llama = LLAMAS["30B"]
    lone = [row for row in TOKENS_PER_S_30B if row[1].num_microbatches == 1]
    two = [row for row in TOKENS_PER_S_30B if row[1].num_microbatches == 2]
    trees = [
        (environment, Option.SPECULATION, rate)
        for environment, rate in SPECULATION_TOKENS_PER_S_30B.items()
    ]

    def network(times: LlamaTimes) -> list[float]:
        return [nic_s(times, *row[:2]) / row[2] - 1 for row in NIC_S_30B]

    def rates(rows: Sequence[tuple[str, Option, float]]) -> Callable[[LlamaTimes], list[float]]:
        return lambda times: [
            BATCH_SIZE / option_s(times, llama, environment, option) / rate - 1
            for environment, option, rate in rows
        ]

    times = _fit(LlamaTimes(step_overhead_s), ("delay_s", "line_share"), network)
    times = _fit(times, ("pass_s",), rates(lone))
    times = _fit(times, ("half_pass", "line_share_of_two"), rates(two))
    return _fit(times, ("speculative_pass", "speculative_rows"), rates(trees))


def nic_s(times: LlamaTimes, environment: str, is_compressed: bool) -> float:
    """Network time of a hop of LLaMA-30B, without the codec's."""
    option = Option.COMPRESSION if is_compressed else Option.PLAIN
    stage = hop(times, LLAMAS["30B"], line_bytes_per_s(environment)[0], option)
    return stage.delay_s + stage.line_s


def _fit(
    times: LlamaTimes, names: Sequence[str], errors: Callable[[LlamaTimes], list[float]]
) -> LlamaTimes:
    """Change some of the constants so that the errors' squares are least."""
    optimize, _ = scipy_modules()

    def at(values: Sequence[float]) -> LlamaTimes:
        return replace(times, **dict(zip(names, map(float, values), strict=True)))

    start = [getattr(times, name) for name in names]
    found = optimize.least_squares(lambda values: errors(at(values)), start, x_scale=start)
    return at(found.x)
