"""`shoal bench codec`: how small and how fast codecs make recorded hidden states.

Every codec gets the same payloads on one thread, and everything is decoded and compared before a
number is reported. Speeds count processor time, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel

from engine.bench import coders
from engine.codec.lanes import ElementType
from engine.codec.reference import Reference, choose_reference, learn_reference
from engine.core.errors import ConfigError, EngineError

_DTYPES: Final = {
    "uint16": ElementType.BFLOAT16,  # numpy has no bfloat16: its bit patterns
    "float16": ElementType.FLOAT16,
    "float32": ElementType.FLOAT32,
}
_MIN_TIMED_S: Final = 0.01
"""Short work is repeated until a measurement lasts at least so long."""


class CodecRow(BaseModel):
    """One codec on one file."""

    file: str
    dtype: str
    codec: str
    ratio: float
    """Compressed over raw."""
    compress_mb_per_s: float
    """Raw bytes, in 10^6, by the median of the repeats."""
    decompress_mb_per_s: float
    payload_bytes: int
    """Each payload but the last has this size."""
    reference: str | None = None
    """`self` or the file from which it was learned; None without one."""


class CodecReport(BaseModel):
    """All of them."""

    files: list[CodecRow]


@dataclass(frozen=True, slots=True)
class Recording:
    """Hidden states from a file."""

    path: str
    dtype: ElementType
    width: int
    raw: bytes
    """Packed rows, [N, width]."""

    def payloads(self, payload_bytes: int) -> list[bytes]:
        """Consecutive whole rows of about that size each; all in one for 0."""
        row_bytes = self.width * self.dtype.num_bytes
        step = max(1, payload_bytes // row_bytes) * row_bytes if payload_bytes else len(self.raw)
        return [self.raw[at : at + step] for at in range(0, len(self.raw), step)]


def read_recording(path: str) -> Recording:
    """Read a `.npy` file of any shape; its last axis is the hidden size.

    Raises:
        ConfigError: There is none, or it holds something else.
    """
    try:
        array = np.load(Path(path), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{path} cannot be read as a .npy file: {error}") from error
    dtype = _DTYPES.get(array.dtype.name) if isinstance(array, np.ndarray) else None
    if dtype is None:
        raise ConfigError(
            f"{path} must be a .npy file of float32, float16 or uint16 (bfloat16 patterns)."
        )
    if array.size == 0 or array.ndim == 0:
        raise ConfigError(f"{path} holds no rows; give a file with at least one.")
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return Recording(path, dtype, array.shape[-1], raw)


def measure(
    recordings: Sequence[Recording], names: Sequence[str], *, payload_bytes: int, repeat: int
) -> CodecReport:
    """Run every codec on every file.

    Args:
        recordings: The files; references for one are learned from the others.
        names: Of `coders.NAMES`.
        payload_bytes: Size of what is compressed at once; 0: each file as a whole.
        repeat: How often each measurement is made.

    Raises:
        EngineError: A codec gave back other bytes than it got.
    """
    rows = []
    for recording in recordings:
        payloads = recording.payloads(payload_bytes)
        reference, source = _find_reference(recording, recordings, payloads)
        for name in names:
            ours = name == "shoal"
            coder = coders.make(name, recording.dtype, recording.width, reference)
            extra_bytes = reference.num_bytes if ours and reference and source == "self" else 0
            row = _measure_one(recording, name, coder, payloads, extra_bytes, repeat)
            row.reference = source if ours else None
            rows.append(row)
    return CodecReport(files=rows)


def lines(report: CodecReport) -> list[str]:
    """The report for people."""
    width = max(len(row.file) for row in report.files)
    head = (
        f"{'file':{width}}  {'dtype':8}  {'codec':8}  {'ratio':>7}  {'in MB/s':>8}  {'out MB/s':>8}"
    )
    return [head] + [
        f"{row.file:{width}}  {row.dtype:8}  {row.codec:8}  {row.ratio:7.2%}  "
        f"{row.compress_mb_per_s:8.0f}  {row.decompress_mb_per_s:8.0f}"
        for row in report.files
    ]


def _find_reference(
    recording: Recording, recordings: Sequence[Recording], payloads: Sequence[bytes]
) -> tuple[Reference | None, str | None]:
    """The reference that suits the first payload best, and where it comes from.

    Like a sender, who knows a reference for each stage boundary. A file that has no others like it
    has to do with its own, which then has to be sent along.
    """
    kind = (recording.dtype, recording.width)
    learned = {
        other.path: learn_reference(other.raw, *kind)
        for other in recordings
        if (other.dtype, other.width) == kind and other.raw != recording.raw
    }
    if not learned:
        own = learn_reference(recording.raw, *kind)
        sizes = [
            sum(len(coders.Shoal(*kind, reference).compress(payload)) for payload in payloads)
            for reference in (None, own)
        ]
        return (own, "self") if sizes[1] + own.num_bytes < sizes[0] else (None, None)
    chosen = choose_reference(list(learned.values()), payloads[0], *kind)
    return chosen, next((path for path, known in learned.items() if known is chosen), None)


def _measure_one(
    recording: Recording,
    name: str,
    coder: coders.Coder,
    payloads: Sequence[bytes],
    extra_bytes: int,
    repeat: int,
) -> CodecRow:
    encoded = [coder.compress(payload) for payload in payloads]
    for payload, data in zip(payloads, encoded, strict=True):
        if coder.decompress(data, len(payload)) != payload:
            raise EngineError(
                f"The codec {name} did not give back {recording.path} as it was; do not use it."
            )

    def compress() -> None:
        for payload in payloads:
            coder.compress(payload)

    def decompress() -> None:
        for payload, data in zip(payloads, encoded, strict=True):
            coder.decompress(data, len(payload))

    # ZipNN works in a thread that it starts. The others work in ours, so that other threads' time,
    # such as that of numpy's when idle, need not count.
    clock = time.process_time if name == "zipnn" else time.thread_time
    raw_bytes = len(recording.raw)
    return CodecRow(
        file=recording.path,
        dtype=recording.dtype.name.lower(),
        codec=name,
        ratio=(sum(map(len, encoded)) + extra_bytes) / raw_bytes,
        compress_mb_per_s=raw_bytes / 1e6 / _median_s(compress, clock, repeat),
        decompress_mb_per_s=raw_bytes / 1e6 / _median_s(decompress, clock, repeat),
        payload_bytes=len(payloads[0]),
    )


def _median_s(work: Callable[[], None], clock: Callable[[], float], repeat: int) -> float:
    """Processor time of the work, in seconds; it has been done before, so caches are warm."""
    started_s = clock()
    work()
    rounds = 1 + int(_MIN_TIMED_S / max(1e-6, clock() - started_s))
    times_s = []
    for _ in range(repeat):
        started_s = clock()
        for _ in range(rounds):
            work()
        times_s.append((clock() - started_s) / rounds)
    return max(1e-9, statistics.median(times_s))
