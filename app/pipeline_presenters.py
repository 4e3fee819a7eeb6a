"""The pipeline as a picture: which boxes and arrows there are, in words and numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.words import Tr, milliseconds
from engine.core.ids import PeerId, short
from engine.core.plans import Span
from engine.core.reach import LinkPath
from engine.localapi.schema import EngineStatus, LinkStatus, PipelineStage, TokenPart


@dataclass(frozen=True, slots=True)
class Box:
    """One node's blocks."""

    name: str
    blocks: str
    numbers: str
    """The same without a noun, for small boxes."""
    start: int
    end: int
    is_self: bool
    time: str = ""
    """What a token spends here; empty while unknown."""
    is_slowest: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """The way from one box to the next, and from the last back to the first."""

    time: str
    """Empty while unknown."""
    path: str
    """How the bytes travel, where this node knows it; else empty."""
    is_slowest: bool = False


@dataclass(frozen=True, slots=True)
class PipelineView:
    """All that the picture shows."""

    num_blocks: int
    stages: tuple[Box, ...]
    """In the order of a token; empty while no route covers the model."""
    arrows: tuple[Arrow, ...]
    """As many as stages, or none for a stage alone; the last leads back."""
    beside: tuple[Box, ...]
    """Nodes that the route does not use."""
    missing: tuple[Box, ...]
    """Blocks that nobody holds, while there is no route."""
    caption: str
    """What holds it up, or what is missing."""
    as_text: str
    """The picture in words, for screen readers."""


def pipeline_view(status: EngineStatus | None, tr: Tr) -> PipelineView | None:
    """The picture of `status`; None while there is nothing to draw."""
    if status is None or not status.num_blocks or not (status.plan or status.spares):
        return None
    parts = status.token_parts if len(status.token_parts) > 1 else ()  # who is alone is not slow
    slowest = max(parts, key=lambda part: part.time_ms, default=None)
    computing = {part.peer: part for part in status.token_parts if part.to is None}
    stages = tuple(_box(stage, computing.get(stage.peer), slowest, tr) for stage in status.plan)
    beside = tuple(_box(stage, None, None, tr) for stage in status.spares)
    missing = () if stages else _missing(status.spares, status.num_blocks, tr)
    caption = _bottleneck(status, tr) if stages else _caption(missing, tr)
    return PipelineView(
        num_blocks=status.num_blocks,
        stages=stages,
        arrows=_arrows(status, slowest, tr),
        beside=beside,
        missing=missing,
        caption=caption,
        as_text=_as_text(stages, beside, caption, tr),
    )


def _box(
    stage: PipelineStage, computing: TokenPart | None, slowest: TokenPart | None, tr: Tr
) -> Box:
    span = Span(stage.start, stage.end)
    return Box(
        name=node_name(stage, tr),
        blocks=_blocks(span, tr),
        numbers=_numbers(span),
        start=span.start,
        end=span.end,
        is_self=stage.is_self,
        time="" if computing is None else milliseconds(computing.time_ms, tr),
        is_slowest=computing is not None and computing is slowest,
    )


def node_name(stage: PipelineStage, tr: Tr) -> str:
    """Who holds `stage`, as people say it."""
    return tr("This computer") if stage.is_self else f"…{short(PeerId(stage.peer))}"


def path_words(link: LinkStatus, tr: Tr) -> str:
    """How the bytes to a neighbour travel."""
    match link.path:
        case LinkPath.DIRECT:
            return tr("direct")
        case LinkPath.PUNCHED:
            return tr("direct, through both routers")
        case LinkPath.RELAYED:
            if link.relay is None:
                return tr("through a relay")
            return tr("through …{relay}").format(relay=short(PeerId(link.relay)))


def _arrows(status: EngineStatus, slowest: TokenPart | None, tr: Tr) -> tuple[Arrow, ...]:
    if len(status.plan) < 2:
        return ()
    ways = {(part.peer, part.to): part for part in status.token_parts}
    links = {link.peer: link for link in status.links}
    found = []
    for index, stage in enumerate(status.plan):
        after = status.plan[(index + 1) % len(status.plan)]
        way = ways.get((stage.peer, after.peer))
        ours = links.get(after.peer if stage.is_self else stage.peer if after.is_self else "")
        found.append(
            Arrow(
                time="" if way is None else _about(way.is_measured) + milliseconds(way.time_ms, tr),
                path="" if ours is None else path_words(ours, tr),
                is_slowest=way is not None and way is slowest,
            )
        )
    return tuple(found)


def _missing(stages: Iterable[PipelineStage], num_blocks: int, tr: Tr) -> tuple[Box, ...]:
    """Maximal runs of blocks that none of `stages` holds."""
    found, reached = [], 0
    ends = Span(num_blocks, num_blocks)
    for span in (*sorted(Span(stage.start, stage.end) for stage in stages), ends):
        if span.start > reached:
            gap = Span(reached, span.start)
            found.append(
                Box(
                    tr("Nobody"), _blocks(gap, tr), _numbers(gap), gap.start, gap.end,
                    is_self=False,
                )
            )  # fmt: skip
        reached = max(reached, span.end)
    return tuple(found)


def _caption(missing: Sequence[Box], tr: Tr) -> str:
    if not missing:
        return tr("All blocks are held, but no way through them is open now.")
    spans = ", ".join(_numbers(Span(box.start, box.end)) for box in missing)
    return tr(
        "Nobody holds blocks {spans}, so nothing can be answered until a node with them joins."
    ).format(spans=spans)


def _bottleneck(status: EngineStatus, tr: Tr) -> str:
    """What a token spends most of its time on; empty while unknown."""
    if not status.token_parts:
        return ""
    slowest = max(status.token_parts, key=lambda part: part.time_ms)
    all_measured = all(part.is_measured for part in status.token_parts)
    whole_ms = sum(part.time_ms for part in status.token_parts)
    text = tr("Most of the time goes into {what}: {time} of {whole} for each token.").format(
        what=_what(slowest, status, tr),
        time=_about(slowest.is_measured) + milliseconds(slowest.time_ms, tr),
        whole=_about(all_measured) + milliseconds(whole_ms, tr),
    )
    if not slowest.is_measured:
        return f"{text} {tr('That is not measured yet.')}"
    return text if all_measured else f"{text} {tr('Not every way is measured yet.')}"


def _what(part: TokenPart, status: EngineStatus, tr: Tr) -> str:
    here = {stage.peer for stage in status.plan if stage.is_self}
    node = f"…{short(PeerId(part.peer))}"
    if part.to is None:
        if part.peer in here:
            return tr("the blocks of this computer")
        return tr("the blocks of {node}").format(node=node)
    following = f"…{short(PeerId(part.to))}"
    if part.peer in here:
        return tr("the way from this computer to {node}").format(node=following)
    if part.to in here:
        return tr("the way from {node} to this computer").format(node=node)
    return tr("the way from {node} to {next}").format(node=node, next=following)


def _about(is_measured: bool) -> str:
    return "" if is_measured else "≈ "


def _as_text(stages: Sequence[Box], beside: Sequence[Box], caption: str, tr: Tr) -> str:
    lines = [
        ", ".join(filter(None, (f"{at}. {box.name}", box.blocks, box.time)))
        for at, box in enumerate(stages, 1)
    ]
    if beside:
        others = "; ".join(f"{box.name}, {box.blocks}" for box in beside)
        lines.append(tr("Beside it: {nodes}").format(nodes=others))
    return "\n".join((*lines, caption)).strip()


def _blocks(span: Span, tr: Tr) -> str:
    text = tr("Block {span}") if len(span) == 1 else tr("Blocks {span}")
    return text.format(span=_numbers(span))


def _numbers(span: Span) -> str:
    return str(span.start) if len(span) == 1 else str(span)
