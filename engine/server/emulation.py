"""A large model emulated: a wait in place of its blocks, recorded hidden states in place of theirs.

For `shoal bench swarm --emulate`. A pass takes as long as its whole stage would on an accelerator,
where decoding reads all weights once per pass: however few rows there are, it takes no less.

What goes onward has the statistics of real hidden states, because it is made of recorded ones, laid
side by side up to the model's width. Which ones is a function of token, position and place in the
model, so every stage knows what it should be sent: a single wrong bit changes the ids that come out,
and nothing else does, be it batch shapes, routes or replays. The next id is a function of id and
position too, and never the same for two different ids, so that sequences which differ stay different
and no two rows of a payload are equal.
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
from engine.models.block_stack import Observe
from engine.models.weights import load_tensors

RECORDED = "emulated.hidden_states"
"""Tensor in the model's files, [R, D']: recorded hidden states of a narrower model."""
_STRIDES = 4096
_MIX = (0x2545F4914F6CDD1D, 0x27D4EB2F165667C5)
_ID_CHANNELS, _ERROR_CHANNEL = (0, 1), 2
"""What a payload tells beside recorded numbers: the token's id, and whether bits were wrong."""
_HALF = 1 << 15


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
        self._num_blocks = spec.num_hidden_layers
        self._vocab_size = spec.vocab_size
        self._recorded = load_tensors(directory, [RECORDED], device, dtype)[RECORDED]  # [R, D']
        tiles = -(-self._width // self._recorded.shape[1])
        self._tiles = torch.arange(tiles, device=device)

    def forward(
        self, x: Tensor, rows: Sequence[PackedRow], span: Span, observe: Observe | None = None
    ) -> Tensor:
        """See `BlockStack.forward`: [N, D] to [N, D]; nothing is observed."""
        started_s = time.perf_counter()
        positions = torch.tensor([p for row in rows for p in row.positions], device=x.device)
        ids, errors = _ids(x), torch.zeros_like(positions)
        if span.start > 0:
            errors = _bits(x)[:, _ERROR_CHANNEL].to(torch.int64)
            wrong = _bits(x) != _bits(self._payload(ids, positions, errors, span.start))
            errors |= wrong.any(dim=1)
        if span.end == self._num_blocks:
            # The vocabulary is a power of two, so an odd factor sends no two ids to the same.
            ids = (5 * ids + _mixed(positions) + errors) % self._vocab_size
        y = self._payload(ids, positions, errors, span.end)
        share = len(span) / len(self._span) * max(1.0, len(x) / self._emulation.rows)
        left_s = self._emulation.stage_s * share - (time.perf_counter() - started_s)
        time.sleep(max(0.0, left_s))
        return y

    def _payload(self, ids: Tensor, positions: Tensor, errors: Tensor, block: int) -> Tensor:
        """What enters `block`, [N, D], for N tokens."""
        state = _mixed(_mixed(ids + _HALF * block) + positions)
        strides = 1 + state % _STRIDES
        first = torch.bitwise_right_shift(state, 20)
        chosen = (first[:, None] + strides[:, None] * self._tiles) % len(self._recorded)
        y = self._recorded[chosen].flatten(1)[:, : self._width].contiguous()
        _write_ids(y, ids)
        _bits(y)[:, _ERROR_CHANNEL] = errors.to(torch.int16)
        return y


class EmulatedEnds:
    """Takes the place of `Ends`: an id becomes a hidden state that names it, and the reverse."""

    def __init__(self, spec: ModelSpec, *, dtype: torch.dtype, device: torch.device) -> None:
        self._width = spec.hidden_size
        self._vocab_size = spec.vocab_size
        self._dtype = dtype
        self._device = device

    def embed(self, ids: Tensor) -> Tensor:
        """[N] ids to [N, D]."""
        x = torch.zeros(len(ids), self._width, dtype=self._dtype, device=self._device)
        _write_ids(x, ids)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, D] to [R, V], whose largest names the next id."""
        ids = _ids(hidden)
        return torch.zeros(len(ids), self._vocab_size, device=ids.device).scatter_(
            1, ids[:, None], 1.0
        )


def _bits(x: Tensor) -> Tensor:
    """[N, D] of two-byte numbers as [N, D] int16, the same memory."""
    return x.view(torch.int16)


def _ids(x: Tensor) -> Tensor:
    """[N]: what `_write_ids` wrote."""
    low, high = (_bits(x)[:, channel].to(torch.int64) for channel in _ID_CHANNELS)
    return low + _HALF * high


def _write_ids(x: Tensor, ids: Tensor) -> None:
    low, high = _ID_CHANNELS
    _bits(x)[:, low] = (ids % _HALF).to(torch.int16)
    _bits(x)[:, high] = torch.div(ids, _HALF, rounding_mode="floor").to(torch.int16)


def _mixed(values: Tensor) -> Tensor:
    """Spread what distinguishes numbers over 63 bits; never negative."""
    for factor in _MIX:
        values = (values ^ torch.bitwise_right_shift(values, 29)) * factor
    return (values ^ torch.bitwise_right_shift(values, 32)) & ((1 << 63) - 1)
