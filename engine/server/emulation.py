"""A large model emulated: a wait in place of its blocks, recorded hidden states in place of theirs.

For `shoal bench swarm --emulate`. A pass takes as long as its whole stage would on an accelerator,
where decoding reads all weights once per pass: however few rows there are, it takes no less.

What goes onward has the statistics of real hidden states, because it is made of recorded ones, laid
side by side up to the model's width. Which ones is a function of what came in, bit by bit, and of
the position: so the ids that come out do not depend on batch shapes, routes or replays, and a single
wrong bit on the way changes them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from engine.config import StageEmulation
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.models.attention import PackedRow
from engine.models.weights import load_tensors

RECORDED = "emulated.hidden_states"
"""Tensor in the model's files, [R, D']: recorded hidden states of a narrower model."""
_SEED = 0x5EED
_STRIDES = 4096
_MIX = (0x2545F4914F6CDD1D, 0x27D4EB2F165667C5)


class EmulatedBlocks:
    """Takes the place of `BlockStack`.

    Args:
        directory: Holds the recorded hidden states.
        spec: The emulated model's sizes.
        span: Blocks of the stage.
        emulation: How long they take.
        dtype: Of hidden states, two bytes wide.
        device: Where they lie.

    Raises:
        ModelCorrupt: There are no recorded hidden states.
    """

    def __init__(
        self,
        directory: Path,
        spec: ModelSpec,
        span: Span,
        emulation: StageEmulation,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._span = span
        self._emulation = emulation
        self._width = spec.hidden_size
        self._recorded = load_tensors(directory, [RECORDED], device, dtype)[RECORDED]  # [R, D']
        tiles = -(-self._width // self._recorded.shape[1])
        self._tiles = torch.arange(tiles, device=device)
        self._factors = _factors(self._width, device)

    def forward(self, x: Tensor, rows: Sequence[PackedRow], span: Span) -> Tensor:
        """See `BlockStack.forward`: [N, D] to [N, D]."""
        started_s = time.perf_counter()
        positions = torch.cat(
            [torch.arange(row.position, row.position + row.count) for row in rows]
        ).to(x.device)
        state = _mixed(_digest(x, self._factors) + _mixed(positions + span.end))  # [N]
        strides = 1 + state % _STRIDES
        first = torch.bitwise_right_shift(state, 20)
        chosen = (first[:, None] + strides[:, None] * self._tiles) % len(self._recorded)
        y = self._recorded[chosen].flatten(1)[:, : self._width]  # [N, D]
        share = len(span) / len(self._span) * max(1.0, len(x) / self._emulation.rows)
        left_s = self._emulation.stage_s * share - (time.perf_counter() - started_s)
        time.sleep(max(0.0, left_s))
        return y


class EmulatedEnds:
    """Takes the place of `Ends`: ids become hidden states and hidden states ids, by their bits."""

    def __init__(self, spec: ModelSpec, *, dtype: torch.dtype, device: torch.device) -> None:
        self._width = spec.hidden_size
        self._vocab_size = spec.vocab_size
        self._dtype = dtype
        self._factors = _factors(self._width, device)

    def embed(self, ids: Tensor) -> Tensor:
        """[N] ids to [N, D]."""
        halves = torch.zeros(len(ids), self._width, dtype=torch.int16, device=ids.device)
        halves[:, 0] = ids & 0x7FFF
        halves[:, 1] = ids >> 15
        return halves.view(self._dtype)

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, D] to [R, V], whose largest names the next id."""
        ids = _mixed(_digest(hidden, self._factors)) % self._vocab_size
        return torch.zeros(len(ids), self._vocab_size, device=ids.device).scatter_(
            1, ids[:, None], 1.0
        )


def _factors(width: int, device: torch.device) -> Tensor:
    """Odd numbers, one for each channel: [D]."""
    generator = torch.Generator().manual_seed(_SEED)
    return (torch.randint(0, 1 << 62, (width,), generator=generator) | 1).to(device)


def _digest(x: Tensor, factors: Tensor) -> Tensor:
    """[N, D] of two-byte elements to [N] int64 that depend on every bit."""
    return (x.contiguous().view(torch.int16).to(torch.int64) * factors).sum(dim=1)


def _mixed(values: Tensor) -> Tensor:
    """Spread what distinguishes numbers over 63 bits; never negative."""
    for factor in _MIX:
        values = (values ^ torch.bitwise_right_shift(values, 29)) * factor
    return (values ^ torch.bitwise_right_shift(values, 32)) & ((1 << 63) - 1)
