"""`shoal bench draft-bytes`: what a round of each mode takes on the client's link, beside [DC].

The messages are those of the product, encoded as links write them; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel

from engine.core.generation import DraftMode
from engine.core.ids import SessionId
from engine.protocol.frames import HEADER_BYTES, Frame, Kind, encode
from engine.protocol.rows import ROW_BYTES, WEIGHT_BYTES, Row, RowFlags
from engine.speculation.message_sizes import down_bytes, up_bytes

FRAMING_BYTES = HEADER_BYTES + ROW_BYTES
_SESSION = SessionId((1 << 63) + 1)
_POSITION = 1000


class RoundBytes(BaseModel):
    """One mode with chains of one length; each message without its framing."""

    mode: DraftMode
    draft_tokens: int
    """γ."""
    up_bytes: int
    """The newest token, the chain, and what the mode needs of its probabilities."""
    up_paper_bytes: int
    """[DC] has no newest token, and 4 bytes for each id; an id takes as many here as the largest."""
    down_bytes: int
    """When all is accepted. How much is, is told in the framing."""
    down_refused_bytes: int
    """When something is refused."""
    down_paper_bytes: int
    down_refused_paper_bytes: int


class DraftBytesReport(BaseModel):
    """What `--json` prints."""

    vocab_size: int
    framing_bytes: int
    """Of each message besides: a frame's header and a row."""
    rows: list[RoundBytes]


def measure(vocab_size: int, draft_tokens: Sequence[int]) -> DraftBytesReport:
    """Encode a round's messages in every mode.

    Args:
        vocab_size: V.
        draft_tokens: Each a γ.
    """
    return DraftBytesReport(
        vocab_size=vocab_size,
        framing_bytes=FRAMING_BYTES,
        rows=[_round(mode, number, vocab_size) for number in draft_tokens for mode in DraftMode],
    )


def _round(mode: DraftMode, draft_tokens: int, vocab_size: int) -> RoundBytes:
    parents = tuple(range(-1, draft_tokens - 1))
    flags = RowFlags.SAMPLE | RowFlags.OPEN
    num_weights = {DraftMode.SHARED: 0, DraftMode.DSD: vocab_size}.get(mode, 1) * draft_tokens
    ask = Row(
        _SESSION, _POSITION, 1 + draft_tokens, 0, flags, parents, 0, mode, bytes(WEIGHT_BYTES * num_weights)
    )  # fmt: skip
    position = _POSITION + 1
    answer = Row(_SESSION, position, 1, 0, RowFlags.OPEN, accepted=draft_tokens, mode=mode)
    refusal = answer
    if mode is DraftMode.DSSD:
        weights = bytes(WEIGHT_BYTES * vocab_size)
        refused = RowFlags.OPEN | RowFlags.REFUSED
        refusal = Row(_SESSION, position, 1, 0, refused, (), 0, mode, weights)
    return RoundBytes(
        mode=mode,
        draft_tokens=draft_tokens,
        up_bytes=_payload_bytes(Kind.STEP, ask, vocab_size),
        up_paper_bytes=up_bytes(mode, draft_tokens, vocab_size),
        down_bytes=_payload_bytes(Kind.TOKENS, answer, vocab_size),
        down_refused_bytes=_payload_bytes(Kind.TOKENS, refusal, vocab_size),
        down_paper_bytes=down_bytes(mode, vocab_size, rejected=False),
        down_refused_paper_bytes=down_bytes(mode, vocab_size, rejected=True),
    )


def _payload_bytes(kind: Kind, row: Row, vocab_size: int) -> int:
    """Of the encoded message, less what every message has."""
    ids = np.full(row.count, vocab_size - 1, np.int32)
    return sum(len(part) for part in encode(Frame(kind, b"", (row,), ids))) - FRAMING_BYTES


def lines(report: DraftBytesReport) -> Iterator[str]:
    """The report for a person."""
    yield (
        f"{report.vocab_size} tokens in the vocabulary; {report.framing_bytes} B of framing in each "
        "message besides; in brackets [DC]"
    )
    yield f"{'mode':14}{'γ':>3}{'up':>24}{'down, all accepted':>24}{'down, refused':>24}"
    for row in report.rows:
        pairs = (
            (row.up_bytes, row.up_paper_bytes),
            (row.down_bytes, row.down_paper_bytes),
            (row.down_refused_bytes, row.down_refused_paper_bytes),
        )
        cells = "".join(f"{f'{ours} B ({paper})':>24}" for ours, paper in pairs)
        yield f"{row.mode:14}{row.draft_tokens:>3}{cells}"
