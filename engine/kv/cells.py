"""What slots are made of: keys and values as they are, or in 8 bits with a factor per token and head.

8 bits: a head's d numbers of one token become integers from -127 to 127 and the factor that turns
the largest of them back. Tokens never share a factor, so what is stored once never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

Index = Any
"""As tensors take it: slices, integers and index tensors, for all axes but the last."""


class Cells(Protocol):
    """An array of heads, [..., d], all 0 at first."""

    def part(self, index: Index) -> Cells:
        """A view of some."""
        ...

    def put(self, index: Index, new: Tensor) -> None:
        """Write."""
        ...

    def get(self, index: Index) -> Tensor:
        """Read, in the type of the arithmetic; perhaps a view."""
        ...

    def get_stored(self, index: Index) -> tuple[Tensor, ...]:
        """Read as it is stored, for `put_stored` elsewhere."""
        ...

    def put_stored(self, index: Index, stored: tuple[Tensor, ...]) -> None:
        """Write what `get_stored` gave, from any device."""
        ...

    def clear(self, index: Index) -> None:
        """Make 0 again."""
        ...


class PlainCells:
    """Kept in the type of the arithmetic."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def part(self, index: Index) -> PlainCells:
        """See `Cells`."""
        return PlainCells(self.tensor[index])

    def put(self, index: Index, new: Tensor) -> None:
        """See `Cells`."""
        self.tensor[index] = new

    def get(self, index: Index) -> Tensor:
        """See `Cells`."""
        return self.tensor[index]

    def get_stored(self, index: Index) -> tuple[Tensor, ...]:
        """See `Cells`."""
        return (self.tensor[index],)

    def put_stored(self, index: Index, stored: tuple[Tensor, ...]) -> None:
        """See `Cells`."""
        (self.tensor[index],) = stored

    def clear(self, index: Index) -> None:
        """See `Cells`."""
        self.tensor[index] = 0


class EightBitCells:
    """Kept as `codes * scales`.

    Args:
        codes: [..., d], int8.
        scales: [...], bfloat16, whose range no activation leaves.
        dtype: Of the arithmetic.
    """

    __slots__ = ("_codes", "_dtype", "_scales")

    def __init__(self, codes: Tensor, scales: Tensor, dtype: torch.dtype) -> None:
        self._codes = codes
        self._scales = scales
        self._dtype = dtype

    def part(self, index: Index) -> EightBitCells:
        """See `Cells`."""
        return EightBitCells(self._codes[index], self._scales[index], self._dtype)

    def put(self, index: Index, new: Tensor) -> None:
        """See `Cells`."""
        wide = new.float()
        scales = (wide.abs().amax(-1) / 127).to(torch.bfloat16)
        # A head of zeros has factor 0. The factor was rounded, so the largest number may pass 127.
        codes = wide / scales.float().clamp_min(torch.finfo(torch.float32).tiny)[..., None]
        self._codes[index] = codes.round_().clamp_(-127, 127).to(torch.int8)
        self._scales[index] = scales

    def get(self, index: Index) -> Tensor:
        """See `Cells`."""
        return self._codes[index] * self._scales[index].to(self._dtype)[..., None]

    def get_stored(self, index: Index) -> tuple[Tensor, ...]:
        """See `Cells`."""
        return self._codes[index], self._scales[index]

    def put_stored(self, index: Index, stored: tuple[Tensor, ...]) -> None:
        """See `Cells`."""
        self._codes[index], self._scales[index] = stored

    def clear(self, index: Index) -> None:
        """See `Cells`."""
        self._codes[index] = 0
        self._scales[index] = 0


MakeCells = Callable[[tuple[int, ...], torch.device], Cells]
"""Cells of a shape [..., d] on a device."""


def plain_cells(dtype: torch.dtype) -> MakeCells:
    """Cells that keep `dtype`."""
    return lambda shape, device: PlainCells(_zeros(shape, dtype, device))


def eight_bit_cells(dtype: torch.dtype) -> MakeCells:
    """Cells of 8 bits for arithmetic in `dtype`."""
    return lambda shape, device: EightBitCells(
        _zeros(shape, torch.int8, device), _zeros(shape[:-1], torch.bfloat16, device), dtype
    )


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # torch.zeros would write to every page; these are zero without being there yet.
    raw = np.zeros((*shape[:-1], shape[-1] * dtype.itemsize), np.uint8)
    return torch.from_numpy(raw).view(dtype)
