"""Spans of blocks and routes through them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.ids import PeerId


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Blocks `[start, end)`."""

    start: int
    end: int

    def __len__(self) -> int:
        """Number of blocks."""
        return self.end - self.start

    def __str__(self) -> str:
        """As people count: first and last block, inclusive."""
        return f"{self.start}–{self.end - 1}" if len(self) else "none"


@dataclass(frozen=True, slots=True)
class Hop:
    """One stage of a route: the blocks that this peer computes."""

    peer: PeerId
    span: Span


@dataclass(frozen=True, slots=True)
class Route:
    """Stages that together cover every block once, in order."""

    hops: tuple[Hop, ...]

    @property
    def first(self) -> PeerId:
        """The peer that embeds ids."""
        return self.hops[0].peer

    @property
    def last(self) -> PeerId:
        """The peer that holds norm and LM head, and samples."""
        return self.hops[-1].peer
