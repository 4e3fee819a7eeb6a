"""An outbound-only node's slots at relays: reserved, watched, and replaced when one is lost."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hivemind.p2p import PeerID

from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.addresses import circuit, is_plain, is_public
from engine.swarm.circuits import reserve
from engine.swarm.daemon import Daemon

_logger = logging.getLogger(__name__)

WANTED = 5
"""libp2p punches holes only once four others have told it how they see us."""
_PUNCHES_AFTER_S = 5.0
"""A new p2pd looks for its public address after 0.25, 0.75, 1.75 and 3.75 s, and punches only then.

It tries once, when a connection over a relay begins: one that begins earlier stays on its relay.
"""
_RENEW_S = 15.0
"""Each renewal is a sign of life too; a relay that has gone dark would be noticed late else."""
_TIMEOUT_S = 5.0
_RETRY_S = 30.0
# A circuit must carry more than the 128 KiB of libp2p's defaults, or no session gets through.
_LEAST_CIRCUIT_S = 1800.0
_LEAST_CIRCUIT_BYTES = 1 << 30


@dataclass(slots=True)
class _Slot:
    address: str
    took_s: float
    """How long the reservation took: a measure of how far away the relay is."""
    renewed_s: float


class RelaySlots:
    """Slots at several relays. Call `tick` every few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slots: dict[PeerId, _Slot] = {}
        self._candidates: dict[PeerId, tuple[str, ...]] = {}
        self._retry_at_s: dict[PeerId, float] = {}
        self._punches_at_s = -math.inf

    @property
    def relays(self) -> tuple[PeerId, ...]:
        """Who holds a slot for us."""
        return tuple(self._slots)

    def circuits(self) -> tuple[str, ...]:
        """The circuit addresses at which others reach us, the nearest relay first.

        None until we can punch holes.
        """
        if self._until_punching_s() > 0:
            return ()
        nearest = sorted(self._slots.items(), key=lambda item: item[1].took_s)
        return tuple(circuit(slot.address, relay) for relay, slot in nearest)

    def offer(self, relays: Mapping[PeerId, Iterable[str]]) -> None:
        """Know the peers that can relay now, and their addresses."""
        self._candidates = {relay: self._candidates[relay] for relay in self._slots}
        for relay, addresses in relays.items():
            if plain := tuple(filter(is_plain, addresses)):
                self._candidates[relay] = plain

    def clear(self) -> None:
        """Hold no slot any more, as after a new start of p2pd."""
        self._slots.clear()
        self._retry_at_s.clear()
        self._punches_at_s = self._clock.monotonic_s() + _PUNCHES_AFTER_S

    async def until_punching(self) -> None:
        """Wait until p2pd could punch a hole."""
        await asyncio.sleep(self._until_punching_s())

    def _until_punching_s(self) -> float:
        return max(0.0, self._punches_at_s - self._clock.monotonic_s())

    async def tick(self, daemon: Daemon, connections: Mapping[PeerId, tuple[str, ...]]) -> None:
        """Drop slots whose relay is gone, renew those that are due, and take what is missing."""
        now_s = self._clock.monotonic_s()
        self._retry_at_s = {r: at_s for r, at_s in self._retry_at_s.items() if at_s > now_s}
        for relay in [relay for relay in self._slots if not _direct(connections.get(relay, ()))]:
            self._drop(relay, "the connection is gone")
        due = [relay for relay, slot in self._slots.items() if slot.renewed_s + _RENEW_S <= now_s]
        fresh = [
            relay
            for relay in self._candidates
            if relay not in self._slots and self._retry_at_s.get(relay, 0.0) <= now_s
        ]
        missing = max(0, WANTED - len(self._slots))
        chosen = random.sample(fresh, min(missing, len(fresh)))
        await asyncio.gather(*(self._take(daemon, relay) for relay in (*due, *chosen)))

    async def _take(self, daemon: Daemon, relay: PeerId) -> None:
        addresses = self._candidates[relay]
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await daemon.connect(PeerID.from_base58(relay), addresses)
            started_s = self._clock.monotonic_s()
            slot = await reserve(daemon, relay, _TIMEOUT_S)
        except (PeerUnreachable, TimeoutError) as error:
            self._drop(relay, str(error) or "it does not answer")
            return
        if not slot.holds(_LEAST_CIRCUIT_S, _LEAST_CIRCUIT_BYTES):
            self._drop(relay, "its circuits are too short")
            return
        now_s = self._clock.monotonic_s()
        self._slots[relay] = _Slot(_best(addresses), now_s - started_s, now_s)
        self._candidates.setdefault(relay, addresses)  # it may have been taken off meanwhile

    def _drop(self, relay: PeerId, reason: str) -> None:
        if self._slots.pop(relay, None) is not None:
            _logger.info("lost the slot at the relay …%s: %s", short(relay), reason)
        self._retry_at_s[relay] = self._clock.monotonic_s() + _RETRY_S


def _direct(addresses: Iterable[str]) -> bool:
    return any(is_plain(address) for address in addresses)


def _best(addresses: tuple[str, ...]) -> str:
    """The address that most others can use."""
    return next(filter(is_public, addresses), addresses[0])
