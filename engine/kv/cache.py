"""KV caches: room for whole sequences, taken once and written in place.

Each sequence has a slot in a slab, which holds many of the same size at a regular distance. So the
newest tokens of a batch are stored by one operation and attended to by another, without copying
what is cached: per sequence, as on separate tensors, the calls cost more than the arithmetic.
"""

from __future__ import annotations

import heapq

import numpy as np
import torch
from torch import Tensor

_MAX_SLOTS = 32
_MAX_SLAB_BYTES = 2 << 30
_MIN_SLOT_TOKENS = 64


class Slab:
    """Slots of equal size.

    Args:
        num_slots: R.
        num_blocks: L.
        shape: (2K, C, d): heads' keys, then values; tokens; head size.
        dtype: Of keys and values.
        device: Where the blocks compute.
    """

    def __init__(
        self,
        num_slots: int,
        num_blocks: int,
        shape: tuple[int, int, int],
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        whole = _zeros((num_slots, num_blocks, *shape), dtype, device)
        self.num_slots = num_slots
        self.blocks: tuple[Tensor, ...] = whole.unbind(1)
        """Per block, [R, 2K, C, d]. What no sequence has written is 0: a masked score of 0 times
        anything else could be NaN."""
        self._whole = whole
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
        self._whole[slot, :, :, :written_tokens].zero_()
        heapq.heappush(self._free, slot)


class SequenceCache:
    """Keys and values of one sequence in the blocks of one span; made by `KvPool.reserve`."""

    __slots__ = ("_blocks", "capacity_tokens", "length", "num_bytes", "slab", "slot", "written")

    def __init__(self, slab: Slab, slot: int, capacity_tokens: int) -> None:
        self.slab = slab
        self.slot = slot
        self._blocks = tuple(block[slot] for block in slab.blocks)  # each [2K, C, d]
        heads, _, head_dim = self._blocks[0].shape
        self.capacity_tokens = capacity_tokens
        """The most tokens that will ever be held."""
        self.num_bytes: int = (
            len(slab.blocks) * heads * capacity_tokens * head_dim * self._blocks[0].element_size()
        )
        self.length = 0
        """Tokens held, the same in every block between forward passes."""
        self.written = 0
        """The most tokens ever written."""

    def put(self, block: int, position: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Store T tokens of one block from `position` on; `length` is the caller's to move.

        Args:
            block: Index within the span.
            position: S, place of the first token.
            new: Keys of all heads, then values, [T, 2K, d].

        Returns:
            Keys and values up to the last new token, each [1, K, S + T, d], not copied.
        """
        T = new.shape[0]
        held = self._blocks[block].narrow(1, 0, position + T)  # [2K, S + T, d]
        held.narrow(1, position, T).copy_(new.transpose(0, 1))
        keys, values = held.unsqueeze(0).chunk(2, dim=1)
        return keys, values

    def copy_prefix_from(self, other: SequenceCache, tokens: int) -> None:
        """Begin with the first tokens of another sequence, as if they had been computed here.

        Args:
            other: Of the same pool and for the same blocks; not changed.
            tokens: P, at most what `other` holds and what this has room for.

        Raises:
            ValueError: They do not fit together.
        """
        if len(self._blocks) != len(other._blocks):
            raise ValueError("a prefix can be copied between caches of the same blocks only")
        if not 0 <= tokens <= min(other.length, self.capacity_tokens):
            raise ValueError(f"{tokens} tokens are more than are held or fit")
        for ours, theirs in zip(self._blocks, other._blocks, strict=True):
            ours.narrow(1, 0, tokens).copy_(theirs.narrow(1, 0, tokens))
        self.length = tokens
        self.written = max(self.written, tokens)


class KvPool:
    """All room for sequences of one stage.

    Args:
        num_kv_heads: K.
        head_dim: d.
        dtype: Of keys and values.
        device: Where the blocks compute.
    """

    def __init__(
        self, num_kv_heads: int, head_dim: int, *, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._heads = 2 * num_kv_heads
        self._head_dim = head_dim
        self._dtype = dtype
        self._device = device
        self._slabs: dict[tuple[int, int], list[Slab]] = {}  # by blocks and tokens of a slot
        self.num_bytes = 0
        """Of the room that is reserved."""

    def reserve(self, num_blocks: int, capacity_tokens: int) -> SequenceCache:
        """Take room for one sequence, so that no later step can fail for memory."""
        key = (num_blocks, self._slot_tokens(capacity_tokens))
        slabs = self._slabs.setdefault(key, [])
        slab = next((slab for slab in slabs if not slab.is_full), None)
        if slab is None:
            shape = (self._heads, key[1], self._head_dim)
            slab_slots = self._num_slots(num_blocks * self._heads * key[1] * self._head_dim)
            slab = Slab(slab_slots, num_blocks, shape, dtype=self._dtype, device=self._device)
            slabs.append(slab)
        cache = SequenceCache(slab, slab.take(), capacity_tokens)
        self.num_bytes += cache.num_bytes
        return cache

    def release(self, cache: SequenceCache) -> None:
        """Give the room back; a slab without sequences goes back to the system."""
        self.num_bytes -= cache.num_bytes
        cache.slab.give_back(cache.slot, cache.written)
        if cache.slab.is_empty:
            for slabs in self._slabs.values():
                if cache.slab in slabs:
                    slabs.remove(cache.slab)

    def _slot_tokens(self, capacity_tokens: int) -> int:
        if self._device.type != "cpu":
            return capacity_tokens
        # On a CPU what is never written takes no memory, so rounding up costs none.
        return max(_MIN_SLOT_TOKENS, 1 << (capacity_tokens - 1).bit_length())

    def _num_slots(self, slot_elements: int) -> int:
        if self._device.type != "cpu":
            return 1
        return max(1, min(_MAX_SLOTS, _MAX_SLAB_BYTES // (slot_elements * self._dtype.itemsize)))


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # torch.zeros would write to every page; these are zero without being there yet.
    raw = np.zeros((*shape[:-1], shape[-1] * dtype.itemsize), np.uint8)
    return torch.from_numpy(raw).view(dtype)
