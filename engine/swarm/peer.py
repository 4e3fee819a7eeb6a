"""This node as a libp2p peer: the daemon, the DHT, and their lifetime.

The DHT runs on our own event loop; `hivemind.DHT` would fork, and its children outlive a killed
parent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hivemind.dht import DHTNode
from hivemind.p2p import PeerID

from engine.config import SwarmConfig
from engine.core.clock import Clock, SystemClock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm import bootstrap
from engine.swarm.addresses import is_address, is_loopback
from engine.swarm.daemon import Daemon
from engine.swarm.identity import Identity, load_or_create
from engine.swarm.record_guard import RecordGuard

_logger = logging.getLogger(__name__)

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
EVERY_INTERFACE = ("/ip4/0.0.0.0/tcp/0",)
_KEEP_INTERVAL_S = 10.0
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
        await peer._launch(must_join=True)
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

        When no bootstrap address answers it stays alone for now, and greets them again later.

        Raises:
            PeerUnreachable: The new daemon does not answer.
            ConfigError: The port is taken by now.
        """
        await self.stop()
        await self._launch(must_join=False)

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

    async def _launch(self, *, must_join: bool) -> None:
        local = all(is_loopback(address) for address in self._listen)
        self._daemon = await Daemon.launch(
            identity_file=self._identity_file,
            listen=self._listen,
            keep_routes=not self._client_mode,
            local=local,
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
        self._keeper = asyncio.create_task(self._keep_in_touch(), name="swarm-peer")

    async def _start_dht(self) -> None:
        await self._read_addresses()
        self._keep_port()
        self._node = await DHTNode.create(
            p2p=self.daemon,
            client_mode=self._client_mode,
            record_validator=self._guard,
            num_replicas=_REPLICAS,
            # Snapshots must be fresh; caching would also leave tasks behind.
            cache_locally=False,
            cache_nearest=0,
            cache_on_store=False,
            cache_refresh_before_expiry=0,
        )
        for protocol, handler in self._handlers.items():
            await self.daemon.add_binary_stream_handler(protocol, handler)

    async def _read_addresses(self) -> None:
        plain = await self.daemon.visible_addresses()
        # Those that others can use come first: an announcement has room for a few.
        self._addresses = tuple(sorted(filter(is_address, plain), key=is_loopback))

    def _keep_port(self) -> None:
        """Listen on the same port after a restart, so that addresses already given stay true."""
        if len(self._listen) == 1 and self._listen[0].endswith("/tcp/0") and self._addresses:
            ports = {address.rpartition("/tcp/")[2] for address in self._addresses}
            if len(ports) == 1:
                self._listen = (self._listen[0].removesuffix("0") + ports.pop(),)

    async def _join(self, must_join: bool) -> None:
        try:
            await self._bootstrap()
        except PeerUnreachable as error:
            if must_join:
                raise
            _logger.warning("alone for now: %s", error)

    async def _bootstrap(self) -> None:
        self.clock_offset_s = await bootstrap.join(
            self._initial_peers, self.connect, self._require_node(), self._clock
        )

    async def _keep_in_touch(self) -> None:
        """Follow our addresses, and greet the bootstrap peers again when all neighbours are gone."""
        while True:
            await asyncio.sleep(_KEEP_INTERVAL_S)
            try:
                async with asyncio.timeout(self._config.open_timeout_s):
                    await self._read_addresses()
                if self._initial_peers and self.neighbours == 0:
                    await self._bootstrap()
            except (PeerUnreachable, TimeoutError) as error:
                _logger.info("still alone in the swarm: %s", error)
