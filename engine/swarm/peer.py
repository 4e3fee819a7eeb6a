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
from engine.swarm import bootstrap
from engine.swarm.addresses import is_plain, is_public, port_of, relay_of, split_peer
from engine.swarm.daemon import Daemon
from engine.swarm.dht import Dht
from engine.swarm.dial_back import PROTOCOL as CHECK_PROTOCOL
from engine.swarm.dial_back import DialBack
from engine.swarm.identity import Identity, load_or_create
from engine.swarm.reachability import Reachability, outbound_addresses
from engine.swarm.record_guard import RecordGuard
from engine.swarm.upkeep import Connections, Upkeep

_logger = logging.getLogger(__name__)

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
EVERY_INTERFACE = ("/ip4/0.0.0.0/tcp/0",)

StreamCallback = Any  # hivemind's (StreamInfo, StreamReader, StreamWriter) -> coroutine


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
        self._upkeep = Upkeep(self, config, clock)
        self._tasks: list[asyncio.Task[None]] = []
        self.reachability = Reachability(config, listen, clock)
        self._bootstrap_peers = {
            peer: (base,) for base, peer in map(split_peer, initial_peers) if peer is not None
        }
        if self.reachability.mode is not Reach.LOCAL:
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
            await peer._upkeep.settle()
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
        return self.reachability.announced(self._addresses)

    @property
    def visible_addresses(self) -> tuple[str, ...]:
        """Plain addresses of p2pd, whether others reach us there or not."""
        return self._addresses

    @property
    def known_peers(self) -> frozenset[PeerId]:
        """Peers that we may ask something: the bootstrap peers, and those of the DHT."""
        return frozenset({*self._bootstrap_peers, *self.dht.peers}) - {self.peer_id}

    @property
    def is_first(self) -> bool:
        """Whether we know no bootstrap peer: solo, or the first of a swarm."""
        return not self._initial_peers

    @property
    def reach(self) -> Reach:
        """Whether others can connect to us."""
        return self.reachability.reach

    @property
    def num_relays(self) -> int:
        """Relays that hold a slot for us."""
        return len(self.reachability.slots.relays)

    @property
    def relays(self) -> bool:
        """Whether outbound-only peers may count on us as a relay."""
        return self.reachability.relays

    def offer_relays(self, relays: Mapping[PeerId, Sequence[str]]) -> None:
        """Know of peers that can relay, beside the bootstrap peers, and their addresses."""
        self.reachability.slots.offer(
            {
                peer: addresses
                for peer, addresses in {**self._bootstrap_peers, **relays}.items()
                if peer != self.peer_id
            }
        )

    def watch_connections(self, callback: Callable[[Connections], Awaitable[None]]) -> None:
        """Let `callback` have the open connections every few seconds."""
        self._upkeep.watchers.append(callback)

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

        Right after the start of a node that accepts no connections, circuits wait: see
        `RelaySlots.until_punching`.

        Raises:
            PeerUnreachable: None answered in time.
        """
        if self.reachability.mode is Reach.OUTBOUND_ONLY and any(map(relay_of, addresses)):
            await self.reachability.slots.until_punching()
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
        mode = self.reachability.mode
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
            relays=self._config.relay_for_others,
            timeout_s=self._config.open_timeout_s,
        )
        self.reachability.slots.clear()
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
        self._tasks = self._upkeep.start()

    async def _start_dht(self) -> None:
        await self.read_addresses()
        self._keep_port()
        self._dht = await Dht.start(
            self.daemon,
            self._guard,
            keeps_records=self._keeps_records,
            timeout_s=self._config.open_timeout_s,
        )
        for protocol, handler in self._handlers.items():
            await self.daemon.add_binary_stream_handler(protocol, handler)

    async def read_addresses(self) -> None:
        """Learn from p2pd at which addresses it can be seen.

        Raises:
            PeerUnreachable: It is gone.
        """
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
            await self.greet()
        except PeerUnreachable as error:
            if must_join:
                raise
            _logger.warning("alone for now: %s", error)

    async def greet(self) -> None:
        """Enter the swarm through its bootstrap peers.

        Raises:
            PeerUnreachable: None answered.
        """
        self.clock_offset_s = await bootstrap.join(
            self._initial_peers, self.connect, self.dht.node, self._clock
        )
