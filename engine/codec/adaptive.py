"""Whether encoding pays on a link: measured ratio and speed against measured bandwidth. Pure."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Final

FAST_BYTES_PER_S: Final = 125e6
"""From 1 Gbit/s on nothing is encoded: cores are worth more there than bytes."""
_TO_BEGIN: Final = 1.1
"""How many times its cost encoding must save before it begins …"""
_TO_GO_ON: Final = 0.9
"""… and to go on: less, or noise would switch it with every frame."""
_SAMPLES: Final = 15
_MIN_SAMPLES: Final = 3
_PROBE_EVERY: Final = 256
"""Frames after which what has been left raw is encoded once, to see whether it would pay now."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a codec does to payloads of one size."""

    ratio: float
    """Encoded over raw bytes."""
    cost_s_per_byte: float
    """Encoding and decoding, per raw byte."""


def pays(estimate: Estimate, bandwidth_bytes_per_s: float, *, is_on: bool) -> bool:
    """Whether encoding saves more time on the line than it takes.

    Args:
        estimate: The codec's.
        bandwidth_bytes_per_s: Of the line.
        is_on: Whether encoding is what was done so far.
    """
    if bandwidth_bytes_per_s >= FAST_BYTES_PER_S:
        return False
    saved_s_per_byte = (1 - estimate.ratio) / bandwidth_bytes_per_s
    return saved_s_per_byte > estimate.cost_s_per_byte * (_TO_GO_ON if is_on else _TO_BEGIN)


class History:
    """What encoding payloads of one size, by one codec, over one link has brought lately."""

    def __init__(self) -> None:
        self._ratios: deque[float] = deque(maxlen=_SAMPLES)
        self._encode_s_per_byte: deque[float] = deque(maxlen=_SAMPLES)
        self._is_on = False
        self._raw_frames = 0

    def add(self, raw_bytes: int, encoded_bytes: int, encode_s: float) -> None:
        """Note one payload."""
        self._ratios.append(encoded_bytes / raw_bytes)
        self._encode_s_per_byte.append(encode_s / raw_bytes)
        self._raw_frames = 0

    def estimate(self, decode_s_per_byte: float | None) -> Estimate | None:
        """Medians, which one interrupted payload does not move; None until there are some.

        Args:
            decode_s_per_byte: As the receiver has measured; None: taken to be as for encoding.
        """
        if len(self._ratios) < _MIN_SAMPLES:
            return None
        encode_s = statistics.median(self._encode_s_per_byte)
        decode_s = encode_s if decode_s_per_byte is None else decode_s_per_byte
        return Estimate(statistics.median(self._ratios), encode_s + decode_s)

    def should_encode(
        self, bandwidth_bytes_per_s: float | None, decode_s_per_byte: float | None
    ) -> bool:
        """Decide on the next payload.

        Args:
            bandwidth_bytes_per_s: Of the line; None while unknown, then nothing is encoded.
            decode_s_per_byte: See `estimate`.
        """
        if bandwidth_bytes_per_s is None or bandwidth_bytes_per_s >= FAST_BYTES_PER_S:
            self._is_on = False
            return False
        estimate = self.estimate(decode_s_per_byte)
        if estimate is None:
            return True
        self._is_on = pays(estimate, bandwidth_bytes_per_s, is_on=self._is_on)
        if not self._is_on:
            self._raw_frames += 1
        return self._is_on or self._raw_frames >= _PROBE_EVERY
