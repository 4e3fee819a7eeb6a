"""How fast hidden states are encoded and decoded here, on one thread."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from engine.codec import payload
from engine.codec.lanes import ElementType
from engine.codec.reference import learn_reference

_SEED: Final = 0x5403A1
_PAYLOAD_BYTES: Final = 256 << 10
_ROUNDS: Final = 9
_WARM_UP: Final = 2


def codec_speeds(width: int, dtype: ElementType) -> tuple[list[float], list[float]]:
    """Raw bytes per second of encoding and of decoding, of several rounds.

    Args:
        width: D.
        dtype: Of the hidden states.
    """
    num_rows = max(1, _PAYLOAD_BYTES // (width * dtype.num_bytes))
    rows = _rows_like_activations(num_rows, width, dtype)
    reference = learn_reference(rows, dtype, width)
    encode: list[float] = []
    decode: list[float] = []
    for _ in range(_WARM_UP + _ROUNDS):
        began_s = time.perf_counter()
        encoded = payload.encode(rows, dtype, width, reference)
        encoded_s = time.perf_counter()
        payload.decode(encoded, dtype, num_rows, width, reference)
        ended_s = time.perf_counter()
        encode.append(len(rows) / (encoded_s - began_s))
        decode.append(len(rows) / (ended_s - encoded_s))
    return encode[_WARM_UP:], decode[_WARM_UP:]


def _rows_like_activations(num_rows: int, width: int, dtype: ElementType) -> bytes:
    """Channels of different means and widths, a few of them large: what transformers send."""
    random = np.random.default_rng(_SEED)
    scale = np.exp(random.normal(-1.0, 0.8, width))
    mean = random.normal(0.0, 0.3, width)
    mean[:: max(1, width // 4)] += 40.0
    values = (mean + scale * random.normal(size=(num_rows, width))).astype(np.float32)
    if dtype is ElementType.FLOAT32:
        return values.tobytes()
    if dtype is ElementType.FLOAT16:
        return values.astype(np.float16).tobytes()
    return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
