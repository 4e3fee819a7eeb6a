"""What a node would hold under some settings, in a person's numbers: the planner's own answer.

Nothing is fetched, loaded or announced for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.config import Config
from engine.core.errors import ConfigError, PlanInfeasible
from engine.core.ids import PeerId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.profiles import Goal, ModelSize, NetworkMatrix, Objective
from engine.core.sentences import Sentence
from engine.core.snapshot import SwarmSnapshot
from engine.localapi.measurements import Limits, MeasuredProfile
from engine.localapi.said import said
from engine.localapi.setup import PlanPreview
from engine.node.caps import GPU_BASE_BYTES, RAM_BASE_BYTES, within_limits
from engine.node.compute import Compute
from engine.planner.rebalance import decide
from engine.planner.search import plan
from engine.profiler.gpus import bare
from engine.profiler.hardware import Hardware
from engine.protocol.frames import ELEMENT_BYTES

_NOBODY = PeerId("this node")
_ENOUGH_BYTES = 1 << 50
"""The speed of a machine that holds all is asked for; whether it can is known by then."""


@dataclass(frozen=True, slots=True)
class Would:
    """What decides."""

    config: Config
    machine: Compute
    source: str
    """The model's name."""
    spec: ModelSpec | None
    """None: its sizes are not known here."""
    in_swarm: bool
    peer: PeerId | None
    snapshot: SwarmSnapshot | None
    """The swarm now; None: nobody has looked at it yet, or there is none."""
    measured: MeasuredProfile | None
    hardware: Hardware


def preview(would: Would) -> PlanPreview:
    """What the node would hold; takes a moment in a large swarm."""
    machine, spec = would.machine, would.spec
    on_gpu = machine.device != "cpu"
    gpu = next(
        (g for g in would.hardware.gpus if bare(g.uuid) == bare(machine.gpu_uuid or "")), None
    )
    blank = PlanPreview(
        model=would.source if spec is None else spec.name,
        num_blocks=None if spec is None else spec.num_hidden_layers,
        span=None,
        reason="",
        is_certain=True,
        on_gpu=on_gpu,
        device=would.hardware.cpu_name if gpu is None else gpu.name,
        memory_bytes=0,
        memory_free_bytes=machine.memory_bytes,
        memory_total_bytes=(
            gpu.memory_total_bytes if gpu is not None
            else machine.memory_bytes if on_gpu
            else would.hardware.ram_total_bytes
        ),
        token_bytes=0 if spec is None else spec.hidden_size * ELEMENT_BYTES[machine.dtype],
    )  # fmt: skip
    if not would.config.stage.enabled:
        return _told(blank, Sentence("It holds no blocks: it only uses what others give."))
    if spec is None:
        return _told(
            blank,
            Sentence(
                "{model} is not on this computer yet; how much of it fits shows later.",
                model=would.source,
            ),
        )
    config = within_limits(would.config, on_gpu=on_gpu)
    try:
        max_blocks = machine.max_blocks(spec, config.stage)
    except ConfigError as error:
        return _told(blank, error.args[0])  # a sentence, which `str` would make a mere text
    size = ModelSize.of(spec, ELEMENT_BYTES[machine.dtype])
    span, reason, is_certain = _place(would, config, size, max_blocks)
    return blank.model_copy(
        update={
            "span": (span.start, span.end),
            "reason": reason,
            "reason_said": said(reason),
            "is_certain": is_certain,
            "memory_bytes": (
                _weight_bytes(size, span)
                + config.stage.kv_budget_bytes
                + (GPU_BASE_BYTES if on_gpu else RAM_BASE_BYTES)
            ),
            "tokens_per_s": _alone_tokens_per_s(would, size, span),
        }
    )


def _told(blank: PlanPreview, reason: str) -> PlanPreview:
    return blank.model_copy(update={"reason": reason, "reason_said": said(reason)})


def _place(
    would: Would, config: Config, size: ModelSize, max_blocks: int
) -> tuple[Span, Sentence, bool]:
    """(Blocks, why these, whether that is certain)."""
    if config.stage.blocks is not None:
        start, end = config.stage.blocks
        return Span(start, min(end, size.num_blocks)), Sentence("The settings fix them."), True
    peer = would.peer or _NOBODY
    seen = would.snapshot if would.in_swarm else None
    others = () if seen is None else tuple(s for s in seen.stages if s.peer != peer)
    snapshot = SwarmSnapshot("", size.num_blocks, others)
    move = decide(snapshot, peer, max_blocks, size=size)
    assert move is not None, "who has no place gets one"
    if seen is not None:
        return move.span, move.reason, True
    if len(move.span) == size.num_blocks:
        reason = Sentence("The whole model fits.")
    elif would.in_swarm:
        reason = Sentence(
            "So many of the {count} blocks fit; the swarm says which it needs most.",
            count=size.num_blocks,
        )
    else:
        reason = Sentence(
            "Only {held} of the {count} blocks fit: others must hold the rest.",
            held=len(move.span),
            count=size.num_blocks,
        )
    return move.span, reason, not would.in_swarm


def _weight_bytes(size: ModelSize, span: Span) -> int:
    """Of the blocks, and of the ends where they belong to them."""
    first, last = span.start == 0, span.end == size.num_blocks
    ends = first * size.embedding_bytes + last * size.head_bytes
    if first and last and size.ties_ends:
        ends = size.head_bytes
    return len(span) * size.block_bytes + ends


def _alone_tokens_per_s(would: Would, size: ModelSize, span: Span) -> float | None:
    """One chat's, if all blocks are here and this machine has been measured as it computes now."""
    measured, machine = would.measured, would.machine
    if measured is None or len(span) < size.num_blocks:
        return None
    if (measured.device, measured.dtype) != (machine.device, machine.dtype_name):
        return None
    node = measured.node_profile(_NOBODY, size, Limits(memory_bytes=_ENOUGH_BYTES))
    network = NetworkMatrix((_NOBODY,), ((0.0,),), ((math.inf,),))
    try:
        found = plan([node], network, size, Objective(goal=Goal.LATENCY, batch_size=1))
    except PlanInfeasible:
        return None
    return found.tokens_per_s
