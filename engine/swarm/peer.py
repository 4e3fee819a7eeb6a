"""This node as a libp2p peer: the daemon, the DHT, how others reach us, and their lifetime."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hivemind.p2p import PeerID

from engine.config import SwarmConfig
from engine.core.clock import Clock, SystemClock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.core.reach import Reach
from engine.swarm import bootstrap, relay_pulse
from engine.swarm.addresses import is_plain, is_public, port_of, split_peer
from engine.swarm.daemon import Daemon
from engine.swarm.dht import Dht
from engine.swarm.dial_back import PROTOCOL as CHECK_PROTOCOL
from engine.swarm.dial_back import DialBack
from engine.swarm.identity import Identity, load_or_create
from engine.swarm.reachability import Reachability, outbound_addresses
from engine.swarm.record_guard import RecordGuard

_logger = logging.getLogger(__name__)

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
EVERY_INTERFACE = ("/ip4/0.0.0.0/tcp/0",)
_KEEP_INTERVAL_S = 10.0
_WATCH_INTERVAL_S = 2.0
_PULSE_INTERVAL_S = 1.5
_MAPPING_WAIT_S = 3.0
"""How long a router may take to open a port for us, before we ask again whether it has."""
_FIRST_CHECKS_S = 60.0
_CHECK_INTERVAL_S = 600.0
_MORE_STARTS = 3
"""Until p2pd's relay service is the right one."""

StreamCallback = Any  # hivemind's (StreamInfo, StreamReader, StreamWriter) -> coroutine
Connections = Mapping[PeerId, tuple[str, ...]]
"""The far ends' addresses of the open connections, per peer."""


class SwarmPeer:
    """A running peer. Make one with `start`; when `wait_dead` returns, `restart` or `stop` it."""

    def __init__(
        self,
        identity: Identity,
        identity_file: Path,
        initial_peers: tuple[str, ...],
        config: SwarmConfig,
        listen: tuple[str, ...],
        client_mode: bool,
        clock: Clock,
    ) -> None:
        self.identity = identity
        self._identity_file = identity_file
        self._initial_peers = initial_peers
        self._config = config
        self._listen = listen
        self._client_mode = client_mode
        self._clock = clock
        self._guard = RecordGuard(identity.signing_key)
        self._daemon: Daemon | None = None
        self._dht: Dht | None = None
        self._addresses: tuple[str, ...] = ()
        self._keeps_records = not client_mode
        self._handlers: dict[str, StreamCallback] = {}
        self._watchers: list[Callable[[Connections], Awaitable[None]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._reachability = Reachability(config, listen, clock)
        self._bootstrap_peers = {
            peer: (base,) for base, peer in map(split_peer, initial_peers) if peer is not None
        }
        if self._reachability.mode is not Reach.LOCAL:
            self._handlers[CHECK_PROTOCOL] = DialBack(lambda: self.daemon, clock).handle
        self.clock_offset_s: float | None = None
        """Our clock minus the bootstrap peers' median, when last bootstrapped."""

    @classmethod
    async def start(
        cls,
        identity_file: Path,
        initial_peers: tuple[str, ...] = (),
        config: SwarmConfig | None = None,
        *,
        listen: tuple[str, ...] = (),
        client_mode: bool = False,
        clock: Clock | None = None,
    ) -> SwarmPeer:
        """Start p2pd and the DHT, and join the swarm of `initial_peers`.

        Args:
            identity_file: The node's key; made when absent.
            initial_peers: Bootstrap multiaddrs with `/p2p/`; empty: solo, or the first of a swarm.
            config: Time-outs, and where to listen if `listen` is empty.
            listen: Multiaddrs to listen on. When this and the config's are empty: loopback when
                solo, every IPv4 interface else.
            client_mode: Do not keep records for others.
            clock: For comparing clocks with the bootstrap peers.

        Raises:
            ConfigError: A damaged key file, or an address that cannot be listened on.
            PeerUnreachable: No bootstrap address answered.
        """
        config = config or SwarmConfig()
        # In a thread: making or checking an RSA key takes a tenth of a second.
        identity = await asyncio.to_thread(load_or_create, identity_file)
        default = EVERY_INTERFACE if initial_peers else LOOPBACK
        peer = cls(
            identity,
            identity_file,
            initial_peers,
            config,
            listen or config.listen or default,
            client_mode,
            clock or SystemClock(),
        )
        peer.offer_relays({})
        await peer._launch(must_join=True)
        try:
            await peer._settle()
        except BaseException:
            await peer.stop()
            raise
        return peer

    @property
    def peer_id(self) -> PeerId:
        """Our id."""
        return self.identity.peer_id

    def addresses(self) -> tuple[str, ...]:
        """Multiaddrs with `/p2p/` at which others may reach us."""
        return tuple(f"{address}/p2p/{self.peer_id}" for address in self.announce_addresses())

    def announce_addresses(self) -> tuple[str, ...]:
        """The same without `/p2p/`, as announcements carry them; circuit addresses too."""
        return self._reachability.announced(self._addresses)

    @property
    def reach(self) -> Reach:
        """Whether others can connect to us."""
        return self._reachability.reach

    @property
    def num_relays(self) -> int:
        """Relays that hold a slot for us."""
        return len(self._reachability.slots.relays)

    @property
    def relays(self) -> bool:
        """Whether outbound-only peers may count on us as a relay."""
        return self._reachability.relays

    def offer_relays(self, relays: Mapping[PeerId, Sequence[str]]) -> None:
        """Know of peers that can relay, beside the bootstrap peers, and their addresses."""
        self._reachability.slots.offer(
            {
                peer: addresses
                for peer, addresses in {**self._bootstrap_peers, **relays}.items()
                if peer != self.peer_id
            }
        )

    def watch_connections(self, callback: Callable[[Connections], Awaitable[None]]) -> None:
        """Let `callback` have the open connections every few seconds."""
        self._watchers.append(callback)

    @property
    def refused_records(self) -> int:
        """Records that we did not take in: oversized, unsigned, or with a wrong signature."""
        return self._guard.refused

    @property
    def neighbours(self) -> int:
        """Peers that the DHT knows."""
        return len(self._dht.peers) if self._dht is not None else 0

    @property
    def daemon(self) -> Daemon:
        """The running daemon.

        Raises:
            PeerUnreachable: It is not running.
        """
        if self._daemon is None:
            raise PeerUnreachable("Shoal's network process is not running; it is being restarted.")
        return self._daemon

    @property
    def dht(self) -> Dht:
        """Our node of the DHT.

        Raises:
            PeerUnreachable: It is not running.
        """
        if self._dht is None:
            raise PeerUnreachable("Shoal's network process is not running; it is being restarted.")
        return self._dht

    async def connect(self, peer: PeerId, addresses: Sequence[str]) -> None:
        """Connect to `peer` at multiaddrs without `/p2p/`, within the time-out.

        Raises:
            PeerUnreachable: None answered in time.
        """
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                await self.daemon.connect(PeerID.from_base58(peer), addresses)
        except (PeerUnreachable, TimeoutError, ValueError) as error:
            raise PeerUnreachable(
                f"No address of the peer …{short(peer)} answered; it may be off or behind a "
                "firewall."
            ) from error

    async def handle_streams(self, protocol: str, handler: StreamCallback) -> None:
        """Let hivemind's stream `handler` run for streams of `protocol`; survives `restart`."""
        self._handlers[protocol] = handler
        async with asyncio.timeout(self._config.open_timeout_s):
            await self.daemon.add_binary_stream_handler(protocol, handler)

    async def wait_dead(self) -> None:
        """Return when the p2pd child has ended. hivemind itself would hang and say it is alive."""
        if self._daemon is not None:
            await self._daemon.child.wait()

    async def restart(self) -> None:
        """Start a new daemon and DHT with the same identity, port and stream handlers.

        When no bootstrap address answers it stays alone for now, and greets them again later.

        Raises:
            PeerUnreachable: The new daemon does not answer.
            ConfigError: The port is taken by now.
        """
        await self.stop()
        await self._launch(must_join=False)

    async def stop(self) -> None:
        """End the DHT and the daemon; safe to call twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        dht, self._dht = self._dht, None
        daemon, self._daemon = self._daemon, None
        if dht is not None:
            dht.stop()
        if daemon is not None:
            await daemon.stop()

    async def _launch(self, *, must_join: bool) -> None:
        mode = self._reachability.mode
        self._reachability.slots.clear()
        # Others could not ask us anything: our part of the DHT would be lost to them.
        self._keeps_records = not self._client_mode and mode is not Reach.OUTBOUND_ONLY
        listen: tuple[str, ...] = self._listen
        announce: tuple[str, ...] = ()
        if mode is Reach.OUTBOUND_ONLY:
            listen, announce = outbound_addresses(listen)
        self._daemon = await Daemon.launch(
            identity_file=self._identity_file,
            listen=listen,
            keep_routes=self._keeps_records,
            reach=mode,
            announce=announce,
            timeout_s=self._config.open_timeout_s,
        )
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                await self._start_dht()
            if self._initial_peers:
                await self._join(must_join)
        except TimeoutError as error:
            await self.stop()
            raise PeerUnreachable("Shoal's network process does not answer; try again.") from error
        except BaseException:
            await self.stop()
            raise
        self._tasks = [asyncio.create_task(self._keep_in_touch(), name="swarm-peer")]
        if mode is not Reach.LOCAL:
            self._tasks.append(asyncio.create_task(self._watch(), name="connections"))
            self._tasks.append(asyncio.create_task(self._watch_relays(), name="relays"))

    async def _start_dht(self) -> None:
        await self._read_addresses()
        self._keep_port()
        self._dht = await Dht.start(
            self.daemon,
            self._guard,
            keeps_records=self._keeps_records,
            timeout_s=self._config.open_timeout_s,
        )
        for protocol, handler in self._handlers.items():
            await self.daemon.add_binary_stream_handler(protocol, handler)

    async def _read_addresses(self) -> None:
        plain = await self.daemon.visible_addresses()
        self._addresses = tuple(filter(is_plain, plain))

    def _keep_port(self) -> None:
        """Listen on the same port after a restart, so that addresses already given stay true."""
        if len(self._listen) == 1 and self._listen[0].endswith("/tcp/0") and self._addresses:
            # A router may have opened another port for us; our own shows on our own addresses.
            ports = {port_of(address) for address in self._addresses if not is_public(address)}
            if len(ports) == 1:
                self._listen = (f"{self._listen[0].removesuffix('0')}{ports.pop()}",)

    async def _join(self, must_join: bool) -> None:
        try:
            await self._bootstrap()
        except PeerUnreachable as error:
            if must_join:
                raise
            _logger.warning("alone for now: %s", error)

    async def _bootstrap(self) -> None:
        self.clock_offset_s = await bootstrap.join(
            self._initial_peers, self.connect, self.dht.node, self._clock
        )

    async def _settle(self) -> None:
        """Find out whether others can connect to us, and start again as fits the answer."""
        if self._reachability.mode is Reach.LOCAL or not self._initial_peers:
            return  # the first of a swarm is asked later, by those who have found it
        mode, started_s = self._reachability.mode, self._clock.monotonic_s()
        if not await self._check() and mode is Reach.DIRECT:
            before = self._addresses
            waited_s = self._clock.monotonic_s() - started_s
            await asyncio.sleep(max(0.0, _MAPPING_WAIT_S - waited_s))
            await self._read_addresses()
            if before == self._addresses or not await self._check():
                self._reachability.give_up()
            if self._reachability.mode is not mode:
                await self.restart()
        for _ in range(_MORE_STARTS):
            if not self._reachability.relays_badly:
                break
            await self.restart()
            await self._check()

    async def _check(self) -> bool:
        asked = {*self._bootstrap_peers, *self.dht.peers} - {self.peer_id}
        try:
            return await self._reachability.check(self.daemon, asked, self._addresses)
        except PeerUnreachable as error:
            _logger.info("nobody could say whether we are reachable: %s", error)
            return True

    async def _watch(self) -> None:
        """Look after our slots at relays, and tell the watchers what is connected."""
        while True:
            try:
                connections = await self.daemon.connections()
                if self._reachability.mode is Reach.OUTBOUND_ONLY:
                    await self._reachability.slots.tick(self.daemon, connections)
                for watcher in self._watchers:
                    await watcher(connections)
            except PeerUnreachable as error:
                _logger.info("cannot see our connections: %s", error)
            await asyncio.sleep(_WATCH_INTERVAL_S)

    async def _watch_relays(self) -> None:
        while True:
            await asyncio.sleep(_PULSE_INTERVAL_S)
            try:
                connections = await self.daemon.connections()
                own = self._reachability.slots.relays
                await relay_pulse.hang_up_on_silent(self.daemon, connections, own)
            except PeerUnreachable as error:
                _logger.info("cannot see our relays: %s", error)

    async def _keep_in_touch(self) -> None:
        """Follow our addresses, and greet the bootstrap peers again when all neighbours are gone."""
        checked_s = self._clock.monotonic_s()
        while True:
            await asyncio.sleep(_KEEP_INTERVAL_S)
            try:
                before = self._addresses
                async with asyncio.timeout(self._config.open_timeout_s):
                    await self._read_addresses()
                if self._initial_peers and self.neighbours == 0:
                    await self._bootstrap()
                steady = self._reachability.is_steady and before == self._addresses
                wait_s = _CHECK_INTERVAL_S if steady else _FIRST_CHECKS_S
                if checked_s + wait_s <= self._clock.monotonic_s():
                    checked_s = self._clock.monotonic_s()
                    await self._check_again()
            except (PeerUnreachable, TimeoutError) as error:
                _logger.info("still alone in the swarm: %s", error)

    async def _check_again(self) -> None:
        mode = self._reachability.mode
        if mode is Reach.LOCAL:
            return
        await self._check()
        if mode is not self._reachability.mode:
            _logger.warning("now %s: starting again", self._reachability.mode.value)
            self.daemon.child.kill()  # whoever waits for its end starts it again
