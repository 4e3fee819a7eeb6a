"""Slabs: many sequences' rooms of one size, at a regular distance.

So the newest tokens of a batch are stored by one operation and attended to by another, without
copying what is cached: per sequence, as on separate tensors, the calls cost more than the
arithmetic. For memory that is not taken before it is written, as a CPU's.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.kv.cells import Cells, MakeCells
from engine.kv.part import Part


class Slab:
    """Slots of equal size.

    Args:
        num_slots: R.
        num_blocks: L.
        shape: (2K, C, d): heads' keys, then values; tokens; head size.
        make_cells: What they are made of.
    """

    device = torch.device("cpu")

    def __init__(
        self,
        num_slots: int,
        num_blocks: int,
        shape: tuple[int, int, int],
        make_cells: MakeCells,
    ) -> None:
        self._whole = make_cells((num_slots, num_blocks, *shape), self.device)
        self.num_slots = num_slots
        self.blocks = tuple(self._whole.part((slice(None), block)) for block in range(num_blocks))
        """Per block, [R, 2K, C, d]. What no sequence has written is 0: a masked score of 0 times
        anything else could be NaN."""
        self._free = list(range(num_slots))

    def slot(self, slot: int) -> Cells:
        """One sequence's room, [L, 2K, C, d]."""
        return self._whole.part(slot)

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


class SlabPart:
    """A part in a slot; see `engine.kv.part.Part`.

    Args:
        slab: Where.
        slot: Which of its slots.
        first: The sequence's position that is 0 here.
        num_tokens: Positions held at most.
    """

    def __init__(self, slab: Slab, slot: int, first: int, num_tokens: int) -> None:
        self.slab = slab
        self.slot = slot
        self.first = first
        self.num_tokens = self.room_tokens = num_tokens
        self.device = slab.device
        self.num_blocks = len(slab.blocks)
        self.neighbourhood = id(slab)
        self.order = slot
        self._blocks = tuple(block.part(slot) for block in slab.blocks)  # each [2K, C, d]
        self._all = slab.slot(slot)  # [L, 2K, C, d]

    def put(self, block: int, position: int, new: Tensor) -> None:
        """See `Part`."""
        T = new.shape[0]
        self._blocks[block].put((slice(None), slice(position, position + T)), new.transpose(0, 1))

    def held(self, block: int, start: int, end: int) -> Tensor:
        """See `Part`."""
        return self._blocks[block].get((slice(None), slice(start, end)))

    def get_stored(self, block: int, start: int, end: int) -> tuple[Tensor, ...]:
        """See `Part`."""
        stored = self._blocks[block].get_stored((slice(None), slice(start, end)))
        return tuple(t.transpose(0, 1) for t in stored)

    def put_stored(self, block: int, start: int, end: int, stored: tuple[Tensor, ...]) -> None:
        """See `Part`."""
        ours = tuple(t.transpose(0, 1) for t in stored)
        self._blocks[block].put_stored((slice(None), slice(start, end)), ours)

    def holds(self, position: int) -> bool:
        """See `Part`."""
        return 0 <= position - self.first < self.num_tokens

    def take(self, positions: Sequence[int], num_blocks: int) -> tuple[Tensor, ...]:
        """See `Part`."""
        stored = self._all.get_stored((slice(num_blocks), slice(None), torch.tensor(positions)))
        return tuple(t.transpose(1, 2) for t in stored)

    def store(self, positions: Sequence[int], stored: tuple[Tensor, ...]) -> None:
        """See `Part`."""
        here = tuple(t.transpose(1, 2).to(self.device) for t in stored)
        index = (slice(len(here[0])), slice(None), torch.tensor(positions))
        self._all.put_stored(index, here)

    def count_places(self, parts: Sequence[Part]) -> int:
        """See `Part`: slots between theirs are computed too."""
        return parts[-1].order - parts[0].order + 1

    def group(self, parts: Sequence[Part]) -> SlabGroup:
        """See `Part`."""
        return SlabGroup(self.slab, [part.order for part in parts])

    def release(self, written_tokens: int) -> None:
        """See `Part`."""
        self.slab.give_back(self.slot, written_tokens)


class SlabGroup:
    """Parts in one slab; see `engine.kv.part.PartGroup`.

    Args:
        slab: Where.
        slots: Ascending.
    """

    def __init__(self, slab: Slab, slots: Sequence[int]) -> None:
        self._blocks = slab.blocks
        self._slots = torch.tensor(slots, device=slab.device)
        self._window = slice(slots[0], slots[-1] + 1)
        self.places = [slot - slots[0] for slot in slots]
        self.num_places = self.places[-1] + 1
        self._has_gaps = self.num_places != len(slots)
        self._place_index = torch.tensor(self.places, device=slab.device)

    def put(self, block: int, positions: Tensor, new: Tensor, owners: Tensor | None = None) -> None:
        """See `PartGroup`."""
        slots = self._slots if owners is None else self._slots[owners]
        self._blocks[block].put((slots, slice(None), positions), new)

    def held(self, block: int, end: int) -> Tensor:
        """See `PartGroup`."""
        return self._blocks[block].get((self._window, slice(None), slice(end)))

    def spread(self, x: Tensor) -> Tensor:
        """See `PartGroup`."""
        if not self._has_gaps:
            return x
        return x.new_zeros(self.num_places, *x.shape[1:]).index_copy_(0, self._place_index, x)

    def collect(self, x: Tensor) -> Tensor:
        """See `PartGroup`."""
        return x.index_select(0, self._place_index) if self._has_gaps else x
