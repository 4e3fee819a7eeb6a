"""What goes out after a forward pass: frames of hidden states, or of new ids. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from engine.core.generation import FinishReason, Sampled
from engine.core.ids import PeerId
from engine.protocol.frames import Frame, Kind, Row, RowFlags
from engine.protocol.tokens import encode_logprobs
from engine.server.scheduler import Work
from engine.server.sessions import SessionTable
from engine.server.worker_process import LoadOrder

_FINISH_FLAGS = {FinishReason.STOP: RowFlags.EOS, FinishReason.LENGTH: RowFlags.LENGTH}


def hidden_frames(
    batch: Sequence[Work], hidden: memoryview, table: SessionTable, order: LoadOrder
) -> Iterator[tuple[PeerId, Frame]]:
    """One frame per next stage, with the rows that go there.

    Args:
        batch: The rows of the pass, in order.
        hidden: `[N, hidden_size]` of `order.dtype` as bytes; copied, so it may be overwritten.
        table: Rows of sessions that have been closed meanwhile are left out.
        order: What the worker holds.
    """
    token_bytes = len(hidden) // sum(work.row.count for work in batch)
    onward: dict[PeerId, list[tuple[Work, memoryview]]] = defaultdict(list)
    at = 0
    for work in batch:
        size = work.row.count * token_bytes
        session = table.get(work.row.session)
        if session is not None:
            onward[session.next_peer].append((work, hidden[at : at + size]))
        at += size
    for peer, rows in onward.items():
        yield (
            peer,
            Frame(
                Kind.STEP,
                b"".join(part for _, part in rows),
                tuple(work.row for work, _ in rows),
                np.concatenate([work.ids for work, _ in rows]),
                order.dtype,
                order.spec.hidden_size,
            ),
        )


def token_frames(
    batch: Sequence[Work], sampled: Sequence[Sampled], table: SessionTable
) -> Iterator[tuple[PeerId, Frame]]:
    """New ids, to the first stages (the closed ring) and to the clients at the same time.

    Args:
        batch: The rows of the pass, in order.
        sampled: One per row with SAMPLE, in order.
        table: Rows of sessions that have been closed meanwhile are left out.
    """
    asked = [work.row for work in batch if work.row.flags & RowFlags.SAMPLE]
    ring: dict[PeerId, list[tuple[Row, int]]] = defaultdict(list)
    clients: dict[PeerId, list[tuple[Row, Sampled]]] = defaultdict(list)
    for asking, token in zip(asked, sampled, strict=True):
        session = table.get(asking.session)
        if session is None:
            continue
        position = asking.position + asking.count
        flags = RowFlags.NONE if token.finish is None else _FINISH_FLAGS[token.finish]
        answer = Row(session.id, position, 1, session.attempt, flags)
        clients[session.owner].append((answer, token))
        if token.finish is None:
            step = Row(session.id, position, 1, session.attempt, RowFlags.SAMPLE)
            ring[session.next_peer].append((step, token.id))
    for peer, steps in ring.items():
        yield peer, _ids_frame(Kind.STEP, steps)
    for peer, answers in clients.items():
        logprobs = encode_logprobs([token.logprobs for _, token in answers])
        yield peer, _ids_frame(Kind.TOKENS, [(row, token.id) for row, token in answers], logprobs)


def _ids_frame(kind: Kind, rows: Sequence[tuple[Row, int]], payload: bytes = b"") -> Frame:
    """One new id per row."""
    ids = np.array([token for _, token in rows], np.int32)
    return Frame(kind, payload, tuple(row for row, _ in rows), ids)
