"""Log-probabilities in a TOKENS frame's payload: JSON, a list per row, absent when unasked.

A row's list has one entry for each token that is accepted of its draft, and one for its id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.core.errors import FrameCorrupt
from engine.core.generation import TokenLogprobs
from engine.protocol.frames import Frame

Logprobs = tuple[TokenLogprobs, ...]
"""Of one row; empty when unasked."""


def encode_logprobs(rows: Sequence[Logprobs]) -> bytes:
    """Pack one list per row; empty when no row has any."""
    if not any(rows):
        return b""
    return json.dumps([[[entry.logprob, entry.top] for entry in row] for row in rows]).encode()


def decode_logprobs(frame: Frame) -> list[Logprobs]:
    """Unpack what `encode_logprobs` made.

    Raises:
        FrameCorrupt: The payload is something else.
    """
    if not len(frame.payload):
        return [()] * len(frame.rows)
    try:
        rows = [
            tuple(
                TokenLogprobs(
                    float(logprob), tuple((int(token), float(value)) for token, value in top)
                )
                for logprob, top in row
            )
            for row in json.loads(bytes(frame.payload))
        ]
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        raise FrameCorrupt("The peer sent log-probabilities that cannot be read.") from error
    if len(rows) != len(frame.rows):
        raise FrameCorrupt("The peer sent log-probabilities for another number of rows.")
    return rows
