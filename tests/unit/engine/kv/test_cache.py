from __future__ import annotations

import gc
import weakref

import psutil
import pytest
import torch

from engine.core.errors import CacheFull
from engine.core.kv_room import PAGE_TOKENS, KvDtype
from engine.kv.cache import KvPool
from tests.support.caches import held

CPU = torch.device("cpu")


def pool(num_kv_heads: int = 2, head_dim: int = 4, dtype: torch.dtype = torch.float32) -> KvPool:
    return KvPool(num_kv_heads, head_dim, dtype=dtype, device=CPU)


ARENA = (3, 20 * PAGE_TOKENS)


def tokens(count: int, value: float = 1.0) -> torch.Tensor:
    return torch.full((count, 4, 4), value)  # [T, 2K, d]


def test_what_is_put_is_seen_together_with_what_came_before() -> None:
    cache = pool().reserve(num_blocks=3, capacity_tokens=10)
    cache.put(1, 0, tokens(2, 1.0))
    new = torch.cat([tokens(3, 2.0)[:, :2], tokens(3, 3.0)[:, 2:]], dim=1)
    cache.put(1, 2, new)
    keys, values = held(cache, 1, 5)
    assert keys.shape == values.shape == (2, 5, 4)
    assert keys[0, :, 0].tolist() == [1, 1, 2, 2, 2]
    assert values[1, :, 3].tolist() == [1, 1, 3, 3, 3]


def test_sequences_and_blocks_do_not_share_memory() -> None:
    room = pool()
    first, second = room.reserve(2, 10), room.reserve(2, 10)
    assert first.near.slab is second.near.slab
    first.put(0, 0, tokens(10, 5.0))
    for cache, block in ((first, 1), (second, 0), (second, 1)):
        keys, values = held(cache, block, 10)
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
    keys, values = held(again, 0, 10)
    assert not keys.any()
    assert not values.any()


@pytest.mark.parametrize("arena", [None, ARENA])
@pytest.mark.parametrize("kv_dtype", ["auto", "8bit"])
@pytest.mark.parametrize(("share_from", "share_to"), [(0, 0), (0.3, 0.3), (1, 0.5), (0, 1)])
def test_a_copied_prefix_is_held_and_then_belongs_to_the_copy_alone(
    arena: tuple[int, int] | None, kv_dtype: KvDtype, share_from: float, share_to: float
) -> None:
    room = KvPool(2, 4, dtype=torch.float32, device=CPU, kv_dtype=kv_dtype, arena=arena)
    first, second = room.reserve(2, 10, share_from), room.reserve(2, 20, share_to)
    for block in range(2):
        first.put(block, 0, torch.randn(6, 4, 4))
    first.length = first.written = 6
    before = [held(first, block, 4) for block in range(2)]
    second.copy_prefix_from(first, 4)
    first.put(0, 0, tokens(6, 9.0))
    assert second.length == second.written == 4
    for block in range(2):
        for copied, original in zip(held(second, block, 4), before[block], strict=True):
            assert torch.equal(copied, original)
    for tokens_asked in (7, -1):
        with pytest.raises(ValueError, match="more than are held"):
            second.copy_prefix_from(first, tokens_asked)
    with pytest.raises(ValueError, match="same blocks"):
        room.reserve(3, 10).copy_prefix_from(first, 4)


def test_the_oldest_share_of_a_sequence_lies_in_ram() -> None:
    cache = pool().reserve(1, 10, 0.35)
    assert cache.far is not None
    assert cache.near is not None
    assert (cache.far.first, cache.far.num_tokens) == (0, 3)
    assert (cache.near.first, cache.near.num_tokens) == (3, 7)
    cache.put(0, 2, tokens(3, 5.0))
    keys, _ = held(cache, 0, 10)
    assert keys[0, :, 0].tolist() == [0, 0, 5, 5, 5, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_room_in_both_tiers_is_counted_and_given_back(share: float) -> None:
    room = pool()
    cache = room.reserve(3, 100, share)
    per_token = 2 * 2 * 3 * 4 * 4
    assert room.num_bytes == (per_token * 100 * (1 - share), per_token * 100 * share)
    room.release(cache)
    assert room.num_bytes == (0, 0)


def test_eight_bits_count_and_keep_what_they_should() -> None:
    room = KvPool(2, 64, dtype=torch.float32, device=CPU, kv_dtype="8bit")
    cache = room.reserve(1, 10)
    assert room.num_bytes == (10 * 4 * (64 + 2), 0)
    new = torch.randn(10, 4, 64)
    new[3, 2] = 0
    new[4, 1] = 1e-30
    new[5] *= 1e20
    cache.put(0, 0, new)
    got = torch.cat(held(cache, 0, 10)).transpose(0, 1)
    step = new.abs().amax(-1, keepdim=True) / 127  # half a step, and what the factor was rounded by
    assert ((got - new).abs() <= step * (0.5 + 127 * 2**-8)).all()
    assert not got[3, 2].any()


def test_a_released_room_in_ram_is_forgotten_too() -> None:
    room = pool()
    keep = room.reserve(1, 20, 0.5)
    first = room.reserve(1, 20, 0.5)
    first.put(0, 0, tokens(14, float("nan")))
    first.written = 14
    room.release(first)
    keys, values = held(room.reserve(1, 20, 0.5), 0, 20)
    assert not keys.any()
    assert not values.any()
    room.release(keep)


def test_pages_come_back_empty_and_are_counted_whole() -> None:
    room = KvPool(2, 4, dtype=torch.float32, device=CPU, arena=ARENA)
    page_bytes = PAGE_TOKENS * 3 * 4 * 4 * 4
    caches = [room.reserve(3, capacity) for capacity in (1, PAGE_TOKENS, PAGE_TOKENS + 1)]
    assert room.num_bytes == (4 * page_bytes, 0)
    for cache in caches:
        cache.put(1, 0, tokens(cache.capacity_tokens, float("nan")))
        cache.written = cache.capacity_tokens
        room.release(cache)
    assert room.num_bytes == (0, 0)
    whole = room.reserve(3, 20 * PAGE_TOKENS)
    for block in range(3):
        keys, values = held(whole, block, 20 * PAGE_TOKENS)
        assert not keys.any()
        assert not values.any()
    with pytest.raises(CacheFull):
        room.reserve(3, 1)
    room.reserve(3, 10, 1)  # RAM is another matter


@pytest.mark.parametrize("arena", [None, ARENA])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_kept_prefix_takes_room_for_itself_alone(
    arena: tuple[int, int] | None, share: float
) -> None:
    room = KvPool(2, 4, dtype=torch.float32, device=CPU, arena=arena)
    cache = room.reserve(3, 100, share)
    cache.put(1, 0, torch.randn(90, 4, 4))
    cache.length = cache.written = 90
    before = [tensor.clone() for tensor in held(cache, 1, 40)]
    kept = room.keep_prefix(cache, 40)
    assert kept.length == kept.capacity_tokens == 40
    for now, original in zip(held(kept, 1, 40), before, strict=True):
        assert torch.equal(now, original)
    taken = 40 if arena is None else 2 * PAGE_TOKENS
    assert room.num_bytes == (taken * 3 * 4 * 4 * 4, 0)
    room.release(kept)
    assert room.num_bytes == (0, 0)
    again = room.reserve(3, 100)
    assert not torch.cat(held(again, 1, 100)).any()


def test_room_that_is_not_written_takes_no_memory() -> None:
    room = pool(num_kv_heads=8, head_dim=128)
    before = psutil.Process().memory_info().rss
    caches = [room.reserve(16, 5000) for _ in range(4)]
    assert room.num_bytes.device > 2 << 30
    assert psutil.Process().memory_info().rss - before < 64 << 20
    assert len({cache.near.slot for cache in caches if cache.near.slab is caches[0].near.slab}) > 1


@pytest.mark.parametrize("arena", [None, ARENA], ids=["slots", "pages"])
@pytest.mark.parametrize("kv_dtype", ["auto", "8bit"])
def test_draft_brought_together_after_the_next_row_leaves_what_it_leaves_before_it(
    arena: tuple[int, int] | None, kv_dtype: KvDtype
) -> None:
    room = KvPool(2, 4, dtype=torch.float32, device=CPU, kv_dtype=kv_dtype, arena=arena)
    eager, late = (room.reserve(3, 4 * PAGE_TOKENS) for _ in range(2))
    generator = torch.Generator().manual_seed(7)
    start, drafted, path, row = PAGE_TOKENS - 6, 13, [0, 3, 7, 8], 14
    places = [start + node for node in path]
    new = [torch.randn(start + drafted + row, 4, 4, generator=generator) for _ in range(3)]
    for block in range(3):
        eager.put(block, 0, new[block][: start + drafted])
        late.put(block, 0, new[block])
    eager.move(places, start)
    for block in range(3):
        eager.put(block, start + len(path), new[block][start + drafted :])
    late.move([*places, *range(start + drafted, start + drafted + row)], start)
    for block in range(3):
        ends = (held(cache, block, start + len(path) + row) for cache in (late, eager))
        for ours, theirs in zip(*ends, strict=True):
            assert torch.equal(ours, theirs)
