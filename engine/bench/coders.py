"""The codecs that `shoal bench codec` compares: Shoal's, and what others do with the same bytes."""

from __future__ import annotations

import struct
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np
import zstandard

from engine.codec import payload
from engine.codec.lanes import ElementType
from engine.codec.reference import Reference

NAMES: Final = ("shoal", "bloombee", "zipnn", "zstd")


class Coder(Protocol):
    """One codec, set up for the rows of one file."""

    def compress(self, raw: bytes) -> bytes:
        """Make it smaller."""
        ...

    def decompress(self, data: bytes, num_bytes: int) -> bytes | memoryview:
        """Get back the `num_bytes` bytes that were given to `compress`."""
        ...


class Shoal:
    """Ours."""

    def __init__(self, dtype: ElementType, width: int, reference: Reference | None) -> None:
        self._dtype, self._width, self._reference = dtype, width, reference

    def compress(self, raw: bytes) -> bytes:
        """Encode rows."""
        return payload.encode(raw, self._dtype, self._width, self._reference)

    def decompress(self, data: bytes, num_bytes: int) -> memoryview:
        """Decode rows."""
        num_rows = num_bytes // (self._width * self._dtype.num_bytes)
        return payload.decode(data, self._dtype, num_rows, self._width, self._reference)


class BloomBee:
    """[BB] §6: a lane for each byte of the elements, each through zstd level 1."""

    def __init__(self, dtype: ElementType) -> None:
        self._num_lanes = dtype.num_bytes
        self._sizes = struct.Struct(f"<{self._num_lanes}I")
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()

    def compress(self, raw: bytes) -> bytes:
        """Separate the lanes and compress each."""
        elements = np.frombuffer(raw, np.uint8).reshape(-1, self._num_lanes)
        lanes = [
            self._compressor.compress(np.ascontiguousarray(elements[:, lane]).data)
            for lane in range(self._num_lanes)
        ]
        return b"".join([self._sizes.pack(*map(len, lanes)), *lanes])

    def decompress(self, data: bytes, num_bytes: int) -> memoryview:
        """Decompress each lane and interleave them."""
        elements = np.empty((num_bytes // self._num_lanes, self._num_lanes), np.uint8)
        at = self._sizes.size
        for lane, size in enumerate(self._sizes.unpack_from(data)):
            decoded = self._decompressor.decompress(memoryview(data)[at : at + size])
            elements[:, lane] = np.frombuffer(decoded, np.uint8)
            at += size
        return elements.reshape(-1).data


class Zstd:
    """The bytes as they are, through zstd level 1."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()

    def compress(self, raw: bytes) -> bytes:
        """Compress."""
        return self._compressor.compress(raw)

    def decompress(self, data: bytes, num_bytes: int) -> bytes:
        """Decompress."""
        return self._decompressor.decompress(data, max_output_size=num_bytes)


class ZipNN:
    """The `zipnn` package, on one thread."""

    def __init__(self, dtype: ElementType) -> None:
        # Not a dependency: who wants the comparison installs it.
        self._zipnn: Any = import_module("zipnn").ZipNN(
            input_format="byte", bytearray_dtype=dtype.name.lower(), threads=1
        )

    def compress(self, raw: bytes) -> bytes:
        """Compress."""
        return bytes(self._zipnn.compress(bytearray(raw)))  # a copy: it works in place

    def decompress(self, data: bytes, num_bytes: int) -> bytes:
        """Decompress."""
        del num_bytes  # its own format says
        return bytes(self._zipnn.decompress(data))


def is_installed(name: str) -> bool:
    """Whether the codec of that name can run here."""
    return name != "zipnn" or find_spec("zipnn") is not None


def make(name: str, dtype: ElementType, width: int, reference: Reference | None) -> Coder:
    """Set up a codec of `NAMES` for rows `[N, width]`; only ours uses the reference."""
    match name:
        case "shoal":
            return Shoal(dtype, width, reference)
        case "bloombee":
            return BloomBee(dtype)
        case "zipnn":
            return ZipNN(dtype)
        case "zstd":
            return Zstd()
        case _:
            raise ValueError(f"no codec is called {name}")
