from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.models.partial_attention import Partial, attend_partly, merge, written_out

TOLERANCES = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}
"""A few last bits of numbers around 1."""
DTYPES = list(TOLERANCES)


def inputs(
    dtype: torch.dtype, *, heads: int, kv_heads: int, queries: int, keys: int
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    # Keys and values are views of one block, as they are in a cache.
    held = torch.randn(1, 2 * kv_heads, keys + 9, 16).to(dtype)[:, :, 4 : 4 + keys]
    return (torch.randn(1, heads, queries, 16).to(dtype), *held.chunk(2, dim=1))


def plain(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float
) -> Partial:
    """Softmax of the textbook, in float64."""
    group = query.shape[1] // keys.shape[1]
    keys, values = (x.double().repeat_interleave(group, 1) for x in (keys, values))
    scores = query.double() @ keys.transpose(2, 3) * scaling
    if mask is not None:
        scores = scores + mask.double()
    return Partial(scores.softmax(-1) @ values, scores.logsumexp(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "queries"), [(2, 1), (2, 9), (6, 9)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("way", [attend_partly, None])
def test_partial_attention_and_its_lse_are_those_of_plain_softmax(
    dtype: torch.dtype, heads: int, queries: int, masked: bool, way: object
) -> None:
    query, keys, values = inputs(dtype, heads=heads, kv_heads=2, queries=queries, keys=40)
    mask = None
    if masked:
        mask = torch.zeros(queries, 40, dtype=dtype)
        mask[:, 30:] = -torch.inf
        mask[0, 1:] = -torch.inf
    if way is None:
        out, lse = written_out(query, keys, values, mask, 0.3)
    else:
        out, lse = attend_partly(query, keys, values, mask=mask, scaling=0.3)
    expected = plain(query, keys, values, mask, 0.3)
    assert torch.allclose(out.double(), expected.out, atol=TOLERANCES[dtype])
    # In 16 bits torch's kernel sums by a fast approximation of exp.
    assert torch.allclose(lse.double(), expected.lse, atol=5e-6 if dtype is torch.float32 else 5e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "queries", "keys"), [(2, 1, 40), (6, 9, 40), (6, 512, 9000)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_partial_attention_on_a_gpu_is_that_of_plain_softmax(
    dtype: torch.dtype, heads: int, queries: int, keys: int, is_causal: bool
) -> None:
    keys = queries if is_causal else keys
    parts = inputs(dtype, heads=heads, kv_heads=2, queries=queries, keys=keys)
    query, keys_, values = (part.cuda() for part in parts)
    out, lse = attend_partly(query, keys_, values, is_causal=is_causal, scaling=0.3)
    mask = torch.full((queries, keys), -torch.inf).triu(1) if is_causal else None
    expected = plain(*parts, mask, 0.3)
    assert torch.allclose(out.cpu().double(), expected.out, atol=TOLERANCES[dtype])
    assert torch.allclose(lse.cpu().double(), expected.lse, atol=5e-5)


def test_a_causal_part_is_the_same_as_its_mask() -> None:
    query, keys, values = inputs(torch.float32, heads=6, kv_heads=2, queries=12, keys=12)
    mask = torch.full((12, 12), -torch.inf).triu(1)
    causal = attend_partly(query, keys, values, is_causal=True, scaling=0.3)
    masked = attend_partly(query, keys, values, mask=mask, scaling=0.3)
    for a, b in zip(causal, masked, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("border", [1, 7, 39])
def test_merged_parts_are_the_whole(dtype: torch.dtype, border: int) -> None:
    query, keys, values = inputs(dtype, heads=6, kv_heads=2, queries=5, keys=40)
    parts = [
        attend_partly(query, keys[:, :, part], values[:, :, part], scaling=0.3)
        for part in (slice(border), slice(border, None))
    ]
    expected = plain(query, keys, values, None, 0.3)
    assert torch.allclose(merge(*parts).double(), expected.out, atol=TOLERANCES[dtype])


def test_a_part_that_sees_nothing_changes_nothing() -> None:
    query, keys, values = inputs(torch.float32, heads=2, kv_heads=2, queries=5, keys=40)
    part = attend_partly(query, keys, values, scaling=0.3)
    nothing = Partial(torch.zeros_like(part.out), torch.full_like(part.lse, -torch.inf))
    assert torch.equal(merge(part, nothing), part.out)
    assert torch.equal(merge(nothing, part), part.out)


def test_large_scores_do_not_overflow() -> None:
    query, keys, values = inputs(torch.float32, heads=2, kv_heads=2, queries=3, keys=40)
    parts = [
        attend_partly(query * 1e4, keys[:, :, part], values[:, :, part], scaling=1.0)
        for part in (slice(20), slice(20, None))
    ]
    expected = plain(query * 1e4, keys, values, None, 1.0)
    assert torch.allclose(merge(*parts).double(), expected.out, atol=1e-3)
