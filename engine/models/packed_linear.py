"""Linear layers of a CPU stage, with weights laid out for oneDNN.

`torch` sends float32 products to MKL, which on AMD processors runs at half the speed of oneDNN,
for one token as for many. oneDNN reads weights fastest in a blocked layout of its own, which the
operators of torch's compiler backend offer. They are private, so torch is pinned and a test
compares them with `nn.Linear`.
"""

from __future__ import annotations

import platform

import torch
from torch import Tensor, nn

_PACKING_BATCH_SIZE = 32
"""Tokens that the layout is chosen for; measured best or near it from 1 to 256 tokens."""


def can_pack(weight: Tensor) -> bool:
    """Whether this machine multiplies by `weight` faster through oneDNN."""
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and platform.machine() in ("x86_64", "AMD64")
        and torch._C._has_mkldnn
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` through oneDNN; the weight [O, I] may be packed or plain."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")
    return out


def pack(weight: Tensor) -> Tensor:
    """Weight [O, I] in oneDNN's layout: as large as before, and good for `linear` only."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKING_BATCH_SIZE)
    return packed


class PackedLinear(nn.Module):
    """Stands in for an `nn.Linear`."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        self._weight = pack(plain.weight.detach())
        self._bias = None if plain.bias is None else plain.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """[..., I] to [..., O]."""
        return linear(x, self._weight, self._bias)


def pack_linears(module: nn.Module) -> None:
    """Replace every `nn.Linear` inside `module` where that makes it faster."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and can_pack(child.weight):
                setattr(parent, name, PackedLinear(child))
