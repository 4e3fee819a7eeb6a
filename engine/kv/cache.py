"""KV caches: room for whole sequences, taken once and written in place.

A sequence's room may lie in two tiers: its oldest positions in RAM, its newest where the blocks
compute. The border is fixed when the room is taken, so no token ever moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.kv_room import KvDtype, KvRoom, kv_head_bytes, kv_room
from engine.kv.cells import eight_bit_cells, plain_cells
from engine.kv.key_mix import KeyMix
from engine.kv.pages import Arena, PagePart
from engine.kv.part import Part
from engine.kv.slab import Slab, SlabPart

_MAX_SLOTS = 32
_MAX_SLAB_BYTES = 2 << 30
_MIN_SLOT_TOKENS = 64


class SequenceCache:
    """Keys and values of one sequence in the blocks of one span; made by `KvPool.reserve`."""

    __slots__ = ("capacity_tokens", "far", "key_mix", "length", "near", "num_blocks", "written")

    def __init__(
        self, num_blocks: int, near: Part | None, far: Part | None, key_mix: KeyMix | None
    ) -> None:
        self.num_blocks = num_blocks
        self.near = near
        """The newest positions, where the blocks compute."""
        self.far = far
        """The oldest positions, in RAM."""
        self.key_mix = key_mix
        """How queries and keys must be turned that come here."""
        self.capacity_tokens: int = sum(part.num_tokens for part in self.parts)
        """The most tokens that will ever be held."""
        self.length = 0
        """Tokens held, the same in every block between forward passes."""
        self.written = 0
        """The most tokens ever written."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The one or two that there are, in the order of their positions."""
        return tuple(part for part in (self.far, self.near) if part is not None)

    def put(self, block: int, position: int, new: Tensor) -> None:
        """Store T tokens of one block from `position` on; `length` is the caller's to move.

        Args:
            block: Index within the span.
            position: S, place of the first token.
            new: Keys of all heads, then values, [T, 2K, d].
        """
        end = position + new.shape[0]
        for part in self.parts:
            start, stop = max(position, part.first), min(end, part.first + part.num_tokens)
            if start < stop:
                tokens = new[start - position : stop - position]
                part.put(block, start - part.first, tokens.to(part.device))

    def move(self, sources: Sequence[int], position: int) -> None:
        """Bring tokens together, so that they lie one behind another.

        [BB] §7.3's compaction: what a draft's path leaves behind is a hole no more.

        Args:
            sources: Where they lie; ascending.
            position: S, where the first of them shall lie, at or before the first source.
        """
        moves = [(s, t) for t, s in enumerate(sources, position) if s != t]
        for source in self.parts:
            for target in self.parts:
                there = [
                    (s - source.first, t - target.first)
                    for s, t in moves
                    if source.holds(s) and target.holds(t)
                ]
                if there:
                    stored = source.take([s for s, _ in there], self.num_blocks)
                    target.store([t for _, t in there], stored)

    def copy_prefix_from(self, other: SequenceCache, tokens: int) -> None:
        """Begin with the first tokens of another sequence, as if they had been computed here.

        Args:
            other: Of the same pool and for the same blocks, with any tiers; not changed.
            tokens: P, at most what `other` holds and what this has room for.

        Raises:
            ValueError: They do not fit together.
        """
        if self.num_blocks != other.num_blocks:
            raise ValueError("a prefix can be copied between caches of the same blocks only")
        if not 0 <= tokens <= min(other.length, self.capacity_tokens):
            raise ValueError(f"{tokens} tokens are more than are held or fit")
        for ours in self.parts:
            for theirs in other.parts:
                start = max(ours.first, theirs.first)
                ends = (part.first + part.num_tokens for part in (ours, theirs))
                end = min(tokens, *ends)
                for block in range(self.num_blocks if start < end else 0):
                    stored = theirs.get_stored(block, start - theirs.first, end - theirs.first)
                    ours.put_stored(block, start - ours.first, end - ours.first, stored)
        self.length = tokens
        self.written = max(self.written, tokens)


class KvPool:
    """All room for sequences of one stage.

    Args:
        num_kv_heads: K.
        head_dim: d.
        dtype: Of the arithmetic.
        device: Where the blocks compute.
        kv_dtype: What keys and values are kept in.
        arena: Blocks and tokens of all the room that there shall ever be where the blocks compute;
            taken at once. None: it is taken sequence by sequence, as on a CPU, where memory is not
            taken before it is written.
    """

    def __init__(
        self,
        num_kv_heads: int,
        head_dim: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
        kv_dtype: KvDtype = "auto",
        arena: tuple[int, int] | None = None,
    ) -> None:
        self._heads = 2 * num_kv_heads
        self._head_dim = head_dim
        assert arena is not None or device.type == "cpu", "slabs are for a CPU's memory"
        if kv_dtype == "8bit":
            self._make_cells = eight_bit_cells(dtype)
            self._key_mix: KeyMix | None = KeyMix(head_dim, dtype=dtype, device=device)
        else:
            self._make_cells, self._key_mix = plain_cells(dtype), None
        self._token_bytes = self._heads * kv_head_bytes(head_dim, dtype.itemsize, kv_dtype)
        """In one block."""
        self._arena = None
        if arena is not None:
            self._arena = Arena(*arena, self._heads, head_dim, self._make_cells, device)
        self._slabs: dict[tuple[bool, int, int], list[Slab]] = {}
        """By: in the RAM tier, blocks, tokens of a slot."""
        self.num_bytes = KvRoom(0, 0)
        """Of the room that is reserved."""

    def reserve(
        self, num_blocks: int, capacity_tokens: int, kv_offload: float = 0.0
    ) -> SequenceCache:
        """Take room for one sequence, so that no later step can fail for memory.

        Args:
            num_blocks: Of its span.
            capacity_tokens: Room for prompt and answer.
            kv_offload: α, the share of the room that lies in RAM.
        """
        room = kv_room(capacity_tokens, kv_offload)
        near: Part | None = None
        if room.device and self._arena is not None:
            near = PagePart(self._arena, room.ram, room.device)
        elif room.device:
            near = self._take_slot(num_blocks, room.ram, room.device, in_ram=False)
        far = None
        if room.ram:
            far = self._take_slot(num_blocks, 0, room.ram, in_ram=True)
        return self._counted(SequenceCache(num_blocks, near, far, self._key_mix))

    def keep_prefix(self, cache: SequenceCache, tokens: int) -> SequenceCache:
        """Hold on to the first tokens of a sequence, with no room to spare.

        In its slab a short remainder would hold on to the room of many sequences.

        Args:
            cache: What they are taken from; released.
            tokens: At least 1 and at most what `cache` holds.

        Returns:
            Where they are now, all beside the blocks.

        Raises:
            CacheFull: They lie in RAM and do not fit beside the blocks.
        """
        if self._arena is None:
            shape = (self._heads, tokens, self._head_dim)
            slab = Slab(1, cache.num_blocks, shape, self._make_cells)
            near: Part = SlabPart(slab, slab.take(), 0, tokens)
        elif cache.far is None and isinstance(cache.near, PagePart):
            self._count(cache, -1)
            cache.near.shorten(tokens, cache.written)
            cache.capacity_tokens, cache.length = tokens, tokens
            return self._counted(cache)
        else:
            near = PagePart(self._arena, 0, tokens)
        kept = self._counted(SequenceCache(cache.num_blocks, near, None, self._key_mix))
        kept.copy_prefix_from(cache, tokens)
        self.release(cache)
        return kept

    def release(self, cache: SequenceCache) -> None:
        """Give the room back; a slab without sequences goes back to the system."""
        self._count(cache, -1)
        for part in cache.parts:
            part.release(min(max(0, cache.written - part.first), part.num_tokens))
            if isinstance(part, SlabPart) and part.slab.is_empty:
                for slabs in self._slabs.values():
                    if part.slab in slabs:
                        slabs.remove(part.slab)

    def _counted(self, cache: SequenceCache) -> SequenceCache:
        self._count(cache, 1)
        return cache

    def _count(self, cache: SequenceCache, factor: int) -> None:
        near, far = (
            0 if part is None else part.room_tokens * part.num_blocks * self._token_bytes * factor
            for part in (cache.near, cache.far)
        )
        self.num_bytes = KvRoom(self.num_bytes.device + near, self.num_bytes.ram + far)

    def _take_slot(self, num_blocks: int, first: int, num_tokens: int, *, in_ram: bool) -> SlabPart:
        # What is never written takes no memory, so rounding up costs none.
        slot_tokens = max(_MIN_SLOT_TOKENS, 1 << (num_tokens - 1).bit_length())
        slabs = self._slabs.setdefault((in_ram, num_blocks, slot_tokens), [])
        slab = next((slab for slab in slabs if not slab.is_full), None)
        if slab is None:
            slot_bytes = num_blocks * self._token_bytes * slot_tokens
            num_slots = max(1, min(_MAX_SLOTS, _MAX_SLAB_BYTES // slot_bytes))
            shape = (self._heads, slot_tokens, self._head_dim)
            slab = Slab(num_slots, num_blocks, shape, self._make_cells)
            slabs.append(slab)
        return SlabPart(slab, slab.take(), first, num_tokens)
