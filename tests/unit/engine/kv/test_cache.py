from __future__ import annotations

import gc
import weakref

import psutil
import pytest
import torch

from engine.kv.cache import KvPool

CPU = torch.device("cpu")


def pool(num_kv_heads: int = 2, head_dim: int = 4, dtype: torch.dtype = torch.float32) -> KvPool:
    return KvPool(num_kv_heads, head_dim, dtype=dtype, device=CPU)


def tokens(count: int, value: float = 1.0) -> torch.Tensor:
    return torch.full((count, 4, 4), value)  # [T, 2K, d]


def test_what_is_put_is_seen_together_with_what_came_before() -> None:
    cache = pool().reserve(num_blocks=3, capacity_tokens=10)
    cache.put(1, 0, tokens(2, 1.0))
    new = torch.cat([tokens(3, 2.0)[:, :2], tokens(3, 3.0)[:, 2:]], dim=1)
    keys, values = cache.put(1, 2, new)
    assert keys.shape == values.shape == (1, 2, 5, 4)
    assert keys[0, 0, :, 0].tolist() == [1, 1, 2, 2, 2]
    assert values[0, 1, :, 3].tolist() == [1, 1, 3, 3, 3]


def test_sequences_and_blocks_do_not_share_memory() -> None:
    room = pool()
    first, second = room.reserve(2, 10), room.reserve(2, 10)
    assert first.near.slab is second.near.slab
    first.put(0, 0, tokens(10, 5.0))
    for cache, block in ((first, 1), (second, 0), (second, 1)):
        keys, values = cache.put(block, 9, tokens(1, 0.0))
        assert not keys.any()
        assert not values.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_pool_counts_what_is_reserved(dtype: torch.dtype) -> None:
    room = pool(dtype=dtype)
    caches = [room.reserve(3, capacity) for capacity in (10, 70, 1000)]
    per_token = 2 * 2 * 3 * 4 * dtype.itemsize
    assert room.num_bytes == (per_token * 1080, 0)
    room.release(caches[1])
    assert room.num_bytes == (per_token * 1010, 0)


def test_memory_goes_back_with_the_last_sequence_of_its_size() -> None:
    room = pool()
    caches = [room.reserve(2, 100) for _ in range(40)]
    slabs = {weakref.ref(cache.near.slab) for cache in caches}
    assert len(slabs) == 2
    while caches:
        room.release(caches.pop())
    gc.collect()
    assert [slab() for slab in slabs] == [None, None]


def test_a_released_room_is_used_again_and_holds_nothing_of_before() -> None:
    room = pool()
    first, second = room.reserve(1, 10), room.reserve(1, 10)
    first.put(0, 0, tokens(7, float("nan")))
    first.written = 7
    slot = first.near.slot
    room.release(first)
    again = room.reserve(1, 10)
    assert (again.near.slab, again.near.slot) == (second.near.slab, slot)
    keys, values = again.put(0, 9, tokens(1, 0.0))
    assert not keys.any()
    assert not values.any()


def test_a_copied_prefix_is_held_and_then_belongs_to_the_copy_alone() -> None:
    room = pool()
    first, second = room.reserve(2, 10), room.reserve(2, 200)
    for block in range(2):
        first.put(block, 0, tokens(6, block + 1.0))
    first.length = first.written = 6
    second.copy_prefix_from(first, 4)
    first.put(0, 0, tokens(6, 9.0))
    assert second.length == second.written == 4
    for block in range(2):
        keys, values = second.put(block, 4, tokens(1, 5.0))
        assert keys[0, 0, :, 0].tolist() == values[0, 1, :, 3].tolist() == [block + 1.0] * 4 + [5.0]
    for tokens_asked in (7, -1):
        with pytest.raises(ValueError, match="more than are held"):
            second.copy_prefix_from(first, tokens_asked)
    with pytest.raises(ValueError, match="same blocks"):
        room.reserve(3, 10).copy_prefix_from(first, 4)


def test_room_that_is_not_written_takes_no_memory() -> None:
    room = pool(num_kv_heads=8, head_dim=128)
    before = psutil.Process().memory_info().rss
    caches = [room.reserve(16, 5000) for _ in range(4)]
    assert room.num_bytes.device > 2 << 30
    assert psutil.Process().memory_info().rss - before < 64 << 20
    assert len({cache.near.slot for cache in caches if cache.near.slab is caches[0].near.slab}) > 1
