"""Attention over any mix of rows, drafts, tiers and windows against softmax written out."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.core.kv_room import PAGE_TOKENS
from engine.kv.cache import KvPool, SequenceCache
from engine.models.attention import PackedRow, PackedRows

CPU = torch.device("cpu")
HEAD_DIM = 8
TOLERANCE = 1e-5  # float32, sums of some dozen numbers around 1 in another order


class Recorded:
    """A sequence, and beside its cache all that was ever put there."""

    def __init__(self, cache: SequenceCache, kv_heads: int) -> None:
        self.cache = cache
        self.held = torch.zeros(0, 2 * kv_heads, HEAD_DIM)  # [S, 2K, d]


def ancestors(node: int, parents: tuple[int, ...]) -> list[int]:
    """A draft's tokens on the way to one of them, itself last."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def expected(
    query: Tensor, held: Tensor, position: int, window: int | None, parents: tuple[int, ...]
) -> Tensor:
    """[T, H, d] over [S + T, 2K, d], token by token and head by head; the last ones are a draft's."""
    T, H, d = query.shape
    K = held.shape[1] // 2
    draft = position + T - len(parents)
    out = torch.zeros(T, H, d)
    for t in range(T):
        node = position + t - draft
        path = ancestors(node, parents) if node >= 0 else []
        seen_at = [*range(min(draft, position + t + 1)), *(draft + n for n in path)]
        seen = held[seen_at if window is None else seen_at[-window:]]
        for h in range(H):
            kv_head = h * K // H
            weights = (seen[:, kv_head] @ query[t, h] / math.sqrt(d)).softmax(0)
            out[t, h] = weights @ seen[:, K + kv_head]
    return out


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_attention_equals_softmax_whatever_the_tiers_windows_and_neighbours(
    data: st.DataObject,
) -> None:
    check(data, CPU)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_attention_equals_softmax_with_the_blocks_on_a_gpu(data: st.DataObject) -> None:
    check(data, torch.device("cuda"))


def check(data: st.DataObject, device: torch.device) -> None:
    """Run passes of any rows, the blocks on this device."""
    kv_heads = data.draw(st.sampled_from([1, 2]), "K")
    heads = kv_heads * data.draw(st.sampled_from([1, 3]), "group")
    window = data.draw(st.none() | st.integers(1, 12), "window")
    torch.manual_seed(data.draw(st.integers(0, 1000), "seed"))
    pages = device != CPU or data.draw(st.booleans(), "pages")
    arena = (1, 10 * PAGE_TOKENS) if pages else None
    pool = KvPool(kv_heads, HEAD_DIM, dtype=torch.float32, device=device, arena=arena)
    sequences = [
        Recorded(pool.reserve(1, capacity, share), kv_heads)
        for capacity, share in data.draw(
            st.lists(
                st.tuples(
                    st.sampled_from([20, 24, PAGE_TOKENS + 1]),
                    st.sampled_from([0, 0.05, 0.3, 0.7, 1]),
                ),
                min_size=1,
                max_size=5,
            ),
            "sequences",
        )
    ]
    for _ in range(data.draw(st.integers(1, 6), "passes")):
        rows, chosen = [], []
        for sequence in data.draw(st.permutations(sequences), "order"):
            room = sequence.cache.capacity_tokens
            # Mostly the next token; sometimes a chunk, nothing, or back to an earlier position.
            length = len(sequence.held)
            position = data.draw(st.just(length) | st.integers(0, length), "position")
            count = min(data.draw(st.sampled_from([1, 1, 1, 0, 2, 9]), "count"), room - position)
            if count:
                start = sum(row.count for row in rows)
                drafted = data.draw(st.just(0) | st.integers(0, count - 1), "drafted")
                parents = tuple(
                    data.draw(st.integers(-1, node - 1), "parent") for node in range(drafted)
                )
                rows.append(PackedRow(sequence.cache, start, count, position, parents))
                chosen.append(sequence)
        if not rows:
            continue
        N = sum(row.count for row in rows)
        query = torch.randn(N, heads, HEAD_DIM)
        new = torch.randn(N, 2 * kv_heads, HEAD_DIM)
        like = torch.ones(N, 1, HEAD_DIM, device=device)
        out = PackedRows(rows, like, like).attend(
            query.to(device), new.to(device), 0, window=window, scaling=1 / math.sqrt(HEAD_DIM)
        )
        for row, sequence in zip(rows, chosen, strict=True):
            own = slice(row.start, row.start + row.count)
            sequence.held = torch.cat([sequence.held[: row.position], new[own]])
            answer = expected(query[own], sequence.held, row.position, window, row.parents)
            assert torch.allclose(
                out[own].cpu().view(row.count, heads, HEAD_DIM),
                answer,
                atol=TOLERANCE,
                rtol=TOLERANCE,
            )
            end = row.position + row.count
            sequence.cache.written = max(sequence.cache.written, end)
            # Of a draft one path stays, and its tokens lie together from then on.
            draft = end - len(row.parents)
            accepted = data.draw(st.integers(-1, len(row.parents) - 1), "accepted")
            path = [draft + node for node in ancestors(accepted, row.parents)]
            sequence.cache.move(path, draft)
            sequence.held = sequence.held[[*range(draft), *path]]
            sequence.cache.length = len(sequence.held)
    for sequence in sequences:
        pool.release(sequence.cache)
    assert pool.num_bytes == (0, 0)
