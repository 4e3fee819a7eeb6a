"""Products with weights, and the element-wise steps that follow them.

`torch` sends a CPU's float32 products to MKL, which on AMD processors runs at half the speed of
oneDNN, for one token as for many. oneDNN reads weights fastest in a blocked layout of its own, and
fuses what follows; the operators of torch's compiler backend offer both. They are private, so
torch is pinned and a test compares them with the plain way, which every other device takes.
"""

from __future__ import annotations

import platform
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

_PACKING_BATCH_SIZE = 32
"""Tokens that the layout is chosen for; measured best or near it from 1 to 256 tokens."""


class Linear(Protocol):
    """y = x Wᵀ + b, for x [N, I] and y [N, O]."""

    def __call__(self, x: Tensor) -> Tensor:
        """Give y."""
        ...

    def silu(self, x: Tensor) -> Tensor:
        """Give y through SiLU."""
        ...

    def times(self, x: Tensor, factor: Tensor) -> Tensor:
        """Give factor * y."""
        ...

    def plus(self, x: Tensor, addend: Tensor) -> Tensor:
        """Give addend + y."""
        ...


class PlainLinear:
    """Step by step, rounded after each as the reference does.

    Args:
        weight: [O, I].
        bias: [O].
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """See `Linear`."""
        return functional.linear(x, self._weight, self._bias)

    def silu(self, x: Tensor) -> Tensor:
        """See `Linear`."""
        return functional.silu(self(x))

    def times(self, x: Tensor, factor: Tensor) -> Tensor:
        """See `Linear`."""
        return factor * self(x)

    def plus(self, x: Tensor, addend: Tensor) -> Tensor:
        """See `Linear`."""
        return addend + self(x)


class OneDnnLinear:
    """One fused operation each.

    Args:
        weight: [O, I].
        bias: [O].
        keep_layout: Share the caller's memory instead of packing; slower, yet faster than MKL.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, *, keep_layout: bool = False
    ) -> None:
        self._weight: Tensor = (
            weight
            if keep_layout
            else torch.ops.mkldnn._reorder_linear_weight(weight, _PACKING_BATCH_SIZE)
        )
        self._bias = bias
        self._unary = torch.ops.mkldnn._linear_pointwise.default
        self._binary = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        """See `Linear`."""
        out: Tensor = self._unary(x, self._weight, self._bias, "none", [], "")
        return out

    def silu(self, x: Tensor) -> Tensor:
        """See `Linear`."""
        out: Tensor = self._unary(x, self._weight, self._bias, "swish", [], "")
        return out

    def times(self, x: Tensor, factor: Tensor) -> Tensor:
        """See `Linear`."""
        out: Tensor = self._binary(x, factor, self._weight, self._bias, "mul")
        return out

    def plus(self, x: Tensor, addend: Tensor) -> Tensor:
        """See `Linear`."""
        out: Tensor = self._binary(x, addend, self._weight, self._bias, "add")
        return out


def fast_linear(weight: Tensor, bias: Tensor | None = None, *, keep_layout: bool = False) -> Linear:
    """The fastest `Linear` for where the weight lies; `keep_layout` as in `OneDnnLinear`."""
    if can_use_onednn(weight):
        return OneDnnLinear(weight, bias, keep_layout=keep_layout)
    return PlainLinear(weight, bias)


def can_use_onednn(weight: Tensor) -> bool:
    """Whether oneDNN can multiply by this weight on this machine."""
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and platform.machine() in ("x86_64", "AMD64")
        and torch._C._has_mkldnn
    )
