"""What the tiers have in common: a part of a sequence, and parts that are used together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Part(Protocol):
    """Consecutive positions of one sequence, in one tier."""

    @property
    def first(self) -> int:
        """The sequence's position that is 0 here."""
        ...

    @property
    def num_tokens(self) -> int:
        """Positions held at most."""
        ...

    @property
    def room_tokens(self) -> int:
        """Positions that it takes room for."""
        ...

    @property
    def num_blocks(self) -> int:
        """Blocks that it takes room for."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its tokens are attended to."""
        ...

    @property
    def neighbourhood(self) -> int:
        """Parts with the same one can be used together."""
        ...

    @property
    def order(self) -> int:
        """In which order."""
        ...

    def put(self, block: int, position: int, new: Tensor) -> None:
        """Store T tokens' keys of all heads, then values, [T, 2K, d], from `position` here on."""
        ...

    def held(self, block: int, start: int, end: int) -> Tensor:
        """Keys and values of positions [start, end) here, [2K, end - start, d]; perhaps a view."""
        ...

    def get_stored(self, block: int, start: int, end: int) -> tuple[Tensor, ...]:
        """Positions [start, end) here as they are stored, each [end - start, 2K, …]."""
        ...

    def put_stored(self, block: int, start: int, end: int, stored: tuple[Tensor, ...]) -> None:
        """Take over what `get_stored` gave elsewhere."""
        ...

    def holds(self, position: int) -> bool:
        """Whether a position of the sequence lies here."""
        ...

    def take(self, positions: Sequence[int], num_blocks: int) -> tuple[Tensor, ...]:
        """A copy of positions here as they are stored in the first blocks, each [L, n, 2K, …]."""
        ...

    def store(self, positions: Sequence[int], stored: tuple[Tensor, ...]) -> None:
        """Put what `take` gave, of some part."""
        ...

    def count_places(self, parts: Sequence[Part]) -> int:
        """For how many parts a group of these, in their order, computes."""
        ...

    def group(self, parts: Sequence[Part]) -> PartGroup:
        """Parts of this neighbourhood, in their order, this one among them."""
        ...

    def release(self, written_tokens: int) -> None:
        """Give the room back and forget the first tokens, the only ones that are not 0."""
        ...


class PartGroup(Protocol):
    """Parts that are written and read together."""

    @property
    def places(self) -> Sequence[int]:
        """Of the parts, among what `held` gives."""
        ...

    @property
    def num_places(self) -> int:
        """How many `held` gives."""
        ...

    def put(self, block: int, positions: Tensor, new: Tensor, owners: Tensor | None = None) -> None:
        """Store tokens: [n] positions within the parts and [n, 2K, d].

        `owners`, [n], names the part of each by its place in their order; None: one for each part.
        """
        ...

    def held(self, block: int, end: int) -> Tensor:
        """Keys and values of the first positions, [places, 2K, end, d]; perhaps a view."""
        ...

    def spread(self, x: Tensor) -> Tensor:
        """Bring what belongs to the parts, [n, …], to their places."""
        ...

    def collect(self, x: Tensor) -> Tensor:
        """The other way."""
        ...
