"""Drafts on their way through a stage: computed behind a sequence, and not its own yet. Pure.

Which of a draft's tokens the target agrees with arrives with the row after it ([BB] §7.3), at every
stage alike. Until then they count for nothing: a repair, a replay or a copy finds only what is the
sequence's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.protocol.rows import Row, path_to
from engine.server.kept import Kept


@dataclass(frozen=True, slots=True)
class PendingDraft:
    """A draft whose end is not known yet, as the worker has it."""

    position: int
    """Where its tokens begin in the cache, one behind another: the first place after the sequence's
    own ones."""
    parents: tuple[int, ...]

    @classmethod
    def of(cls, row: Row) -> PendingDraft | None:
        """The draft at the end of a row, if there is one."""
        return cls(row.position + row.committed, row.parents) if row.parents else None

    def path(self, row: Row) -> tuple[int, ...]:
        """The draft's tokens that are the sequence's own, now that `row` follows, by their index.

        Raises:
            RemoteProtocolError: The row does not begin where they end.
        """
        if row.accepted <= len(self.parents):
            path = path_to(self.parents, row.accepted)
            if row.position == self.position + len(path):
                return path
        raise RemoteProtocolError(
            f"The peer says that token {row.accepted} is the last that is accepted of a draft of "
            f"{len(self.parents)} at position {self.position}, and goes on at {row.position}: that "
            "does not fit together."
        )


@dataclass(slots=True)
class PassingDraft:
    """The same as the agent has it, which keeps outputs for replays."""

    pending: PendingDraft
    ids: npt.NDArray[np.int32]
    """`[N]`"""
    is_computed: bool = False
    hidden: bytes = b""
    """`[N, width]`, what was sent on for it; nothing at the last stage."""

    @classmethod
    def of(cls, row: Row, ids: npt.NDArray[np.int32]) -> PassingDraft | None:
        """The draft at the end of a row with these ids, if there is one."""
        pending = PendingDraft.of(row)
        return None if pending is None else cls(pending, ids[row.committed :].copy())

    def computed(self, row: Row, hidden: bytes | memoryview = b"") -> None:
        """Take in the outputs of a row, `[row.count, width]`, if this is its draft."""
        if self.pending == PendingDraft.of(row):
            self.is_computed = True
            self.hidden = bytes(hidden[len(hidden) // row.count * row.committed :])

    def accepted(self, row: Row) -> Kept:
        """The outputs that are the sequence's own, now that `row` follows."""
        path = list(self.pending.path(row))
        size = len(self.hidden) // len(self.ids)
        hidden = b"".join(self.hidden[node * size : (node + 1) * size] for node in path)
        return Kept(self.pending.position, self.ids[path], hidden)
