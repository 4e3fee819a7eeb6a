"""What this node sees of the swarm: everyone's announcements, as one frozen snapshot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable, RemoteProtocolError
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageState, SwarmSnapshot
from engine.protocol.records import (
    Announcement,
    LinkTimes,
    decode,
    decode_links,
    link_keys,
    record_keys,
)
from engine.swarm.addresses import is_address
from engine.swarm.handshake import Membership
from engine.swarm.identity import peer_id_of
from engine.swarm.peer import SwarmPeer
from engine.swarm.record_guard import owner_of

_logger = logging.getLogger(__name__)

_MAX_REMEMBERED = 4096

_R = TypeVar("_R", Announcement, LinkTimes)


class Directory:
    """Reads the announcements of one model every few seconds and swaps the snapshot whole."""

    def __init__(
        self,
        peer: SwarmPeer,
        config: SwarmConfig,
        clock: Clock,
        membership: Membership,
        model_id: str,
        num_blocks: int,
    ) -> None:
        self._peer = peer
        self._config = config
        self._clock = clock
        self._membership = membership
        self._model_id = model_id
        self._num_blocks = num_blocks
        self._keys = record_keys(membership.swarm_id, model_id, Span(0, num_blocks), membership.key)
        self._link_keys = link_keys(
            membership.swarm_id, model_id, Span(0, num_blocks), membership.key
        )
        self._announcements: dict[PeerId, Announcement] = {}
        self._link_times: dict[PeerId, LinkTimes] = {}
        self._set_aside: dict[PeerId, float] = {}
        """Peer → Unix time of the announcement that is not believed."""
        self._bad_records: set[int] = set()
        self._dropped_records = 0
        self._snapshot = SwarmSnapshot(model_id, num_blocks)
        self._watchers: list[Callable[[SwarmSnapshot], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def snapshot(self) -> SwarmSnapshot:
        """The newest view; never changed in place."""
        return self._snapshot

    def watch(self, callback: Callable[[SwarmSnapshot], None]) -> None:
        """Let `callback` have every snapshot that differs from the one before."""
        self._watchers.append(callback)

    def announced_unix_s(self, peer: PeerId) -> float | None:
        """When a stage in the snapshot announced itself last; None: it is not there."""
        if self._snapshot.stage(peer) is None:
            return None
        return self._announcements[peer].unix_s

    def set_aside(self, peer: PeerId, announced_unix_s: float) -> None:
        """Leave out a stage that cannot be reached, until it announces itself anew.

        Args:
            peer: Which.
            announced_unix_s: When it announced itself last before it was lost. What it has said
                since then is believed.
        """
        self._set_aside[peer] = announced_unix_s
        self._swap()

    def believe(self, peer: PeerId) -> None:
        """Leave out a stage no more: it can be reached after all."""
        if self._set_aside.pop(peer, None) is not None:
            self._swap()

    def start(self) -> None:
        """Refresh from now on, every `snapshot_refresh_s`."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_fresh(), name="directory")

    async def stop(self) -> None:
        """Refresh no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def refresh(self) -> SwarmSnapshot:
        """Read the announcements now.

        Raises:
            PeerUnreachable: The DHT did not answer; the snapshot has lost only what expired.
        """
        async with self._lock:
            try:
                found = await self._peer.dht.get_many((*self._keys, *self._link_keys))
            except PeerUnreachable:
                self._swap()
                raise
            announcements: dict[PeerId, Announcement] = {}
            link_times: dict[PeerId, LinkTimes] = {}
            for key, records in found.items():
                for subkey, (value, expires_s) in records.items():
                    record = self._checked(key, subkey, value, expires_s)
                    if isinstance(record, LinkTimes):
                        _keep_newest(link_times, record.peer, record)
                    elif record is not None:
                        _keep_newest(announcements, record.stage.peer, record)
            self._announcements, self._link_times = announcements, link_times
            self._swap()
            return self._snapshot

    async def _keep_fresh(self) -> None:
        while True:
            try:
                await self.refresh()
            except PeerUnreachable as error:
                _logger.info("could not read the swarm's announcements: %s", error)
            except Exception:
                _logger.exception("the swarm's announcements could not be read")
            await asyncio.sleep(self._config.snapshot_refresh_s)

    def _checked(
        self, key: str, subkey: object, value: object, expires_s: float
    ) -> Announcement | LinkTimes | None:
        try:
            return self._read(key, subkey, value, expires_s)
        except RemoteProtocolError as error:
            mark = hash((subkey, value) if isinstance(value, bytes) else (key, expires_s))
            if mark not in self._bad_records:  # it comes back with every refresh
                if len(self._bad_records) >= _MAX_REMEMBERED:
                    self._bad_records.clear()
                self._bad_records.add(mark)
                self._dropped_records += 1
                _logger.info("dropped an announcement: %s", error)
            return None

    def _read(
        self, key: str, subkey: object, value: object, expires_s: float
    ) -> Announcement | LinkTimes:
        """Check what `decode` cannot: who signed it, that it fits its place, and the time.

        hivemind has verified the signature against the key in `subkey` by now.
        """
        if not isinstance(subkey, bytes) or not isinstance(value, bytes):
            raise RemoteProtocolError("An announcement is not made of bytes.")
        owner = peer_id_of(owner_of(subkey))
        if key in self._link_keys:
            times = decode_links(value, self._membership.key)
            if owner != times.peer:
                raise RemoteProtocolError("Link times were signed by someone else.")
            self._check_times(times, expires_s)
            return times
        announcement = decode(value, self._membership.key)
        stage = announcement.stage
        if owner != stage.peer:
            raise RemoteProtocolError("An announcement was signed by someone else.")
        spans = [span for span in (stage.span, stage.next_span) if span is not None]
        outside = any(span.end > self._num_blocks for span in spans)
        if announcement.model_id != self._model_id or outside:
            raise RemoteProtocolError("An announcement is of another model.")
        span_keys = record_keys(
            self._membership.swarm_id, self._model_id, stage.span, self._membership.key
        )
        if key not in span_keys:
            raise RemoteProtocolError("An announcement stands where its blocks do not belong.")
        if not all(is_address(address) for address in stage.addresses):
            raise RemoteProtocolError("An announcement has addresses that are none.")
        self._check_times(announcement, expires_s)
        return announcement

    def _check_times(self, record: Announcement | LinkTimes, expires_s: float) -> None:
        if abs(expires_s - record.expires_unix_s) > 0.5:
            raise RemoteProtocolError("An announcement expires at another time than it says.")
        now_s = self._clock.unix_s()
        if record.unix_s > now_s + 2 * self._config.max_clock_offset_s:
            raise RemoteProtocolError("An announcement comes from the future; a clock is wrong.")

    def _swap(self) -> None:
        now_s = self._clock.unix_s()
        self._set_aside = {
            peer: unix_s
            for peer, unix_s in self._set_aside.items()
            if peer in self._announcements and self._announcements[peer].unix_s <= unix_s
        }
        living = [
            announcement.stage
            for peer, announcement in sorted(self._announcements.items())
            if announcement.expires_unix_s > now_s
            and peer not in self._set_aside
            and announcement.stage.state is not StageState.OFFLINE
        ]
        ours = self._membership.protocols
        stages = tuple(stage for stage in living if ours.shared(stage.protocols) is not None)
        ahead = sum(ours.is_behind(stage.protocols) for stage in living)
        others = sum(stage.peer != self._peer.peer_id for stage in stages)
        snapshot = SwarmSnapshot(
            model_id=self._model_id,
            num_blocks=self._num_blocks,
            stages=stages,
            dropped_records=self._dropped_records + self._peer.refused_records,
            stages_ahead=ahead,
            stages_behind=len(living) - len(stages) - ahead,
            peers_online=max(others, self._peer.neighbours),
            link_s={
                peer: times.one_way_s
                for peer, times in sorted(self._link_times.items())
                if times.expires_unix_s > now_s
            },
        )
        changed = snapshot != self._snapshot
        self._snapshot = snapshot
        if changed:
            for callback in self._watchers:
                callback(snapshot)


def _keep_newest(records: dict[PeerId, _R], peer: PeerId, record: _R) -> None:
    known = records.get(peer)
    if known is None or known.unix_s < record.unix_s:
        records[peer] = record
