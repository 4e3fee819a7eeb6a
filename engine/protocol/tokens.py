"""Log-probabilities in a TOKENS frame's payload: JSON, one entry per row, absent when unasked."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.core.errors import FrameCorrupt
from engine.core.generation import TokenLogprobs
from engine.protocol.frames import Frame


def encode_logprobs(rows: Sequence[TokenLogprobs | None]) -> bytes:
    """Pack one entry per row; empty when no row has any."""
    if all(row is None for row in rows):
        return b""
    return json.dumps([None if row is None else [row.logprob, row.top] for row in rows]).encode()


def decode_logprobs(frame: Frame) -> list[TokenLogprobs | None]:
    """Unpack what `encode_logprobs` made.

    Raises:
        FrameCorrupt: The payload is something else.
    """
    if not len(frame.payload):
        return [None] * len(frame.rows)
    try:
        entries = json.loads(bytes(frame.payload))
        rows = [
            None
            if entry is None
            else TokenLogprobs(
                float(entry[0]), tuple((int(token), float(value)) for token, value in entry[1])
            )
            for entry in entries
        ]
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        raise FrameCorrupt("The peer sent log-probabilities that cannot be read.") from error
    if len(rows) != len(frame.rows):
        raise FrameCorrupt("The peer sent log-probabilities for another number of rows.")
    return rows
