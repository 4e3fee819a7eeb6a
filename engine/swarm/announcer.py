"""Tells the swarm what this stage holds, for as long as it holds it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState
from engine.protocol.records import (
    Announcement,
    LinkTimes,
    encode,
    encode_links,
    link_keys,
    record_keys,
)
from engine.swarm.handshake import Membership
from engine.swarm.peer import SwarmPeer

_logger = logging.getLogger(__name__)

_LATER_S = 1.0
"""By how much a leave record outlives what it overrules."""
_RETRY_S = 2.0
_MIN_INTERVAL_S = 0.5
"""Between announcements, however often the numbers change."""


class Announcer:
    """Publishes the newest `StageInfo` at once, again before it expires, and takes it back."""

    def __init__(
        self,
        peer: SwarmPeer,
        config: SwarmConfig,
        clock: Clock,
        membership: Membership,
        model_id: str,
        link_s: Callable[[], Mapping[PeerId, float]] = dict,
    ) -> None:
        """`link_s` gives the one-way times to our neighbours, in seconds, as they are now."""
        self._link_s = link_s
        self._peer = peer
        self._config = config
        self._clock = clock
        self._membership = membership
        self._model_id = model_id
        self._info: StageInfo | None = None
        self._changed = asyncio.Event()
        self._published = asyncio.Event()
        self._announced: dict[str, StageInfo] = {}
        """Key → what we said of ourselves there."""
        self._last_expiry_s: dict[str, float] = {}
        """Key → Unix time at which our newest record there expires."""
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def update(self, info: StageInfo) -> None:
        """Publish this from now on; the first time happens at once."""
        if info == self._info:
            return
        self._info = info
        self._published.clear()
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_announcing(), name="announcer")

    def renew(self) -> None:
        """Publish again at once, as after a new start of the peer."""
        self._changed.set()

    async def published(self) -> None:
        """Wait until the swarm has what the last `update` said, or it is taken back."""
        await self._published.wait()

    async def seen(self) -> None:
        """Wait until the swarm has it, and everyone has had the time to look."""
        await self._published.wait()
        await asyncio.sleep(self._config.snapshot_refresh_s)

    async def withdraw(self) -> None:
        """Stop announcing, and tell the swarm that this stage is gone."""
        self._info = None
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self._published.set()  # nothing more will come
        if not self._announced:  # asked again, if it did not get through the first time
            return
        try:
            async with self._lock:
                await self._take_back(set(self._announced), self._clock.unix_s())
        except PeerUnreachable as error:
            # The records expire by themselves soon.
            _logger.info("could not withdraw the announcement: %s", error)

    async def _keep_announcing(self) -> None:
        while True:
            self._changed.clear()
            wait_s = self._config.announce_refresh_s
            try:
                async with self._lock:
                    await self._publish()
            except PeerUnreachable as error:
                _logger.info("could not announce the stage: %s", error)
                wait_s = min(_RETRY_S, wait_s)
            except Exception:
                _logger.exception("the stage could not be announced")
            await asyncio.sleep(min(_MIN_INTERVAL_S, wait_s))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    async def _publish(self) -> None:
        info = self._info
        if info is None:
            return
        membership = self._membership
        keys = set(record_keys(membership.swarm_id, self._model_id, info.span, membership.key))
        now_s = self._clock.unix_s()
        self._announced |= dict.fromkeys(keys, info)
        expires_s = now_s + self._config.announce_expiry_s
        await self._store(dict.fromkeys(keys, (info, expires_s)), now_s)
        await self._publish_links(info, now_s)
        left = self._announced.keys() - keys
        if left:
            # Said before the new record, so that it cannot overrule that.
            await self._take_back(left, now_s - 0.001)
        if info is self._info:
            self._published.set()

    async def _publish_links(self, info: StageInfo, now_s: float) -> None:
        """Tell how far our neighbours are, for routing; the record expires by itself."""
        if not (one_way_s := self._link_s()):
            return
        first = Span(info.span.start, info.span.start + 1)
        membership = self._membership
        (key,) = link_keys(membership.swarm_id, self._model_id, first, membership.key)
        expires_s = self._expiry_s(key, now_s + self._config.announce_expiry_s)
        times = LinkTimes(info.peer, one_way_s, now_s, expires_s)
        await self._store_encoded({key: (encode_links(times, membership.key), expires_s)})

    async def _take_back(self, keys: set[str], said_s: float) -> None:
        """Store `offline` where we are announced; a later expiry wins over the record there."""
        await self._store(
            {
                key: (
                    replace(self._announced[key], state=StageState.OFFLINE),
                    self._last_expiry_s.get(key, said_s) + _LATER_S,
                )
                for key in keys
            },
            said_s,
        )
        for key in keys:
            del self._announced[key]

    async def _store(self, infos: dict[str, tuple[StageInfo, float]], said_s: float) -> None:
        """Store key → (what to say, until when)."""
        records = {}
        for key, (info, wished_s) in infos.items():
            expires_s = self._expiry_s(key, wished_s)
            said = replace(info, protocols=self._membership.protocols)
            announcement = Announcement(said, self._model_id, said_s, expires_s)
            records[key] = encode(announcement, self._membership.key), expires_s
        await self._store_encoded(records)

    def _expiry_s(self, key: str, wished_s: float) -> float:
        """The DHT takes a record only if it outlives the one before."""
        return max(wished_s, self._last_expiry_s.get(key, 0.0) + 0.001)

    async def _store_encoded(self, records: dict[str, tuple[bytes, float]]) -> None:
        # Noted first: a store that times out may have succeeded.
        self._last_expiry_s |= {key: expires_s for key, (_, expires_s) in records.items()}
        if not await self._peer.dht.store_many(records):
            raise PeerUnreachable("The swarm did not take our announcement; Shoal keeps trying.")
