"""Which waiting rows go into the next forward pass. Pure: no clock, no I/O.

Rows of any sessions merge into one pass. Rows that decode go first, owner by owner in turn, so that
a client with a hundred sessions does not crowd out one with a single chat. What room is left goes
to prefill, which is cut into chunks, so that a long prompt stalls nobody.

A client may want its batch in several micro-batches, so that some travel while others compute
([BB] §5.2). Rows that wait together would merge, so one pass takes at most a micro-batch's rows of
each batch; micro-batches of different clients still share passes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.core.generation import DraftMode
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.frames import ELEMENT_BYTES, Dtype
from engine.protocol.rows import Row, RowFlags

BatchKey = tuple[PeerId, int]
"""A client's request: sequences that were opened together."""


@dataclass(slots=True, eq=False)
class Work:
    """A row that waits: consecutive tokens of one session, and what the stage needs of them.

    Never changed; not frozen for the reason that `Row` is not.
    """

    batch: BatchKey
    span: Span
    row: Row
    ids: npt.NDArray[np.int32]
    """`[row.count]`"""
    hidden: tuple[bytes | memoryview, ...]
    """Together `[row.count, width]` of `dtype`; empty at the first stage, which embeds the ids."""
    dtype: Dtype
    width: int
    arrived_s: float
    pass_rows: int = 1 << 16
    """The most rows of its batch that one pass shall take."""
    is_prefill: bool = field(init=False)
    """Whether this is more than a decode step; asked many times of each."""

    def __post_init__(self) -> None:
        self.is_prefill = self.row.is_prefill

    @property
    def owner(self) -> PeerId:
        """The client's node."""
        return self.batch[0]

    @property
    def group(self) -> tuple[Span, Dtype]:
        """Rows of one forward pass must agree in this."""
        return (self.span, self.dtype)

    def split(self, count: int) -> tuple[Work, Work]:
        """Cut after `count` committed tokens; only the last part keeps the marks and the draft."""
        row = self.row
        head = replace(
            row, count=count, flags=RowFlags.NONE, parents=(), mode=DraftMode.SHARED, weights=b""
        )
        tail = replace(row, position=row.position + count, count=row.count - count, accepted=0)
        before, after = _cut(self.hidden, count * self.width * ELEMENT_BYTES[self.dtype])
        return (
            replace(self, row=head, ids=self.ids[:count], hidden=before),
            replace(self, row=tail, ids=self.ids[count:], hidden=after),
        )

    def continues(self, earlier: Work) -> bool:
        """Whether this goes on where `earlier`, of the same session, ends."""
        row, before = self.row, earlier.row
        return (
            self.group == earlier.group
            and self.width == earlier.width
            and (row.attempt, row.position) == (before.attempt, before.position + before.count)
            and not before.flags
        )

    def joined(self, after: Work) -> Work:
        """Both in one row."""
        row = replace(self.row, count=self.row.count + after.row.count, flags=after.row.flags)
        ids = np.concatenate((self.ids, after.ids))
        return replace(self, row=row, ids=ids, hidden=(*self.hidden, *after.hidden))


class Scheduler:
    """The queue in front of the worker."""

    def __init__(self) -> None:
        self._owners: OrderedDict[PeerId, OrderedDict[SessionId, deque[Work]]] = OrderedDict()

    def add(self, work: Work) -> None:
        """Queue a row behind what its session has waiting already."""
        sessions = self._owners.get(work.owner)
        if sessions is None:
            sessions = self._owners[work.owner] = OrderedDict()
        queue = sessions.get(work.row.session)
        if queue is None:
            queue = sessions[work.row.session] = deque()
        queue.append(work)

    def waiting_tokens(self, owner: PeerId, session: SessionId) -> int:
        """Tokens that a session has waiting, drafts apart."""
        queue = self._queue(owner, session)
        return sum(work.row.committed for work in queue) if queue else 0

    def drop(self, owner: PeerId, session: SessionId) -> None:
        """Forget what a session has waiting."""
        sessions = self._owners.get(owner, OrderedDict())
        sessions.pop(session, None)
        if not sessions:
            self._owners.pop(owner, None)

    def drop_drafts(self, owner: PeerId, session: SessionId) -> None:
        """Forget rows of a session that wait and are all draft."""
        queue = self._queue(owner, session)
        if queue and any(work.row.goes_on for work in queue):
            self._owners[owner][session] = deque(w for w in queue if not w.row.goes_on)
            self._forget_empty()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._owners

    @property
    def has_decode(self) -> bool:
        """Whether a row waits that decodes."""
        return any(not work.is_prefill for work in self._heads())

    def prefilling(self) -> set[BatchKey]:
        """Batches of which prompts wait."""
        return {work.batch for work in self._heads() if work.is_prefill}

    def has_full_pass(self, max_rows: int) -> bool:
        """Whether waiting for more rows that decode would make the next pass no larger."""
        heads = [work for work in self._heads() if not work.is_prefill]
        rows = Counter(work.batch for work in heads)
        return rows.total() >= max_rows or any(rows[w.batch] >= w.pass_rows for w in heads)

    def take(
        self,
        *,
        max_rows: int,
        max_tokens: int,
        prefill_tokens: int,
        may_prefill: Callable[[Work], bool] = lambda work: True,
        may_decode: Callable[[Work, int], bool] = lambda work, waiting_rows: True,
    ) -> list[Work]:
        """Choose the rows of the next forward pass and remove them from the queue.

        At most one row per session, all of one group: that of the row that has waited longest.

        Args:
            max_rows: Most rows.
            max_tokens: Most tokens in all.
            prefill_tokens: Most tokens of rows that prefill.
            may_prefill: Says of a row that prefills whether it may go now.
            may_decode: Says so of a batch's rows that decode: any of them, and how many wait.

        Returns:
            The rows; empty when nothing may go.
        """
        held = self._held(may_decode)
        heads = [
            work
            for work in self._heads()
            if (
                prefill_tokens > 0 and may_prefill(work)
                if work.is_prefill
                else work.batch not in held
            )
        ]
        if not heads:
            return []
        group = min(heads, key=lambda work: work.arrived_s).group
        # Keep a place for prefill when some waits, or a crowd of chats would never let a new one in.
        prefill_waits = any(head.group == group and head.is_prefill for head in heads)
        room = max_tokens - min(prefill_tokens, max_tokens // 2) if prefill_waits else max_tokens
        rows = max(1, max_rows - 1) if prefill_waits else max_rows
        batch = self._take_decode(group, rows, room, held)
        if prefill_waits:
            room = min(max_tokens - sum(work.row.count for work in batch), prefill_tokens)
            batch += self._take_prefill(group, max_rows - len(batch), room, batch, may_prefill)
        self._forget_empty()
        return batch

    def _held(self, may_decode: Callable[[Work, int], bool]) -> set[BatchKey]:
        """Batches whose rows that decode must wait."""
        decoding = [work for work in self._heads() if not work.is_prefill]
        some = {work.batch: work for work in decoding}
        rows = Counter(work.batch for work in decoding)
        return {batch for batch, work in some.items() if not may_decode(work, rows[batch])}

    def _take_decode(
        self, group: tuple[Span, Dtype], max_rows: int, room: int, held: set[BatchKey]
    ) -> list[Work]:
        batch: list[Work] = []
        rows: Counter[BatchKey] = Counter()
        for queue in self._in_turn(
            lambda work: work.group == group and not work.is_prefill and work.batch not in held
        ):
            head = queue[0]
            if len(batch) == max_rows or (batch and head.row.count > room):
                break
            if rows[head.batch] >= head.pass_rows:
                continue
            batch.append(queue.popleft())
            rows[head.batch] += 1
            room -= head.row.count
        return batch

    def _take_prefill(
        self,
        group: tuple[Span, Dtype],
        max_rows: int,
        room: int,
        beside: list[Work],
        may_prefill: Callable[[Work], bool],
    ) -> list[Work]:
        taken = {work.row.session for work in beside}
        batch: list[Work] = []
        for queue in self._in_turn(
            lambda work: (
                work.group == group
                and work.is_prefill
                and work.row.session not in taken
                and may_prefill(work)
            )
        ):
            if len(batch) >= max_rows or room <= 0:
                break
            work = queue.popleft()
            # A row comes in pieces when the line before us is slow; many small passes would cost
            # more than a large one.
            while queue and work.row.count < room and queue[0].continues(work):
                work = work.joined(queue.popleft())
            if work.row.count > room:
                work, rest = work.split(room)
                queue.appendleft(rest)
            batch.append(work)
            room -= work.row.count
        return batch

    def _queue(self, owner: PeerId, session: SessionId) -> deque[Work] | None:
        sessions = self._owners.get(owner)
        return None if sessions is None else sessions.get(session)

    def _heads(self) -> list[Work]:
        return [queue[0] for sessions in self._owners.values() for queue in sessions.values()]

    def _in_turn(self, wanted: Callable[[Work], bool]) -> Iterator[deque[Work]]:
        """Queues whose head is wanted, one per owner in turn; those taken from move to the back."""
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
                    queue = self._owners[owner][session]
                    head = queue[0]
                    yield queue
                    if not queue or queue[0] is not head:
                        self._owners[owner].move_to_end(session)
                        self._owners.move_to_end(owner)

    def _forget_empty(self) -> None:
        for owner in list(self._owners):
            sessions = self._owners[owner]
            for session in [session for session, queue in sessions.items() if not queue]:
                del sessions[session]
            if not sessions:
                del self._owners[owner]


def _cut(
    parts: tuple[bytes | memoryview, ...], num_bytes: int
) -> tuple[tuple[bytes | memoryview, ...], tuple[bytes | memoryview, ...]]:
    """Split buffers after so many bytes in all, without copying."""
    before: list[bytes | memoryview] = []
    for index, part in enumerate(parts):
        if num_bytes < len(part):
            view = memoryview(part)
            if num_bytes:
                before.append(view[:num_bytes])
            return tuple(before), (view[num_bytes:], *parts[index + 1 :])
        before.append(part)
        num_bytes -= len(part)
    return tuple(before), ()
