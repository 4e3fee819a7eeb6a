"""One lane in fewer bytes: Huffman coding through zstd, whose frames are checked before use. Pure.

Lanes of hidden states have skewed byte frequencies but no repeated strings, so looking for matches
is wasted time. zstd has no switch for that; a match finder with a tiny table and long minimal
matches comes to the same, at several times the speed of level 1.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import zstandard

from engine.codec.lanes import Bytes
from engine.core.errors import FrameCorrupt

_HUFFMAN_ONLY: Final = zstandard.ZstdCompressionParameters.from_level(
    1,
    strategy=zstandard.STRATEGY_FAST,
    hash_log=6,
    min_match=7,
    window_log=17,
    target_length=0,
    write_content_size=1,
)
_LEVEL_WITH_MATCHES: Final = 1
_MAX_WINDOW_BYTES: Final = 1 << 19
"""Of zstd's level 1, the widest that we use."""
_SUSPICIOUS_SHARE: Final = 0.25
"""A lane that Huffman coding makes this small has few values, so probably repeats."""
_SAMPLE_BYTES: Final = 1024
_MIN_REPETITION: Final = 1.5
"""How much likelier than by chance two bytes of a lane must be equal for Huffman coding to pay.

Samples of mantissa bytes give 1.0 to 1.3, where Huffman codes gain less than their table costs.
"""


class _Contexts(threading.local):
    """zstd's state: costly to make, and not to be shared by threads."""

    def __init__(self) -> None:
        self.huffman = zstandard.ZstdCompressor(compression_params=_HUFFMAN_ONLY)
        self.matches = zstandard.ZstdCompressor(level=_LEVEL_WITH_MATCHES)
        self.decompressor = zstandard.ZstdDecompressor()


_contexts = _Contexts()


def huffman_bytes(lane: Bytes) -> int:
    """Size of a lane of any shape when Huffman-coded."""
    return len(_contexts.huffman.compress(np.ascontiguousarray(lane).data))


def code_high_lane(lane: Bytes) -> bytes | memoryview:
    """Make a contiguous lane smaller if possible; else its own bytes come back."""
    coded = _contexts.huffman.compress(lane.data)
    if len(coded) < lane.nbytes * _SUSPICIOUS_SHARE:
        coded = min(coded, _contexts.matches.compress(lane.data), key=len)
    return coded if len(coded) < lane.nbytes else lane.reshape(-1).data


def code_low_lane(lane: Bytes) -> bytes | memoryview:
    """As `code_high_lane`, but give up at once on what looks like noise."""
    flat = lane.reshape(-1)
    stride = max(1, len(flat) // _SAMPLE_BYTES) | 1  # odd: not in step with the channels
    sample = flat[::stride]
    counts = np.bincount(sample, minlength=256)
    # Pairs of equal bytes against what 256 equally likely values would give.
    repetition = 256 * (counts @ counts - len(sample)) / max(1, len(sample) * (len(sample) - 1))
    return code_high_lane(lane) if repetition > _MIN_REPETITION else flat.data


def code_with_matches(data: bytes) -> bytes:
    """Make anything smaller if possible; else it comes back."""
    return min(data, _contexts.matches.compress(data), key=len)


def decode(data: memoryview, num_bytes: int) -> memoryview:
    """Undo any of the above.

    Args:
        data: What they returned.
        num_bytes: Size of the lane.

    Raises:
        FrameCorrupt: It is not a lane of that size. Nothing has been allocated for another size.
    """
    if len(data) == num_bytes:
        return data
    try:
        stated = zstandard.get_frame_parameters(data)
        # zstandard allocates what the frame states, whatever limit it is given.
        too_wide = stated.window_size > max(num_bytes, _MAX_WINDOW_BYTES)
        if stated.content_size != num_bytes or too_wide or stated.dict_id:
            raise FrameCorrupt("The peer sent a compressed payload of a size that does not fit.")
        decoded = _contexts.decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise FrameCorrupt("The peer sent a compressed payload that is damaged.") from error
    if len(decoded) != num_bytes:
        raise FrameCorrupt("The peer sent a compressed payload of a size that does not fit.")
    return memoryview(decoded)
