"""Drafts on their way through a stage: computed behind a sequence, and not its own yet. Pure.

Which of a draft's tokens the target agrees with arrives with the row after it ([BB] §7.3), at every
stage alike. Until then they count for nothing: a repair, a replay or a copy finds only what is the
sequence's own. A chain may be followed by more drafts before that is known; once some of it is refused
all of those are void, which the next row's position alone tells every stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.protocol.rows import MAX_OPEN_DRAFTS, Row, is_chain, path_to
from engine.server.kept import Kept


@dataclass(frozen=True, slots=True)
class PendingDraft:
    """A draft whose end is not known yet, as the worker has it."""

    position: int
    """Where its tokens begin in the cache, one behind another: the first place after the sequence's
    own ones, or after the draft that it goes on from."""
    parents: tuple[int, ...]
    kept: tuple[bool, ...] = ()
    """See `Row.kept`."""

    @classmethod
    def of(cls, row: Row) -> PendingDraft | None:
        """The draft at the end of a row, if there is one."""
        return cls(row.position + row.committed, row.parents, row.kept) if row.parents else None

    @property
    def end(self) -> int:
        """The first place behind it."""
        return self.position + len(self.parents)

    def path(self, row: Row) -> tuple[int, ...]:
        """The draft's tokens that are the sequence's own, now that `row` follows, by their index.

        Raises:
            RemoteProtocolError: The row does not begin where they end.
        """
        proposed = self.kept or (True,) * len(self.parents)
        if row.accepted == 0 or (row.accepted <= len(proposed) and proposed[row.accepted - 1]):
            path = path_to(self.parents, sum(proposed[: row.accepted]))
            if row.position == self.position + len(path):
                return path
        raise RemoteProtocolError(
            f"The peer says that token {row.accepted} is the last that is accepted of a draft of "
            f"{len(proposed)} at position {self.position}, and goes on at {row.position}: that "
            "does not fit together."
        )


@dataclass(slots=True, eq=False)
class PassingDraft:
    """The same as the agent has it, which keeps outputs for replays."""

    row: Row
    """Whose draft it is."""
    pending: PendingDraft
    ids: npt.NDArray[np.int32]
    """`[N]`"""
    is_computed: bool = False
    hidden: bytes = b""
    """`[N, width]`, what was sent on for it; nothing at the last stage."""
    next_id: int | None = None
    """At the last stage: what follows it, once all of it is accepted."""

    @classmethod
    def of(cls, row: Row, ids: npt.NDArray[np.int32]) -> PassingDraft | None:
        """The draft at the end of a row with these ids, if there is one."""
        pending = PendingDraft.of(row)
        return None if pending is None else cls(row, pending, ids[row.committed :].copy())

    def computed(self, hidden: bytes | memoryview = b"") -> None:
        """Take in the outputs of its row, `[row.count, width]`."""
        self.is_computed = True
        if hidden and self.row.weights:  # sent on, and needed by nobody here
            self.row = replace(self.row, weights=b"")
        self.hidden = bytes(hidden[len(hidden) // self.row.count * self.row.committed :])

    def accepted(self, path: tuple[int, ...] | None = None) -> Kept:
        """The outputs of the tokens along a path, by their index; None: of all."""
        if path is None:
            return Kept(self.pending.position, self.ids, self.hidden)
        size = len(self.hidden) // len(self.ids)
        hidden = b"".join(self.hidden[node * size : (node + 1) * size] for node in path)
        return Kept(self.pending.position, self.ids[list(path)], hidden)


class OpenDrafts:
    """A session's, the oldest first; each but the first goes on from the one before it."""

    def __init__(self) -> None:
        self._open: list[PassingDraft] = []
        self.is_refuted = False
        """At the last stage: some of it is known to be wrong, so that nothing more can go on from it."""

    def __len__(self) -> int:
        return len(self._open)

    def clear(self) -> None:
        """Forget all."""
        self._open, self.is_refuted = [], False

    def of(self, row: Row) -> PassingDraft | None:
        """The draft at the end of this very row; None: it has none, or one that is of no account now."""
        return next((draft for draft in self._open if draft.row is row), None)

    def settled(self, row: Row) -> list[Kept]:
        """What is the sequence's own, now that `row` follows; changes nothing.

        Raises:
            RemoteProtocolError: It does not follow on what is here.
        """
        if row.goes_on:
            whole = self._whole_before(row)
            settled = [draft.accepted() for draft in self._open[:whole]]
        else:
            whole = sum(row.position > draft.pending.end for draft in self._open[:-1])
            draft = self._open[whole]
            settled = [earlier.accepted() for earlier in self._open[:whole]]
            settled.append(draft.accepted(draft.pending.path(row)))
        if not all(draft.is_computed for draft in self._open[: len(settled)]):
            raise RemoteProtocolError("The peer goes on from a draft that was never computed.")
        return settled

    def _whole_before(self, row: Row) -> int:
        last = self._open[-1].pending if self._open else None
        if last is None or last.end != row.position or not is_chain(last.parents):
            raise RemoteProtocolError(
                "The peer goes on from a draft that is no chain, or not here."
            )
        if not is_chain(row.parents):
            raise RemoteProtocolError("The peer goes on from a draft with a tree.")
        if not 0 < row.accepted <= len(self._open) or row.accepted >= MAX_OPEN_DRAFTS:
            raise RemoteProtocolError(
                f"The peer has {row.accepted} drafts under way before another one, where "
                f"{len(self._open)} are here and {MAX_OPEN_DRAFTS} may be."
            )
        return len(self._open) - row.accepted

    def arrived(self, row: Row, ids: npt.NDArray[np.int32]) -> None:
        """Take in the draft of a row, which settles those before it."""
        self._open = self._open[self._whole_before(row) :] if row.goes_on else []
        self.is_refuted = False
        if (draft := PassingDraft.of(row, ids)) is not None:
            self._open.append(draft)

    # At the last stage, which knows first -----------------------------------------------------

    def judged(self, row: Row, accepted: int, next_id: int | None) -> None:
        """Take note of what the target says to the draft of a row.

        Args:
            row: The very one that came.
            accepted: See `Row`.
            next_id: The token that follows; None: the sequence has ended.
        """
        draft = self.of(row)
        if draft is None:
            return
        if accepted == len(row.parents) and is_chain(row.parents):
            draft.next_id = next_id
        after = self._open.index(draft) + 1
        if draft.next_id is None or any(
            later.ids[0] != draft.next_id for later in self._open[after : after + 1]
        ):
            del self._open[after:]
            self.is_refuted = True

    def is_void(self, row: Row, ids: npt.NDArray[np.int32]) -> bool:
        """Whether a row that comes goes on from what is known to be wrong, or is wrong itself."""
        if not row.goes_on or self.is_refuted:
            return row.goes_on
        last = self._open[-1] if self._open else None
        if last is not None and last.next_id is not None and ids[0] != last.next_id:
            self.is_refuted = True
        return self.is_refuted
