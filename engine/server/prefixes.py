"""What this stage has computed before and still holds, found by what it was computed from. Pure.

An entry is the KV of a sequence that has ended. It serves the sequences that begin alike, of the
same owner: how soon an answer comes tells what was computed before, so that others see an entry
only when both its owner and they have agreed to share (`PrefixUse.SHARED`). It is bound to the
stages that computed what flowed into it, because a stage that lied then must not reach anybody who
did not choose it.

Entries are the first to go when a session needs the room.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop
from engine.protocol.prefixes import marks

MAX_ENTRIES = 1024

Way = tuple[Hop, ...]
"""The stages that the hidden states have passed, ours the last."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The beginning of a sequence, up to one of its marks."""

    session: SessionId
    """Under which the worker holds it: the session that computed it."""
    owner: PeerId
    shared: bool
    """Whether others may use it."""
    way: Way
    ids: npt.NDArray[np.int32]
    """[tokens]"""
    digests: tuple[str, ...]
    """At each of its marks, the last at its end."""
    room_bytes: int

    @property
    def tokens(self) -> int:
        """How many it holds."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Match:
    """A beginning that need not be computed again."""

    entry: Entry
    tokens: int


_Key = tuple[PeerId | None, Way, str]
"""Who may see it (None: everybody who shares), where it came along, the digest at a mark."""


@dataclass(slots=True)
class PrefixIndex:
    """All entries of this stage, within a budget."""

    budget_bytes: int
    idle_s: float
    """An entry that nobody has used for so long goes."""
    used_bytes: int = 0
    _entries: OrderedDict[SessionId, Entry] = field(default_factory=OrderedDict)
    """The one unused for longest first."""
    _used_s: dict[SessionId, float] = field(default_factory=dict)
    _by_key: defaultdict[_Key, dict[SessionId, None]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, session: SessionId) -> Entry | None:
        """The entry that this session has left."""
        return self._entries.get(session)

    def find(
        self, owner: PeerId, way: Way, digests: Sequence[str], now_s: float, *, shares: bool
    ) -> Match | None:
        """The longest beginning of a sequence that `owner` may take over.

        Args:
            owner: Who asks.
            way: The stages from the first one to ours.
            digests: At the sequence's marks, as far as it may be taken over.
            now_s: The entry counts as used now.
            shares: Whether the owner shares with others.
        """
        scopes = (owner, None) if shares else (owner,)
        for tokens, digest in reversed(list(zip(_positions(digests), digests, strict=True))):
            for scope in scopes:
                found = self._by_key.get((scope, way, digest))
                if found:
                    newest = next(reversed(found))
                    self._touch(newest, now_s)
                    return Match(self._entries[newest], tokens)
        return None

    def add(self, entry: Entry, now_s: float) -> list[SessionId]:
        """Take an entry in, in place of those that it makes superfluous.

        Returns:
            Sessions whose KV shall be freed; the entry's own among them when it is not wanted.
        """
        end = entry.digests[-1]
        for other in self._sharing(entry, end):
            if self._entries[other].shared >= entry.shared:
                self._touch(other, now_s)
                return [entry.session]  # what it holds is held already
        if entry.room_bytes > self.budget_bytes:
            return [entry.session]
        freed = [
            other
            for digest in entry.digests
            for other in self._sharing(entry, digest)
            if self._entries[other].digests[-1] == digest
            and entry.shared >= self._entries[other].shared
        ]
        for other in freed:
            self.drop(other)
        freed += self.shrink(self.budget_bytes - entry.room_bytes, most=MAX_ENTRIES - 1)
        self._entries[entry.session] = entry
        self._used_s[entry.session] = now_s
        self.used_bytes += entry.room_bytes
        for key in _keys(entry):
            self._by_key[key][entry.session] = None
        return freed

    def shrink(
        self, room_bytes: int, *, spare: Collection[SessionId] = (), most: int = MAX_ENTRIES
    ) -> list[SessionId]:
        """Drop entries until the rest needs no more than `room_bytes`.

        Whoever holds most loses first, and of his what was unused for longest, so that nobody can
        drive out what is another's.

        Args:
            room_bytes: What may stay.
            spare: Entries that stay in any case.
            most: Number of entries that may stay.

        Returns:
            The sessions that were dropped.
        """
        dropped: list[SessionId] = []
        while self.used_bytes > room_bytes or len(self._entries) > most:
            held: Counter[PeerId] = Counter()
            oldest: dict[PeerId, SessionId] = {}
            for session, entry in self._entries.items():
                held[entry.owner] += entry.room_bytes
                if session not in spare:
                    oldest.setdefault(entry.owner, session)
            if not oldest:
                break
            victim = oldest[max(oldest, key=lambda owner: held[owner])]
            self.drop(victim)
            dropped.append(victim)
        return dropped

    def expired(self, now_s: float) -> list[SessionId]:
        """Drop and return what nobody has used for too long."""
        old = [session for session, used_s in self._used_s.items() if used_s + self.idle_s <= now_s]
        for session in old:
            self.drop(session)
        return old

    def drop(self, session: SessionId) -> bool:
        """Forget an entry; False when there is none."""
        entry = self._entries.pop(session, None)
        if entry is None:
            return False
        del self._used_s[session]
        self.used_bytes -= entry.room_bytes
        for key in _keys(entry):
            del self._by_key[key][session]
            if not self._by_key[key]:
                del self._by_key[key]
        return True

    def _sharing(self, entry: Entry, digest: str) -> list[SessionId]:
        """The owner's own entries that begin like `entry` up to the mark of `digest`."""
        return list(self._by_key.get((entry.owner, entry.way, digest), ()))

    def _touch(self, session: SessionId, now_s: float) -> None:
        self._used_s[session] = now_s
        self._entries.move_to_end(session)


def _keys(entry: Entry) -> list[_Key]:
    scopes = (entry.owner, None) if entry.shared else (entry.owner,)
    return [(scope, entry.way, digest) for scope in scopes for digest in entry.digests]


def _positions(digests: Sequence[str]) -> list[int]:
    """Where the marks of these digests are."""
    return [position for _, position in zip(digests, marks(1 << 31), strict=False)]
