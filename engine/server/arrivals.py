"""What a stage demands of the rows that arrive. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.core.ids import PeerId
from engine.protocol.frames import LOSSY_CODECS, Frame, Row, RowFlags
from engine.server.sessions import Session
from engine.server.worker_process import LoadOrder


class RowsMissing(RemoteProtocolError):
    """A gap in a sequence: the peer's fault, or that of whoever led it here."""


def check_row(
    peer: PeerId,
    session: Session,
    row: Row,
    ids: npt.NDArray[np.int32],
    frame: Frame,
    order: LoadOrder,
    *,
    waiting_tokens: int,
) -> None:
    """Say whether a row of `frame` may be queued.

    Args:
        peer: Who sent it.
        session: The row's.
        row: Some consecutive tokens.
        ids: `[row.count]`
        frame: All that came with it.
        order: What our worker holds.
        waiting_tokens: What the session has waiting already.

    Raises:
        RowsMissing: Rows before this one have not come.
        RemoteProtocolError: The peer breaks another rule.
    """
    if not session.accepts_from(peer):
        raise RemoteProtocolError("The peer sent rows of a session that does not pass it.")
    if row.position > session.position:
        raise RowsMissing("The peer sent rows that leave a gap in their sequence.")
    if row.position + row.count > session.capacity_tokens:
        raise RemoteProtocolError("The peer sent more tokens than it had reserved room for.")
    if waiting_tokens + row.count > session.capacity_tokens:  # the same rows over and over
        raise RemoteProtocolError("The peer sent rows faster than their sequence can take.")
    if row.flags & ~RowFlags.SAMPLE:
        raise RemoteProtocolError("The peer sent rows with flags that make no sense here.")
    width = 0 if session.is_first else order.spec.hidden_size
    if frame.width != width or bool(frame.dtype) != bool(width):
        raise RemoteProtocolError(f"The peer sent rows of width {frame.width}, not {width}.")
    if frame.codec in LOSSY_CODECS and frame.codec is not session.lossy:
        raise RemoteProtocolError("The peer rounded rows of a session that does not allow it.")
    if int(ids.min()) < 0 or int(ids.max()) >= order.spec.vocab_size:
        raise RemoteProtocolError("The peer sent token ids outside the vocabulary.")
