"""Which waiting rows go into the next forward pass. Pure: no clock, no I/O.

Rows of any sessions merge into one pass. Rows that decode go first, owner by owner in turn, so that
a client with a hundred sessions does not crowd out one with a single chat. What room is left goes
to prefill, which is cut into chunks, so that a long prompt stalls nobody.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.frames import DECODE_TOKENS, ELEMENT_BYTES, Dtype, Row, RowFlags


@dataclass(frozen=True, slots=True)
class Work:
    """A row that waits: consecutive tokens of one session, and what the stage needs of them."""

    owner: PeerId
    span: Span
    row: Row
    ids: npt.NDArray[np.int32]
    """`[row.count]`"""
    hidden: bytes | memoryview | None
    """`[row.count, width]` of `dtype`; None at the first stage, which embeds the ids."""
    dtype: Dtype
    width: int
    arrived_s: float

    @property
    def group(self) -> tuple[Span, Dtype]:
        """Rows of one forward pass must agree in this."""
        return (self.span, self.dtype)

    def split(self, count: int) -> tuple[Work, Work]:
        """Cut after `count` tokens; only the last part keeps the SAMPLE mark."""
        row = self.row
        head = replace(row, count=count, flags=row.flags & ~RowFlags.SAMPLE)
        tail = replace(row, position=row.position + count, count=row.count - count)
        at = count * self.width * ELEMENT_BYTES[self.dtype]
        return (
            replace(
                self,
                row=head,
                ids=self.ids[:count],
                hidden=None if self.hidden is None else memoryview(self.hidden)[:at],
            ),
            replace(
                self,
                row=tail,
                ids=self.ids[count:],
                hidden=None if self.hidden is None else memoryview(self.hidden)[at:],
            ),
        )


class Scheduler:
    """The queue in front of the worker."""

    def __init__(self) -> None:
        self._owners: OrderedDict[PeerId, OrderedDict[SessionId, deque[Work]]] = OrderedDict()

    def add(self, work: Work) -> None:
        """Queue a row behind what its session has waiting already."""
        sessions = self._owners.setdefault(work.owner, OrderedDict())
        sessions.setdefault(work.row.session, deque()).append(work)

    def waiting_tokens(self, owner: PeerId, session: SessionId) -> int:
        """Tokens that a session has waiting."""
        sessions = self._owners.get(owner, OrderedDict())
        return sum(work.row.count for work in sessions.get(session, ()))

    def drop(self, owner: PeerId, session: SessionId) -> None:
        """Forget what a session has waiting."""
        sessions = self._owners.get(owner, OrderedDict())
        sessions.pop(session, None)
        if not sessions:
            self._owners.pop(owner, None)

    def take(self, *, max_rows: int, max_tokens: int, prefill_tokens: int) -> list[Work]:
        """Choose the rows of the next forward pass and remove them from the queue.

        At most one row per session, all of one group: that of the row that has waited longest.

        Args:
            max_rows: Most rows.
            max_tokens: Most tokens in all.
            prefill_tokens: Most tokens of rows that are longer than `DECODE_TOKENS`.

        Returns:
            The rows; empty only when nothing waits.
        """
        heads = [queue[0] for sessions in self._owners.values() for queue in sessions.values()]
        if not heads:
            return []
        group = min(heads, key=lambda work: work.arrived_s).group
        # Keep a place for prefill when some waits, or a crowd of chats would never let a new one in.
        prefill_waits = any(
            head.group == group and head.row.count > DECODE_TOKENS for head in heads
        )
        decode_rows = max(1, max_rows - 1) if prefill_waits else max_rows
        batch: list[Work] = []
        room = max_tokens - min(prefill_tokens, max_tokens // 2) if prefill_waits else max_tokens
        for queue in self._in_turn(
            lambda work: work.group == group and work.row.count <= DECODE_TOKENS
        ):
            if len(batch) == decode_rows or (batch and queue[0].row.count > room):
                break
            batch.append(queue.popleft())
            room -= batch[-1].row.count
        room = min(max_tokens - sum(work.row.count for work in batch), prefill_tokens)
        taken = {work.row.session for work in batch}
        for queue in self._in_turn(
            lambda work: (
                work.group == group
                and work.row.count > DECODE_TOKENS
                and work.row.session not in taken
            )
        ):
            if len(batch) >= max_rows or room <= 0:
                break
            work = queue.popleft()
            if work.row.count > room:
                work, rest = work.split(room)
                queue.appendleft(rest)
            batch.append(work)
            taken.add(work.row.session)
            room -= work.row.count
        self._forget_empty()
        return batch

    def _in_turn(self, wanted: Callable[[Work], bool]) -> Iterator[deque[Work]]:
        """Queues whose head is wanted, one per owner in turn; those given move to the back."""
        waiting = {
            owner: deque(
                session for session, queue in sessions.items() if queue and wanted(queue[0])
            )
            for owner, sessions in self._owners.items()
        }
        while any(waiting.values()):
            for owner in list(waiting):
                if waiting[owner]:
                    session = waiting[owner].popleft()
                    yield self._owners[owner][session]
                    self._owners[owner].move_to_end(session)
                    self._owners.move_to_end(owner)

    def _forget_empty(self) -> None:
        for owner in list(self._owners):
            sessions = self._owners[owner]
            for session in [session for session, queue in sessions.items() if not queue]:
                del sessions[session]
            if not sessions:
                del self._owners[owner]
