"""Attention over a part of a sequence, and the exact merge of such parts.

softmax over all keys is the parts' softmaxes, weighted by their shares of the sum of exponentials;
the log of each sum (LSE) is all that has to be kept. What a device has a kernel for uses it: on a
CPU torch's flash attention gives the LSE. That operator is private, so torch is pinned and a test
compares it with plain softmax. Elsewhere scores are written out.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_MAX_SCORES = 1 << 24
"""Scores written out at once: 64 MiB."""


class Partial(NamedTuple):
    """Attention over some of the keys."""

    out: Tensor
    """[..., d]."""
    lse: Tensor
    """[...], float32 or wider: log of the sum of exponentials of the scores."""


def attend_partly(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scaling: float,
) -> Partial:
    """Attend to some keys, of which every query sees at least one.

    Args:
        query: [B, H, T, d].
        keys: [B, K, S, d], of the queries' device and type; H is a multiple of K.
        values: [B, K, S, d].
        mask: Added to the scores, [T, S] or [B, 1, 1, S], 0 or -inf.
        is_causal: Token t sees keys 0 to t; T = S and no mask.
        scaling: Factor of the scores.

    Returns:
        [B, H, T, d] and [B, H, T].
    """
    if query.device.type == "cpu":
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, keys, values, 0.0, is_causal, attn_mask=mask, scale=scaling
        )
        return Partial(out, lse)
    T, S = query.shape[2], keys.shape[2]
    if is_causal:
        mask = torch.full((T, S), -torch.inf, device=query.device).triu_(1)
    step = max(1, _MAX_SCORES // (query.shape[0] * query.shape[1] * S))
    pieces = [
        written_out(
            query[:, :, start : start + step],
            keys,
            values,
            mask if mask is None or mask.shape[-2] == 1 else mask[..., start : start + step, :],
            scaling,
        )
        for start in range(0, T, step)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return Partial(
        torch.cat([piece.out for piece in pieces], 2), torch.cat([piece.lse for piece in pieces], 2)
    )


def written_out(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float
) -> Partial:
    """`attend_partly` with all scores in memory, in float32 or wider."""
    B, H, T, d = query.shape
    K, S = keys.shape[1:3]
    grouped = query.reshape(B * K, H // K * T, d)
    scores = _product(grouped, keys.reshape(B * K, S, d).transpose(1, 2)).mul_(scaling)
    if mask is not None:
        scores.view(B, H, T, S).add_(mask)
    lse = scores.logsumexp(-1, keepdim=True)
    weights = scores.sub_(lse).exp_().to(values.dtype)
    out = _product(weights, values.reshape(B * K, S, d)).to(query.dtype)
    return Partial(out.view(B, H, T, d), lse.view(B, H, T))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Batches' products, [n, …], not rounded to fewer bits than float32."""
    if a.dtype not in (torch.bfloat16, torch.float16):
        return torch.bmm(a, b)
    if a.device.type == "cuda":
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())


def merge(first: Partial, second: Partial) -> Tensor:
    """Attention over both parts' keys, [..., d]; a query sees nothing in a part with LSE -inf.

    [BB] eq. 2's two attentions become one here. Exact but for the last bits: each weight is a
    share of the sum of exponentials, e^a / (e^a + e^b) = sigmoid(a - b).
    """
    weight = torch.sigmoid(second.lse - first.lse)[..., None]
    out = torch.lerp(first.out.to(weight.dtype), second.out.to(weight.dtype), weight)
    return out.to(first.out.dtype)
