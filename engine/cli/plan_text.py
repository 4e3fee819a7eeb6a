"""A plan as people read it: the pipeline as a picture, what joining changes, and every number. Pure."""

from __future__ import annotations

import re
from typing import Final

from engine.core.errors import PlanInfeasible
from engine.core.ids import PeerId
from engine.core.plans import Plan, PlannedStage, Term

_BAR: Final = 24
_NAMED: Final = 8
"""Of machines without blocks, so many are named."""
_MARK: Final = "  ◀ bottleneck"


def drawn(plan: Plan) -> list[str]:
    """The pipeline, and what it does; lines."""
    times = {term.what: term for term in plan.terms}
    passes = [times[f"{stage.peer}: pass"].value for stage in plan.stages]
    following = [*plan.stages[1:], plan.stages[0]]
    lines = [
        times.get(f"{stage.peer} → {after.peer}")
        for stage, after in zip(plan.stages, following, strict=True)
    ]
    longest = max([*passes, *(line.value for line in lines if line is not None)]) or 1.0
    width = max(len(stage.peer) for stage in plan.stages)
    spans = max(len(_blocks(stage)) for stage in plan.stages)
    out = ["  ids"]
    for index, (stage, line) in enumerate(zip(plan.stages, lines, strict=True)):
        alpha = f"  α = {stage.kv_offload_ratio:.2f}" if stage.kv_offload_ratio else ""
        out.append(
            f"{'┌▶' if index == 0 else '│▶'} {stage.peer:<{width}}  {_blocks(stage):<{spans}}  "
            f"{_row(passes[index], longest)}{alpha}{_mark(plan, f'compute of {stage.peer}')}"
        )
        if line is None:
            continue
        last = index == len(plan.stages) - 1
        what = "ids" if last else "hidden"
        where = f"{'└─' if last else '│ '} {'↺' if last else '↓':<{width}}  {what:<{spans}}  "
        binds = f"line from {stage.peer} to {following[index].peer}"
        out.append(f"{where}{_row(line.value, longest, '░')}{_mark(plan, binds)}")
    return [*out, "", *_summary(plan)]


def _summary(plan: Plan) -> list[str]:
    rows = -(-plan.batch_size // plan.num_microbatches)
    parts = f"batch {plan.batch_size}"
    if plan.num_microbatches > 1:
        parts += f" in {plan.num_microbatches} micro-batches of {rows}"
    if len(plan.stages) > 1:
        parts += ", hidden states encoded" if plan.codec else ", hidden states raw"
    if plan.draft_tree_size:
        parts += f", {plan.draft_tree_size} draft tokens a row"
        parts += f" pruned below {plan.prune_threshold:g}" if plan.prune_threshold else ""
    out = [
        f"{plan.tokens_per_s:.4g} tokens/s: {parts}, {_seconds(plan.step_s)} a step",
        f"With prompts {plan.sustained_tokens_per_s:.4g} tokens/s; all of them at once take "
        f"{_seconds(plan.prefill_s)}. What binds: {plan.bottleneck}.",
    ]
    if plan.left_out:
        named, more = plan.left_out[:_NAMED], len(plan.left_out) - _NAMED
        out.append(
            f"Left out, as they would cost more than they give: {', '.join(named)}"
            + (f" and {more} more." if more > 0 else ".")
        )
    return out


def joined(plan: Plan, me: PeerId, before: Plan | PlanInfeasible | None) -> str:
    """What changes when `me` joins, as sentences."""
    mine = next((stage for stage in plan.stages if stage.peer == me), None)
    holds = f"{me} would hold {_blocks(mine)}" if mine else f"{me} would get no blocks"
    if not isinstance(before, Plan):
        return f"{holds}. Without it the model cannot run."
    now, then = plan.sustained_tokens_per_s, before.sustained_tokens_per_s
    return (
        f"{holds}: {now:.4g} tokens/s with prompts, {then:.4g} without it ({now / then - 1:+.0%})."
    )


def explained(plan: Plan) -> list[str]:
    """Every number and where it comes from; lines."""
    width = max(len(term.what) for term in plan.terms)
    values = [_value(term) for term in plan.terms]
    wide = max(len(value) for value in values)
    return [
        f"{term.what:<{width}}  {value:>{wide}}  {term.why}"
        for term, value in zip(plan.terms, values, strict=True)
    ]


def _value(term: Term) -> str:
    return f"{term.value:.4g} {term.unit}"


def _blocks(stage: PlannedStage) -> str:
    return f"blocks {stage.span}" if len(stage.span) > 1 else f"block {stage.span.start}"


def _row(time_ms: float, longest_ms: float, ink: str = "█") -> str:
    bar = ink * round(_BAR * time_ms / longest_ms)
    return f"{time_ms:9.1f} ms  {bar:<{_BAR}}"


def _mark(plan: Plan, part: str) -> str:
    binding = re.sub(r" \(\d+%\)$", "", plan.bottleneck)
    return _MARK if binding.endswith(f"the {part}") else ""


def _seconds(time_s: float) -> str:
    return f"{time_s:.3g} s" if time_s >= 1 else f"{1e3 * time_s:.3g} ms"
