"""Joining the DHT through known peers.

Ours and not p2pd's, so that an address that does not answer gives a sentence within the time-out
instead of a Go log line, and one that answers is enough.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hivemind.dht import DHTNode
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
from hivemind.proto import dht_pb2

from engine.core.clock import Clock
from engine.core.errors import ConfigError, PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.addresses import is_bootstrap, split_peer

_LOOK_AROUND_S = 5.0
"""A slow neighbour must not keep us from starting."""

Connect = Callable[[PeerId, Sequence[str]], Awaitable[None]]


async def join(addresses: Sequence[str], connect: Connect, node: DHTNode, clock: Clock) -> float:
    """Greet the bootstrap peers and learn of the nodes near us.

    Args:
        addresses: Multiaddrs with `/p2p/`.
        connect: Makes a libp2p connection.
        node: Whose routing table to fill.
        clock: To compare with theirs.

    Returns:
        Our clock minus the bootstrap peers', their median, in seconds.

    Raises:
        PeerUnreachable: None answered.
        ConfigError: An address is none.
    """
    for address in addresses:
        if not is_bootstrap(address):
            raise ConfigError(
                f"The bootstrap address {address} is none (/ip4/…/tcp/…/p2p/Qm…); ask for a newer "
                "invite."
            )
    results = await asyncio.gather(
        *(_greet(address, connect, node, clock) for address in addresses), return_exceptions=True
    )
    offsets_s = [result for result in results if isinstance(result, float)]
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, PeerUnreachable):
            raise result
    if not offsets_s:
        raise PeerUnreachable(
            f"None of the swarm's bootstrap addresses answered ({', '.join(addresses)}); check "
            "your connection or ask for a newer invite."
        )
    with suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_AROUND_S):
            await node.find_nearest_nodes([node.node_id])
    return statistics.median(offsets_s)


async def _greet(address: str, connect: Connect, node: DHTNode, clock: Clock) -> float:
    """Enter one peer's routing table; our clock minus its."""
    base, peer = split_peer(address)
    assert peer is not None
    await connect(peer, (base,))
    protocol, peer_id = node.protocol, PeerID.from_base58(peer)
    request = dht_pb2.PingRequest(peer=protocol.node_info)
    try:
        if await protocol.call_ping(peer_id) is None:
            raise PeerUnreachable(f"The bootstrap peer …{short(peer)} does not answer.")
        asked_s = clock.unix_s()
        answer = await protocol.get_stub(peer_id).rpc_ping(request, timeout=protocol.wait_timeout)
    except (P2PDaemonError, P2PHandlerError, DecodeError, TimeoutError) as error:
        raise PeerUnreachable(
            f"The bootstrap peer …{short(peer)} does not answer as a Shoal node would."
        ) from error
    return (asked_s + clock.unix_s()) / 2 - float(answer.dht_time)
