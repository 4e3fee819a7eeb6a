"""`shoal bench kv`: what it costs to hold a share of the KV cache in RAM, on this machine.

The whole model runs in this process, over caches filled with noise: how long attention takes does
not depend on what it sees. Without an accelerator both tiers are RAM; the numbers then show what
splitting and merging cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from pydantic import BaseModel
from torch import Tensor

from engine.core.errors import ConfigError
from engine.core.kv_room import PAGE_TOKENS, KvDtype
from engine.core.plans import Span
from engine.kv.cache import KvPool, SequenceCache
from engine.models.attention import PackedRow, PackedRows
from engine.models.block_stack import BlockStack
from engine.models.families import read_config
from engine.models.heads import Ends
from engine.models.layout import ModelFiles
from engine.profiler.copies import copy_speeds

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_WARM_UP = 2


class AttentionTime(BaseModel):
    """t_attn of [BB] eq. 2 for one block and one new token in each sequence, with its transfers."""

    batch_size: int
    device_ms: float
    """All keys and values where the blocks compute."""
    ram_ms: float
    """All of them in RAM."""


class CopySpeed(BaseModel):
    """Between pinned RAM and the device, in bytes per second."""

    to_device_bytes_per_s: float
    to_ram_bytes_per_s: float


class OffloadRow(BaseModel):
    """Decoding with one share."""

    batch_size: int
    kv_offload: float
    tokens_per_s: float
    step_ms: float
    kv_device_bytes: int
    kv_ram_bytes: int


class KvReport(BaseModel):
    """What `--json` prints."""

    model_id: str
    device: str
    dtype: str
    kv_dtype: KvDtype
    context_tokens: int
    both_tiers_in_ram: bool
    """There is no accelerator here."""
    attention: list[AttentionTime]
    copies: CopySpeed | None
    """None without an accelerator."""
    rows: list[OffloadRow]


@dataclass(frozen=True, slots=True)
class KvBench:
    """What to measure, and on what.

    Args:
        files: The model, with the weights of all its blocks.
        dtype: Of weights and arithmetic.
        device: Where the blocks compute.
        kv_dtype: What caches are kept in.
        context_tokens: Tokens in each sequence's cache.
        batch_sizes: Sequences that decode together.
        steps: Decode steps of which the median is taken.
    """

    files: ModelFiles
    dtype: torch.dtype
    device: torch.device
    kv_dtype: KvDtype
    context_tokens: int
    batch_sizes: Sequence[int]
    steps: int


@torch.inference_mode()
def measure(bench: KvBench, say: Callable[[str], None]) -> KvReport:
    """Measure everything, in some seconds or minutes.

    Raises:
        ConfigError: The context is longer than the model's.
        ModelError: The model cannot be loaded.
    """
    spec = bench.files.spec
    if bench.context_tokens + _WARM_UP + bench.steps > spec.max_position_embeddings:
        raise ConfigError(
            f"{spec.name} has a context of {spec.max_position_embeddings} tokens, too few for "
            f"--context {bench.context_tokens}; ask for a shorter one."
        )
    say(f"Loading {spec.name}")
    machine = _Machine(bench)
    attention, rows = [], []
    for batch_size in bench.batch_sizes:
        say(f"Attention, batch {batch_size}")
        device_s, ram_s = (machine.attention_s(batch_size, share) for share in (0.0, 1.0))
        attention.append(
            AttentionTime(batch_size=batch_size, device_ms=1000 * device_s, ram_ms=1000 * ram_s)
        )
    for batch_size in bench.batch_sizes:
        for share in SHARES:
            say(f"Decoding, batch {batch_size}, α = {share}")
            rows.append(machine.decoding(batch_size, share))
    return KvReport(
        model_id=spec.model_id,
        device=machine.name,
        dtype=str(bench.dtype).removeprefix("torch."),
        kv_dtype=bench.kv_dtype,
        context_tokens=bench.context_tokens,
        both_tiers_in_ram=bench.device.type == "cpu",
        attention=attention,
        copies=None if bench.device.type == "cpu" else _copy_speed(bench.device),
        rows=rows,
    )


def lines(report: KvReport) -> Iterator[str]:
    """The report for people."""
    yield (
        f"{report.model_id} in {report.dtype}, KV {report.kv_dtype}, on {report.device}; "
        f"{report.context_tokens} tokens in each cache"
    )
    if report.both_tiers_in_ram:
        yield "There is no accelerator here: both tiers are in RAM."
    if report.copies is not None:
        to_device, to_ram = report.copies.to_device_bytes_per_s, report.copies.to_ram_bytes_per_s
        yield f"Copies: {to_device / 1e9:.1f} GB/s to the device, {to_ram / 1e9:.1f} GB/s to RAM"
    yield ""
    yield "batch  attention of a block, ms: device     RAM"
    for timed in report.attention:
        yield f"{timed.batch_size:5}  {timed.device_ms:31.3f}  {timed.ram_ms:6.3f}"
    yield ""
    yield "batch     α  tokens/s  step ms  KV MiB: device     RAM"
    for row in report.rows:
        yield (
            f"{row.batch_size:5}  {row.kv_offload:4.2f}  {row.tokens_per_s:8.1f}  "
            f"{row.step_ms:7.2f}  {row.kv_device_bytes / 2**20:14.1f}  "
            f"{row.kv_ram_bytes / 2**20:6.1f}"
        )


class _Machine:
    """The model, loaded, with caches on demand."""

    def __init__(self, bench: KvBench) -> None:
        spec = self._spec = bench.files.spec
        self._bench = bench
        config = read_config(bench.files.directory, spec)
        self._span = Span(0, spec.num_hidden_layers)
        self._blocks = BlockStack(
            bench.files.directory,
            config,
            self._span,
            dtype=bench.dtype,
            device=bench.device,
            progress=lambda _done, _total: None,
        )
        self._ends = Ends(
            bench.files.directory,
            config,
            first=True,
            last=True,
            dtype=bench.dtype,
            device=bench.device,
        )

    @property
    def name(self) -> str:
        """The device, as people know it."""
        if self._bench.device.type == "cuda":
            return torch.cuda.get_device_name(self._bench.device)
        return f"{self._bench.device.type}, {torch.get_num_threads()} threads"

    def attention_s(self, batch_size: int, share: float) -> float:
        """One block's attention for one new token in each sequence, in seconds."""
        pool, caches = self._caches(batch_size, share, num_blocks=1)
        rows = self._rows(caches, 0)
        like = torch.ones(
            batch_size, 1, self._spec.head_dim, dtype=self._bench.dtype, device=self._bench.device
        )
        query = self._noise(batch_size, self._spec.num_attention_heads)
        new = self._noise(batch_size, 2 * self._spec.num_key_value_heads)
        packed = PackedRows(rows, like, like)
        times_s = [
            self._timed(lambda: packed.attend(query, new, 0, window=None, scaling=0.125))
            for _ in range(_WARM_UP + self._bench.steps)
        ]
        self._free(pool, caches)
        return statistics.median(times_s[_WARM_UP:])

    def decoding(self, batch_size: int, share: float) -> OffloadRow:
        """Some decode steps."""
        pool, caches = self._caches(batch_size, share, num_blocks=len(self._span))
        ids = torch.ones(batch_size, dtype=torch.int64, device=self._bench.device)
        times_s = []
        for step in range(_WARM_UP + self._bench.steps):
            rows = self._rows(caches, step)

            def forward(ids: Tensor = ids, rows: list[PackedRow] = rows) -> Tensor:
                x = self._blocks.forward(self._ends.embed(ids), rows, self._span)
                return self._ends.logits(x).argmax(-1)

            times_s.append(self._timed(forward))
        step_s = statistics.median(times_s[_WARM_UP:])
        reserved = pool.num_bytes
        self._free(pool, caches)
        return OffloadRow(
            batch_size=batch_size,
            kv_offload=share,
            tokens_per_s=batch_size / step_s,
            step_ms=1000 * step_s,
            kv_device_bytes=reserved.device,
            kv_ram_bytes=reserved.ram,
        )

    def _caches(
        self, batch_size: int, share: float, num_blocks: int
    ) -> tuple[KvPool, list[SequenceCache]]:
        """Sequences with `context_tokens` of noise each, and room for the steps."""
        bench, spec = self._bench, self._spec
        capacity = bench.context_tokens + _WARM_UP + bench.steps
        room_tokens = -(-capacity // PAGE_TOKENS) * PAGE_TOKENS
        pool = KvPool(
            spec.num_key_value_heads,
            spec.head_dim,
            dtype=bench.dtype,
            device=bench.device,
            kv_dtype=bench.kv_dtype,
            arena=None if bench.device.type == "cpu" else (num_blocks, batch_size * room_tokens),
        )
        caches = [pool.reserve(num_blocks, capacity, share) for _ in range(batch_size)]
        noise = self._noise(bench.context_tokens, 2 * spec.num_key_value_heads)
        for cache in caches:
            for block in range(num_blocks):
                cache.put(block, 0, noise)
            cache.length = cache.written = capacity
        return pool, caches

    def _rows(self, caches: Sequence[SequenceCache], step: int) -> list[PackedRow]:
        position = self._bench.context_tokens + step
        return [PackedRow(cache, place, 1, position) for place, cache in enumerate(caches)]

    def _noise(self, num_tokens: int, heads: int) -> Tensor:
        return torch.randn(
            num_tokens,
            heads,
            self._spec.head_dim,
            dtype=self._bench.dtype,
            device=self._bench.device,
        )

    def _free(self, pool: KvPool, caches: Sequence[SequenceCache]) -> None:
        for cache in caches:
            pool.release(cache)

    def _timed(self, work: Callable[[], Tensor]) -> float:
        """How long it takes until the result is there."""
        _wait(self._bench.device)
        started_s = time.perf_counter()
        work()
        _wait(self._bench.device)
        return time.perf_counter() - started_s


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _copy_speed(device: torch.device) -> CopySpeed:
    to_device, to_ram = (statistics.median(rates) for rates in copy_speeds(device))
    return CopySpeed(to_device_bytes_per_s=to_device, to_ram_bytes_per_s=to_ram)
