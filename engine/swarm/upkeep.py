"""What a running peer does all the time: it stays in touch, and looks after the ways to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId
from engine.core.reach import Reach
from engine.swarm import relay_pulse

if TYPE_CHECKING:
    from engine.swarm.peer import SwarmPeer

_logger = logging.getLogger(__name__)

_KEEP_INTERVAL_S = 10.0
_WATCH_INTERVAL_S = 2.0
_PULSE_INTERVAL_S = 1.5
_MAPPING_WAIT_S = 3.0
"""How long a router may take to open a port for us, before we ask again whether it has."""
_FIRST_CHECKS_S = 60.0
_CHECK_INTERVAL_S = 600.0
_MORE_STARTS = 3
"""Until p2pd's relay service is the right one."""

Connections = Mapping[PeerId, tuple[str, ...]]
"""The far ends' addresses of the open connections, per peer."""


class Upkeep:
    """Of one peer. Its tasks run as long as one p2pd does."""

    def __init__(self, peer: SwarmPeer, config: SwarmConfig, clock: Clock) -> None:
        self._peer = peer
        self._config = config
        self._clock = clock
        self._checked_s = 0.0
        self.watchers: list[Callable[[Connections], Awaitable[None]]] = []
        """They get the open connections every few seconds."""

    def start(self) -> list[asyncio.Task[None]]:
        """Begin; cancel the tasks to end."""
        self._checked_s = self._clock.monotonic_s()
        rounds = [(self._keep_in_touch, _KEEP_INTERVAL_S)]
        if self._peer.reachability.mode is not Reach.LOCAL:
            rounds.append((self._watch, _WATCH_INTERVAL_S))
            rounds.append((self._watch_relays, _PULSE_INTERVAL_S))
        return [
            asyncio.create_task(_repeat(act, every_s), name=act.__name__) for act, every_s in rounds
        ]

    async def settle(self) -> None:
        """Find out whether others can connect to us, and start again as fits the answer.

        Raises:
            PeerUnreachable: p2pd does not come up again.
            ConfigError: It cannot listen again.
        """
        peer, reachability = self._peer, self._peer.reachability
        if reachability.mode is Reach.LOCAL or peer.is_first:
            return  # the first of a swarm asks later, those who have found it
        mode, started_s = reachability.mode, self._clock.monotonic_s()
        if not await self._check() and mode is Reach.DIRECT:
            before = peer.visible_addresses
            waited_s = self._clock.monotonic_s() - started_s
            await asyncio.sleep(max(0.0, _MAPPING_WAIT_S - waited_s))
            await peer.read_addresses()
            if before == peer.visible_addresses or not await self._check():
                reachability.give_up()
            if reachability.mode is not mode:
                await peer.restart()
        for _ in range(_MORE_STARTS):
            if not reachability.relays_badly:
                break
            await peer.restart()
            await self._check()

    async def _check(self) -> bool:
        peer = self._peer
        try:
            return await peer.reachability.check(
                peer.daemon, peer.known_peers, peer.visible_addresses
            )
        except PeerUnreachable as error:
            _logger.info("nobody could say whether we are reachable: %s", error)
            return True

    async def _keep_in_touch(self) -> None:
        """Follow our addresses, and greet the bootstrap peers again when all neighbours are gone."""
        peer, reachability = self._peer, self._peer.reachability
        before = peer.visible_addresses
        async with asyncio.timeout(self._config.open_timeout_s):
            await peer.read_addresses()
        if peer.neighbours == 0 and not peer.is_first:
            await peer.greet()
        steady = reachability.is_steady and before == peer.visible_addresses
        due_s = self._checked_s + (_CHECK_INTERVAL_S if steady else _FIRST_CHECKS_S)
        mode = reachability.mode
        if mode is Reach.LOCAL or self._clock.monotonic_s() < due_s:
            return
        self._checked_s = self._clock.monotonic_s()
        await self._check()
        if mode is not reachability.mode:
            _logger.warning("now %s: starting again", reachability.mode.value)
            peer.daemon.child.kill()  # whoever waits for its end starts it again

    async def _watch(self) -> None:
        """Look after our slots at relays, and tell the watchers what is connected."""
        connections = await self._connections()
        if self._peer.reachability.mode is Reach.OUTBOUND_ONLY:
            await self._peer.reachability.slots.tick(self._peer.daemon, connections)
        for watcher in self.watchers:
            await watcher(connections)

    async def _watch_relays(self) -> None:
        connections = await self._connections()
        async with asyncio.timeout(self._config.open_timeout_s):
            await relay_pulse.hang_up_on_silent(
                self._peer.daemon, connections, self._peer.reachability.slots.relays
            )

    async def _connections(self) -> Connections:
        async with asyncio.timeout(self._config.open_timeout_s):
            return await self._peer.daemon.connections()


async def _repeat(act: Callable[[], Coroutine[None, None, None]], every_s: float) -> None:
    while True:
        try:
            await act()
        except (PeerUnreachable, TimeoutError) as error:
            _logger.info("will try again: %s", str(error) or "p2pd does not answer")
        except Exception:
            _logger.exception("the peer's upkeep failed")
        await asyncio.sleep(every_s)
