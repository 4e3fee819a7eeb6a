"""Slabs: many sequences' rooms of one size, at a regular distance.

So the newest tokens of a batch are stored by one operation and attended to by another, without
copying what is cached: per sequence, as on separate tensors, the calls cost more than the
arithmetic.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.kv.cells import MakeCells


class Slab:
    """Slots of equal size.

    Args:
        num_slots: R.
        num_blocks: L.
        shape: (2K, C, d): heads' keys, then values; tokens; head size.
        make_cells: What they are made of.
        device: Where its tokens are attended to.
    """

    def __init__(
        self,
        num_slots: int,
        num_blocks: int,
        shape: tuple[int, int, int],
        make_cells: MakeCells,
        device: torch.device,
    ) -> None:
        self._whole = make_cells((num_slots, num_blocks, *shape), device)
        self.num_slots = num_slots
        self.device = device
        self.blocks = tuple(self._whole.part((slice(None), block)) for block in range(num_blocks))
        """Per block, [R, 2K, C, d]. What no sequence has written is 0: a masked score of 0 times
        anything else could be NaN."""
        self._free = list(range(num_slots))

    @property
    def is_full(self) -> bool:
        """Whether every slot is taken."""
        return not self._free

    @property
    def is_empty(self) -> bool:
        """Whether no slot is taken."""
        return len(self._free) == self.num_slots

    def take(self) -> int:
        """The lowest free slot: the closer together, the more a batch can share."""
        return heapq.heappop(self._free)

    def give_back(self, slot: int, written_tokens: int) -> None:
        """Free a slot and forget its first tokens, the only ones that are not 0."""
        self._whole.clear((slot, slice(None), slice(None), slice(written_tokens)))
        heapq.heappush(self._free, slot)


class Part:
    """Consecutive positions of one sequence, in one slot.

    Args:
        slab: Where.
        slot: Which of its slots.
        first: The sequence's position that is 0 here.
        num_tokens: Positions held at most.
    """

    __slots__ = ("_blocks", "first", "num_tokens", "slab", "slot")

    def __init__(self, slab: Slab, slot: int, first: int, num_tokens: int) -> None:
        self.slab = slab
        self.slot = slot
        self.first = first
        self.num_tokens = num_tokens
        self._blocks = tuple(block.part(slot) for block in slab.blocks)  # each [2K, C, d]

    def put(self, block: int, position: int, new: Tensor) -> None:
        """Store T tokens' keys of all heads, then values, [T, 2K, d], from `position` here on."""
        T = new.shape[0]
        self._blocks[block].put((slice(None), slice(position, position + T)), new.transpose(0, 1))

    def held(self, block: int, start: int, end: int) -> Tensor:
        """Keys and values of positions [start, end) here, [2K, end - start, d]; perhaps a view."""
        return self._blocks[block].get((slice(None), slice(start, end)))

    def copy_from(self, other: Part, start: int, end: int) -> None:
        """Take over another part's positions [start, end) of the sequence, which both hold."""
        ours = (slice(None), slice(start - self.first, end - self.first))
        theirs = (slice(None), slice(start - other.first, end - other.first))
        for block, source in zip(self._blocks, other._blocks, strict=True):
            block.put_stored(ours, source.get_stored(theirs))


class PartGroup:
    """Parts in one slab, in the order of their slots, written and read together."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._blocks = parts[0].slab.blocks
        device = parts[0].slab.device
        slots = [part.slot for part in parts]
        self._slots = torch.tensor(slots, device=device)
        self._window = slice(slots[0], slots[-1] + 1)
        self.places = [slot - slots[0] for slot in slots]
        """Of the parts, among what `held` gives."""
        self.num_places = self.places[-1] + 1
        self._has_gaps = self.num_places != len(parts)
        self._place_index = torch.tensor(self.places, device=device)

    def put(self, block: int, positions: Tensor, new: Tensor) -> None:
        """Store a token for each part: [n] positions within them and [n, 2K, d]."""
        self._blocks[block].put((self._slots, slice(None), positions), new)

    def held(self, block: int, end: int) -> Tensor:
        """Keys and values of the first positions, [places, 2K, end, d]; perhaps a view."""
        return self._blocks[block].get((self._window, slice(None), slice(end)))

    def spread(self, x: Tensor) -> Tensor:
        """Bring what belongs to the parts, [n, …], to their places."""
        if not self._has_gaps:
            return x
        return x.new_zeros(self.num_places, *x.shape[1:]).index_copy_(0, self._place_index, x)

    def collect(self, x: Tensor) -> Tensor:
        """The other way."""
        return x.index_select(0, self._place_index) if self._has_gaps else x
