"""Which versions of the wire's protocol a node speaks, and which of them two nodes have in common.

A release may raise `OURS.newest` by one and keeps `OURS.oldest` at what the release before it had as
its newest, so that old and new nodes serve together until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ProtocolWindow:
    """From the oldest to the newest version, both spoken."""

    oldest: int
    newest: int

    def shared(self, other: ProtocolWindow) -> int | None:
        """The newest version that both speak; None: they do not understand one another."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None

    def is_behind(self, other: ProtocolWindow) -> bool:
        """Whether this one must be updated before the two understand one another."""
        return self.newest < other.oldest

    def objection(self, other: ProtocolWindow) -> str:
        """What `other` is to a node that speaks this; empty when they understand one another.

        It can be read by both: "it is …", "this node is …".
        """
        if self.shared(other) is not None:
            return ""
        if other.is_behind(self):
            return f"too old: it speaks protocol {other} and the other side {self}, so update it"
        return (
            f"too new: it speaks protocol {other} and the other side {self}, so update the other "
            "side"
        )

    def __str__(self) -> str:
        return str(self.newest) if self.oldest == self.newest else f"{self.oldest}–{self.newest}"


OURS: Final = ProtocolWindow(1, 2)
EXPECTING: Final = 2
"""The first one in which a first stage takes EXPECT, and a last stage answers what came of it."""
UNSAID: Final = ProtocolWindow(1, 1)
"""What a node speaks that does not say: those before the greeting named it."""
