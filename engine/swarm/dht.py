"""Our node of hivemind's DHT, on our own event loop.

`hivemind.DHT` would fork, and its children outlive a killed parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from hivemind.dht import DHTNode

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId
from engine.swarm.daemon import Daemon
from engine.swarm.record_guard import RecordGuard

_REPLICAS = 5


class Dht:
    """Records under keys, kept by several peers. Make one with `start`."""

    def __init__(self, node: DHTNode, guard: RecordGuard, timeout_s: float) -> None:
        self.node = node
        self._guard = guard
        self._timeout_s = timeout_s

    @classmethod
    async def start(
        cls, daemon: Daemon, guard: RecordGuard, *, keeps_records: bool, timeout_s: float
    ) -> Dht:
        """Start the node.

        Args:
            daemon: Its way to others.
            guard: Refuses records that are not by their owner.
            keeps_records: Keep records for others.
            timeout_s: The longest that one call may take.
        """
        node = await DHTNode.create(
            p2p=daemon,
            client_mode=not keeps_records,
            record_validator=guard,
            num_replicas=_REPLICAS,
            # Snapshots must be fresh; caching would also leave tasks behind.
            cache_locally=False,
            cache_nearest=0,
            cache_on_store=False,
            cache_refresh_before_expiry=0,
        )
        return cls(node, guard, timeout_s)

    @property
    def owner_subkey(self) -> bytes:
        """The subkey of our own records; it says with which key they are signed."""
        subkey: bytes = self._guard.local_public_key
        return subkey

    @property
    def peers(self) -> tuple[PeerId, ...]:
        """Peers that the node knows."""
        table = self.node.protocol.routing_table
        return tuple(PeerId(peer.to_base58()) for peer in table.peer_id_to_uid)

    async def store_many(self, records: Mapping[str, tuple[bytes, float]]) -> bool:
        """Store records of ours: key → (value, expiry in Unix seconds).

        Returns:
            False when one was not taken: a newer one is known, or nobody answered.

        Raises:
            PeerUnreachable: The DHT did not answer in time.
        """
        keys = list(records)
        try:
            async with asyncio.timeout(self._timeout_s):
                stored = await self.node.store_many(
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
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self.node.get_many(keys, sufficient_expiration_time=float("inf"))
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

    def stop(self) -> None:
        """End the node's own tasks."""
        self.node.is_alive = False
