"""Blocks of a model's shapes with random weights, and how long passes through them take.

The arithmetic is the stage's own (`engine.models`); only the weights are not the model's, which no
time depends on. There are as many blocks as it takes to outgrow the processor's caches, as in a
stage, where the weights of one block never wait for the next pass in a cache.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil
import torch
from torch import Tensor
from transformers import AutoConfig, PretrainedConfig

from engine.core.errors import ResourceError
from engine.core.kv_room import PAGE_TOKENS
from engine.core.model_spec import ModelSpec
from engine.kv.cache import KvPool, SequenceCache
from engine.models.attention import PackedRow, PackedRows
from engine.models.block import Block, fill
from engine.models.families import Family, family_of

_SEED: Final = 0x5403A1
_WEIGHT_SCALE: Final = 0.02
_NOISE_NUMBERS: Final = 1 << 16
_MEMORY_SHARE: Final = 0.5
"""Of the free memory: what measuring may take, so that it disturbs nobody."""


@dataclass(frozen=True, slots=True)
class PassTime:
    """One pass, in seconds."""

    packing_s: float
    """Positions, rotary tables, sorting rows: once per pass."""
    mlp_s: float
    """Per block, all but attention."""
    attention_s: float
    """Per block."""


class RandomBlocks:
    """Blocks of one shape.

    Args:
        spec: The model's sizes.
        dtype: Of weights and arithmetic.
        device: Where to compute.
        working_set_bytes: Of weights, to be reached with several blocks if one does not.

    Raises:
        ResourceError: Not even one block fits into the free memory.
        ModelError: The family is not supported.
    """

    def __init__(
        self, spec: ModelSpec, dtype: torch.dtype, device: torch.device, working_set_bytes: int
    ) -> None:
        self._spec = spec
        self._dtype = dtype
        self._device = device
        block_bytes = spec.block_parameters * dtype.itemsize
        room_bytes = _MEMORY_SHARE * free_bytes(device)
        # The layout that products are fastest in is made from the weights, and lies beside them.
        if 2 * block_bytes > room_bytes:
            raise ResourceError(
                f"One block of {spec.name} takes {block_bytes / 2**30:.1f} GiB, and too little "
                "memory is free to measure it; end other programs, or measure a smaller model."
            )
        wanted = min(spec.num_hidden_layers, -(-working_set_bytes // block_bytes))
        count = max(1, min(wanted, int(room_bytes // block_bytes) - 1))
        config = _config(spec)
        family = family_of(spec.family)
        self._rotary = family.part("RotaryEmbedding")(config).to(device)
        self.blocks = [_random_block(family, config, dtype, device) for _ in range(count)]

    def timed_pass(self, rows: Sequence[PackedRow], cached_blocks: int) -> PassTime:
        """Run all blocks once.

        Args:
            rows: What to compute; their tokens are drawn at random.
            cached_blocks: Blocks that the rows' caches have room for; they are used in turn.
        """
        num_tokens = sum(row.count for row in rows)
        x = torch.ones(num_tokens, self._spec.hidden_size, dtype=self._dtype, device=self._device)
        wait(self._device)
        began_s = time.perf_counter()
        positions = torch.cat(
            [torch.arange(row.position, row.position + row.count) for row in rows]
        ).to(self._device)
        cos, sin = self._rotary(x, positions[None])
        watch = Stopwatch(self._device)
        packed = _TimedRows(rows, cos[0, :, None], sin[0, :, None], watch)
        wait(self._device)
        packed_s = time.perf_counter()
        for index, block in enumerate(self.blocks):
            x = block.forward(x, packed, index % cached_blocks)
        wait(self._device)
        ended_s = time.perf_counter()
        attention_s = watch.total_s()
        count = len(self.blocks)
        return PassTime(
            packing_s=packed_s - began_s,
            mlp_s=max(0.0, ended_s - packed_s - attention_s) / count,
            attention_s=attention_s / count,
        )


class Caches:
    """Sequences full of noise: how long attention takes does not depend on what it sees.

    Args:
        spec: The model's sizes.
        dtype: Of keys and values.
        device: Where the blocks compute.
        count: Sequences.
        tokens: In each.
        most_blocks: Blocks to have room for, fewer where that takes more than `budget_bytes`.
        budget_bytes: Of all sequences together.
        in_ram: Let them lie in RAM beside an accelerator.
    """

    def __init__(
        self,
        spec: ModelSpec,
        dtype: torch.dtype,
        device: torch.device,
        *,
        count: int,
        tokens: int,
        most_blocks: int,
        budget_bytes: int,
        in_ram: bool = False,
    ) -> None:
        room_tokens = -(-tokens // PAGE_TOKENS) * PAGE_TOKENS
        block_bytes = count * room_tokens * spec.kv_bytes_per_token(1, dtype.itemsize)
        self.num_blocks = max(1, min(most_blocks, budget_bytes // block_bytes))
        arena = (1, PAGE_TOKENS) if in_ram else (self.num_blocks, count * room_tokens)
        pool = KvPool(
            spec.num_key_value_heads,
            spec.head_dim,
            dtype=dtype,
            device=device,
            arena=None if device.type == "cpu" else arena,
        )
        share = 1.0 if in_ram else 0.0
        self._caches: list[SequenceCache] = [
            pool.reserve(self.num_blocks, tokens, share) for _ in range(count)
        ]
        shape = (tokens, 2 * spec.num_key_value_heads, spec.head_dim)
        noise = torch.randn(shape, dtype=dtype, device="cpu" if in_ram else device)
        for cache in self._caches:
            for block in range(self.num_blocks):
                cache.put(block, 0, noise)
            cache.length = cache.written = tokens

    def decoding(self, batch: int, context: int) -> list[PackedRow]:
        """One new token in each of `batch` sequences, after `context` others."""
        return [
            PackedRow(cache, place, 1, context) for place, cache in enumerate(self._caches[:batch])
        ]

    def prefill(self, tokens: int, context: int) -> list[PackedRow]:
        """A chunk of one sequence's prompt, after `context` others."""
        return [PackedRow(self._caches[0], 0, tokens, context)]


class Stopwatch:
    """Adds up how long the work takes that is begun within its laps, on the device."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """What is measured."""
        if self._on_gpu:
            events = (_event(), _event())
            events[0].record()
            yield
            events[1].record()
            self._events.append(events)
        else:
            began_s = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - began_s

    def total_s(self) -> float:
        """All laps; the device must have finished them."""
        on_gpu_ms: float = sum(began.elapsed_time(ended) for began, ended in self._events)
        return self._seconds + on_gpu_ms / 1000


class _TimedRows(PackedRows):
    """Rows that let a watch run while they attend."""

    def __init__(
        self, rows: Sequence[PackedRow], cos: Tensor, sin: Tensor, watch: Stopwatch
    ) -> None:
        super().__init__(rows, cos, sin)
        self._watch = watch

    def attend(
        self, query: Tensor, new: Tensor, index: int, *, window: int | None, scaling: float
    ) -> Tensor:
        """See `PackedRows`."""
        with self._watch.lap():
            return super().attend(query, new, index, window=window, scaling=scaling)


def wait(device: torch.device) -> None:
    """Until all that was begun is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_bytes(device: torch.device) -> int:
    """Memory that is free where the blocks compute."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _config(spec: ModelSpec) -> PretrainedConfig:
    config: PretrainedConfig = AutoConfig.for_model(
        spec.family,
        hidden_size=spec.hidden_size,
        num_hidden_layers=spec.num_hidden_layers,
        num_attention_heads=spec.num_attention_heads,
        num_key_value_heads=spec.num_key_value_heads,
        head_dim=spec.head_dim,
        intermediate_size=spec.intermediate_size,
        max_position_embeddings=spec.max_position_embeddings,
    )
    return config


def _random_block(
    family: Family, config: PretrainedConfig, dtype: torch.dtype, device: torch.device
) -> Block:
    with torch.device("meta"):
        layer = family.part("DecoderLayer")(config, layer_idx=0)
    shapes = {name: tensor.shape for name, tensor in layer.state_dict().items()}
    fill(layer, {name: random_weight(s, dtype, device) for name, s in shapes.items()}, "")
    return Block(layer.eval(), None)


def random_weight(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Small numbers, the same at every call; drawing each would take seconds, so they repeat."""
    generator = torch.Generator(device).manual_seed(_SEED)
    some = torch.randn(_NOISE_NUMBERS, generator=generator, device=device).mul_(_WEIGHT_SCALE)
    weight = torch.empty(shape, dtype=dtype, device=device)
    flat = weight.view(-1)
    for start in range(0, len(flat), _NOISE_NUMBERS):
        part = flat[start : start + _NOISE_NUMBERS]
        part.copy_(some[: len(part)])
    return weight
