"""The process that measures what computing costs; see `engine.profiler.compute`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TextIO, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engine.codec.lanes import ElementType
from engine.core.errors import EngineError, ResourceError
from engine.core.lifetime import die_with_parent
from engine.core.sampling_params import SamplingParams
from engine.models.linear import fast_linear
from engine.profiler.blocks import Caches, RandomBlocks, free_bytes, random_weight, wait
from engine.profiler.codec_speed import codec_speeds
from engine.profiler.compute import CellSamples, ComputeOrder, ComputeSamples, HeadSamples
from engine.profiler.copies import copy_speeds
from engine.sampling.sample import SampleRequest, sample

_DTYPES: Final = {
    "float32": (torch.float32, ElementType.FLOAT32),
    "bfloat16": (torch.bfloat16, ElementType.BFLOAT16),
    "float16": (torch.float16, ElementType.FLOAT16),
}
_TINY_BLOCKS: Final = 16

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Effort:
    """How thoroughly to measure."""

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    prefill_tokens: int
    working_set_bytes: int
    cache_bytes: int
    repeat_s: float
    """How long each cell is repeated, but see the next two."""
    min_repeats: int
    max_repeats: int
    limit_s: float
    """Of the table: cells that are not begun by then are left out, but for its corners."""

    def table(self, contexts: Sequence[int]) -> list[tuple[int, int]]:
        """Rows and tokens of every cell, the corners first: they alone are enough for a fit."""
        ends = ({min(self.batches), max(self.batches)}, {min(contexts), max(contexts)})
        cells = [(batch, context) for batch in self.batches for context in contexts]
        return sorted(cells, key=lambda cell: cell[0] not in ends[0] or cell[1] not in ends[1])


_CORNERS: Final = 4
_FULL: Final = _Effort(
    (1, 4, 16, 64), (128, 512, 1536), 256, 256 << 20, 512 << 20, 0.5, 4, 25, limit_s=20.0
)
_QUICK: Final = _Effort((1, 8, 64), (128, 1024), 128, 128 << 20, 256 << 20, 0.15, 3, 9, limit_s=3.0)


class Measurement:
    """One order, carried out part by part."""

    def __init__(self, order: ComputeOrder, say: Callable[[dict[str, Any]], None]) -> None:
        self._spec = order.spec
        self._dtype, self._element = _DTYPES[order.dtype]
        self._device = _indexed(order.device)
        self._effort = _QUICK if order.quick else _FULL
        self._say = say

    def run(self) -> ComputeSamples:
        """All of it."""
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)  # where events are recorded
            self._say({"device": str(torch.cuda.get_device_properties(self._device).uuid)})
        free = free_bytes(self._device)
        self._show("codec", 0.05)
        encode, decode = codec_speeds(self._spec.hidden_size, self._element)
        to_device: list[float] = []
        to_ram: list[float] = []
        if self._device.type == "cuda":
            self._show("copies to and from the GPU", 0.1)
            to_device, to_ram = copy_speeds(self._device)
        self._show("blocks", 0.15)
        fixed = self._tiny()
        cells, prefill, packing = self._blocks()
        self._show("LM head", 0.9)
        return ComputeSamples(
            threads=torch.get_num_threads(),
            free_bytes=free,
            cells=cells,
            heads=self._heads(),
            prefill_row_s=prefill,
            fixed_s=fixed,
            packing_s=packing,
            to_device_bytes_per_s=to_device,
            to_ram_bytes_per_s=to_ram,
            encode_bytes_per_s=encode,
            decode_bytes_per_s=decode,
        )

    def _show(self, what: str, share: float) -> None:
        self._say({"progress": {"what": what, "share": share}})

    def _tiny(self) -> list[float]:
        """Per block, what does not depend on sizes."""
        spec = replace(
            self._spec,
            num_hidden_layers=_TINY_BLOCKS,
            hidden_size=64,
            intermediate_size=64,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
        )
        blocks = RandomBlocks(spec, self._dtype, self._device, 1 << 30)
        caches = Caches(
            spec, self._dtype, self._device, count=1, tokens=64, most_blocks=1, budget_bytes=1 << 20
        )
        times = self._repeated(lambda: blocks.timed_pass(caches.decoding(1, 32), 1))
        return [passed.mlp_s for passed in times]

    def _blocks(self) -> tuple[list[CellSamples], list[float], list[float]]:
        """The table, time per token of prefill, and what a pass needs beside its blocks."""
        effort, spec = self._effort, self._spec
        longest = max(1, spec.max_position_embeddings - 2)
        contexts = sorted({min(context, longest) for context in effort.contexts})
        blocks = RandomBlocks(spec, self._dtype, self._device, effort.working_set_bytes)
        cells: list[CellSamples] = []
        prefill: list[float] = []
        packing: list[float] = []
        places: tuple[Literal["device", "ram"], ...] = ("device", "ram")
        if self._device.type == "cpu":
            places = ("device",)
        for number, where in enumerate(places):
            caches = Caches(
                spec,
                self._dtype,
                self._device,
                count=max(effort.batches),
                tokens=max(contexts) + 1,
                most_blocks=len(blocks.blocks),
                budget_bytes=effort.cache_bytes,
                in_ram=where == "ram",
            )
            if where == "device":
                prefill = self._prefill(blocks, caches, max(contexts) + 1)
            table = effort.table(contexts)
            until_s = time.perf_counter() + effort.limit_s / len(places)
            for index, (batch, context) in enumerate(table):
                if time.perf_counter() > until_s and index >= _CORNERS:
                    break
                self._show("blocks", 0.2 + 0.7 * (number + index / len(table)) / len(places))
                rows = caches.decoding(batch, context)
                times = self._repeated(partial(blocks.timed_pass, rows, caches.num_blocks))
                packing += [passed.packing_s for passed in times]
                cells.append(
                    CellSamples(
                        where=where,
                        batch=batch,
                        context=context,
                        mlp_s=[passed.mlp_s for passed in times],
                        attention_s=[passed.attention_s for passed in times],
                    )
                )
            del caches
        return cells, prefill, packing

    def _prefill(self, blocks: RandomBlocks, caches: Caches, most_tokens: int) -> list[float]:
        """Seconds per token and block, in the middle of a prompt."""
        tokens = min(self._effort.prefill_tokens, most_tokens // 2)
        context = min(2 * tokens, most_tokens - tokens)
        rows = caches.prefill(tokens, context)
        times = self._repeated(lambda: blocks.timed_pass(rows, caches.num_blocks))
        return [(passed.mlp_s + passed.attention_s) / tokens for passed in times]

    def _heads(self) -> list[HeadSamples]:
        """Norm, LM head and sampling; of a large vocabulary a part stands for all."""
        spec, effort = self._spec, self._effort
        word_bytes = spec.hidden_size * self._dtype.itemsize
        words = min(spec.vocab_size, max(1, effort.working_set_bytes // word_bytes))
        scale = spec.vocab_size / words
        shape = torch.Size((words, spec.hidden_size))
        head = fast_linear(random_weight(shape, self._dtype, self._device))
        norm = nn.RMSNorm(spec.hidden_size, dtype=self._dtype, device=self._device)
        params, none = SamplingParams(temperature=1.0, seed=1), np.empty(0, np.int32)

        def pick(hidden: Tensor) -> float:
            wait(self._device)
            began_s = time.perf_counter()
            sample(head(norm(hidden)), [SampleRequest(params, 1, none, none)] * len(hidden))
            wait(self._device)
            return (time.perf_counter() - began_s) * scale

        found = []
        for rows in sorted(effort.batches):
            hidden = torch.randn(rows, spec.hidden_size, dtype=self._dtype, device=self._device)
            found.append(HeadSamples(rows=rows, head_s=self._repeated(partial(pick, hidden))))
        return found

    def _repeated(self, work: Callable[[], _T]) -> list[_T]:
        """What some rounds of `work` give, after one that warms up; of slow work, one is enough."""
        effort = self._effort
        began_s = time.perf_counter()
        first = work()
        until_s = time.perf_counter() + effort.repeat_s
        if time.perf_counter() - began_s > 2 * effort.repeat_s:
            return [first]
        results: list[_T] = []
        while len(results) < effort.max_repeats:
            results.append(work())
            if len(results) >= effort.min_repeats and time.perf_counter() > until_s:
                break
        return results


def _indexed(device: str) -> torch.device:
    """The device with its number: `cuda` means the first."""
    named = torch.device(device)
    return named if named.type == "cpu" else torch.device(named.type, named.index or 0)


def main() -> None:
    """Entry of the process."""
    die_with_parent(int(sys.argv[1]))
    # Ctrl-C in a terminal reaches the whole group; who asked decides when this ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever libraries print must not come between our lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError):  # who asked has gone
        _answer(sys.stdin, lines)
    # Skip interpreter shutdown: freeing gigabytes piece by piece only delays giving them back.
    os._exit(0)


def _answer(orders: TextIO, lines: TextIO) -> None:
    def say(message: dict[str, Any]) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    order = ComputeOrder.model_validate_json(orders.readline())
    if order.threads:
        torch.set_num_threads(order.threads)
    try:
        with torch.inference_mode():
            samples = Measurement(order, say).run()
    except EngineError as error:
        say({"error": {"code": error.code, "message": str(error)}})
        return
    except (torch.OutOfMemoryError, MemoryError):
        text = "Too little memory is free to measure; end other programs that use it."
        say({"error": {"code": ResourceError.code, "message": text}})
        return
    say({"samples": samples.model_dump()})
    for line in orders:
        lines.write(line)
        lines.flush()
