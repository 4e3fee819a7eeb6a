"""What measuring lines may cost: bytes that strangers ask for, and our own time. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from engine.core.ids import PeerId
from engine.protocol.probes import MAX_TRAIN_BYTES

_SPAN_S: Final = 600.0
_PEER_BYTES: Final = 4 * MAX_TRAIN_BYTES
_ALL_BYTES: Final = 16 * MAX_TRAIN_BYTES
_MAX_PEERS: Final = 4096


class TimeBudget:
    """One stretch of time for several lines, measured one after another.

    None may take so long that the others get less than their share; what one leaves goes to all
    that follow.

    Args:
        now_s: When it begins.
        budget_s: For all of them.
    """

    def __init__(self, now_s: float, budget_s: float) -> None:
        self._ends_s = now_s + budget_s

    def until_s(self, now_s: float, lines_left: int) -> float:
        """When the next line has to be done.

        Args:
            now_s: The time.
            lines_left: The next one and those after it, at least 1.
        """
        return now_s + max(0.0, self._ends_s - now_s) / lines_left


class ProbeBudget:
    """Two buckets that fill up again with time: one per peer, and one for all of them."""

    def __init__(self) -> None:
        self._all = _Bucket(_ALL_BYTES)
        self._peers: OrderedDict[PeerId, _Bucket] = OrderedDict()

    def take(self, peer: PeerId, num_bytes: int, now_s: float) -> bool:
        """Whether `peer` may cause so much filler now; if so, it is counted."""
        bucket = self._peers.pop(peer, None) or _Bucket(_PEER_BYTES)
        self._peers[peer] = bucket
        if len(self._peers) > _MAX_PEERS:
            self._peers.popitem(last=False)
        if min(bucket.has_bytes(now_s), self._all.has_bytes(now_s)) < num_bytes:
            return False
        bucket.take(num_bytes)
        self._all.take(num_bytes)
        return True


class _Bucket:
    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._bytes = float(size_bytes)
        self._seen_s: float | None = None

    def has_bytes(self, now_s: float) -> float:
        if self._seen_s is not None:
            self._bytes += (now_s - self._seen_s) * self._size_bytes / _SPAN_S
        self._seen_s = now_s
        self._bytes = min(self._bytes, float(self._size_bytes))
        return self._bytes

    def take(self, num_bytes: int) -> None:
        self._bytes -= num_bytes
