"""This node as a libp2p peer: the daemon, the DHT, and their lifetime.

The DHT runs on our own event loop (`hivemind.DHT` would fork). Bootstrap is ours too, so that an
unreachable address gives a sentence within the time-out instead of a Go log line.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hivemind.dht import DHTNode
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
from hivemind.proto import dht_pb2

from engine.config import SwarmConfig
from engine.core.clock import Clock, SystemClock
from engine.core.errors import ConfigError, PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.addresses import is_loopback, split_peer
from engine.swarm.daemon import Daemon
from engine.swarm.identity import Identity, load_or_create
from engine.swarm.record_guard import RecordGuard

_logger = logging.getLogger(__name__)

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
EVERY_INTERFACE = ("/ip4/0.0.0.0/tcp/0",)
_REBOOTSTRAP_S = 10.0
_REPLICAS = 5

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
        self._node: DHTNode | None = None
        self._addresses: tuple[str, ...] = ()
        self._handlers: dict[str, StreamCallback] = {}
        self._keeper: asyncio.Task[None] | None = None
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
        await peer._launch()
        return peer

    @property
    def peer_id(self) -> PeerId:
        """Our id."""
        return self.identity.peer_id

    def addresses(self) -> tuple[str, ...]:
        """Multiaddrs with `/p2p/` at which others may reach us."""
        return tuple(f"{address}/p2p/{self.peer_id}" for address in self._addresses)

    def announce_addresses(self) -> tuple[str, ...]:
        """The same without `/p2p/`, as announcements carry them."""
        return self._addresses

    @property
    def owner_subkey(self) -> bytes:
        """The subkey of our own records; it says with which key they are signed."""
        subkey: bytes = self._guard.local_public_key
        return subkey

    @property
    def refused_records(self) -> int:
        """Records that we did not take in: oversized, unsigned, or with a wrong signature."""
        return self._guard.refused

    @property
    def neighbours(self) -> int:
        """Peers that the DHT knows."""
        return len(self._node.protocol.routing_table.peer_id_to_uid) if self._node else 0

    @property
    def daemon(self) -> Daemon:
        """The running daemon.

        Raises:
            PeerUnreachable: It is not running.
        """
        if self._daemon is None:
            raise PeerUnreachable("Shoal's network process is not running; it is being restarted.")
        return self._daemon

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

    async def store_many(self, records: Mapping[str, tuple[bytes, float]]) -> bool:
        """Store records of ours: key → (value, expiry in Unix seconds).

        Returns:
            False when one was not taken: a newer one is known, or nobody answered.

        Raises:
            PeerUnreachable: The DHT did not answer in time.
        """
        node = self._require_node()
        keys = list(records)
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                stored = await node.store_many(
                    keys,
                    [value for value, _ in records.values()],
                    [expires_unix_s for _, expires_unix_s in records.values()],
                    subkeys=[self.owner_subkey] * len(keys),
                )
        except TimeoutError as error:
            raise PeerUnreachable(
                "The swarm did not take our announcement in time; Shoal keeps trying."
            ) from error
        return all(stored.values())

    async def get_many(self, keys: Sequence[str]) -> dict[str, dict[object, tuple[object, float]]]:
        """Read records: key → subkey → (value, expiry in Unix seconds); absent keys are empty.

        Raises:
            PeerUnreachable: The DHT did not answer in time.
        """
        node = self._require_node()
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                found = await node.get_many(keys, sufficient_expiration_time=float("inf"))
        except TimeoutError as error:
            raise PeerUnreachable(
                "The swarm did not answer in time; check your connection."
            ) from error
        records: dict[str, dict[object, tuple[object, float]]] = {}
        for key in keys:
            value = found[key].value if found.get(key) is not None else None
            records[key] = (
                {subkey: (item.value, item.expiration_time) for subkey, item in value.items()}
                if isinstance(value, Mapping)
                else {}
            )
        return records

    async def wait_dead(self) -> None:
        """Return when the p2pd child has ended. hivemind itself would hang and say it is alive."""
        if self._daemon is not None:
            await self._daemon.child.wait()

    async def restart(self) -> None:
        """Start a new daemon and DHT with the same identity, port and stream handlers.

        Raises:
            PeerUnreachable: No bootstrap address answered.
            ConfigError: The port is taken by now.
        """
        await self.stop()
        await self._launch()

    async def stop(self) -> None:
        """End the DHT and the daemon; safe to call twice."""
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        node, self._node = self._node, None
        daemon, self._daemon = self._daemon, None
        if node is not None:
            node.is_alive = False
        if daemon is not None:
            await daemon.stop()

    def _require_node(self) -> DHTNode:
        if self._node is None:
            raise PeerUnreachable("Shoal's network process is not running; it is being restarted.")
        return self._node

    async def _launch(self) -> None:
        local = all(is_loopback(address) for address in self._listen)
        try:
            self._daemon = await Daemon.create(
                host_maddrs=self._listen,
                identity_path=str(self._identity_file),
                dht_mode="client" if self._client_mode else "server",
                # Nothing beyond this machine for a swarm on loopback.
                auto_nat=not local,
                nat_port_map=not local,
                use_relay=not local,
                startup_timeout=self._config.open_timeout_s + 5,
                idle_timeout=30,
            )
        except (P2PDaemonError, OSError) as error:
            raise ConfigError(
                f"Shoal's network process could not start ({error}); see that "
                f"{', '.join(self._listen)} is free to listen on."
            ) from error
        try:
            visible = await self._daemon.get_visible_maddrs(latest=True)
            self._addresses = tuple(split_peer(str(address))[0] for address in visible)
            self._keep_port()
            self._node = await DHTNode.create(
                p2p=self._daemon,
                client_mode=self._client_mode,
                record_validator=self._guard,
                num_replicas=_REPLICAS,
                # Snapshots must be fresh; caching would also leave tasks behind.
                cache_locally=False,
                cache_nearest=0,
                cache_on_store=False,
                cache_refresh_before_expiry=0,
            )
            if self._initial_peers:
                await self._bootstrap()
            for protocol, handler in self._handlers.items():
                await self._daemon.add_binary_stream_handler(protocol, handler)
        except BaseException:
            await self.stop()
            raise
        self._keeper = asyncio.create_task(self._keep_bootstrapped(), name="swarm-bootstrap")

    def _keep_port(self) -> None:
        """Listen on the same port after a restart, so that addresses already given stay true."""
        if len(self._listen) == 1 and self._listen[0].endswith("/tcp/0") and self._addresses:
            ports = {address.rpartition("/tcp/")[2] for address in self._addresses}
            if len(ports) == 1:
                self._listen = (self._listen[0].removesuffix("0") + ports.pop(),)

    async def _bootstrap(self) -> None:
        results = await asyncio.gather(
            *(self._greet(address) for address in self._initial_peers), return_exceptions=True
        )
        offsets = [result for result in results if isinstance(result, float)]
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, PeerUnreachable):
                raise result
        if not offsets:
            raise PeerUnreachable(
                "None of the swarm's bootstrap addresses answered "
                f"({', '.join(self._initial_peers)}); check your connection or ask for a newer "
                "invite."
            )
        self.clock_offset_s = statistics.median(offsets)
        node = self._require_node()
        with suppress(TimeoutError):  # a slow neighbour must not keep us from starting
            async with asyncio.timeout(self._config.open_timeout_s):
                await node.find_nearest_nodes([node.node_id])

    async def _greet(self, bootstrap: str) -> float:
        """Connect to a bootstrap peer and enter its routing table; our clock minus its."""
        address, peer = split_peer(bootstrap)
        if peer is None:
            raise ConfigError(f"The bootstrap address {bootstrap} names no peer (/p2p/…).")
        await self.connect(peer, (address,))
        protocol = self._require_node().protocol
        peer_id = PeerID.from_base58(peer)
        if await protocol.call_ping(peer_id) is None:
            raise PeerUnreachable(f"The bootstrap peer …{short(peer)} does not answer.")
        request = dht_pb2.PingRequest(peer=protocol.node_info)
        asked_s = self._clock.unix_s()
        answer = await protocol.get_stub(peer_id).rpc_ping(request, timeout=protocol.wait_timeout)
        return (asked_s + self._clock.unix_s()) / 2 - float(answer.dht_time)

    async def _keep_bootstrapped(self) -> None:
        """Greet the bootstrap peers again whenever the DHT has lost all its neighbours."""
        while self._initial_peers:
            await asyncio.sleep(_REBOOTSTRAP_S)
            if self.neighbours == 0:
                try:
                    await self._bootstrap()
                except PeerUnreachable:
                    _logger.info("still no neighbours in the swarm")
