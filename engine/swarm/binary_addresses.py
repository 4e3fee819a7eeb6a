"""Multiaddrs as bytes, as p2pd takes and gives them.

hivemind's own encoder writes a peer id as a CID, which p2pd refuses; so the part of a circuit
address that follows the relay's plain address is put together here.
"""

from __future__ import annotations

from contextlib import suppress

from hivemind.p2p import PeerID
from hivemind.utils.multiaddr import Multiaddr, exceptions

from engine.swarm.addresses import is_circuit, split_peer

_P2P = b"\xa5\x03"
_CIRCUIT = b"\xa2\x02"


def to_bytes(address: str) -> bytes | None:
    """Encode a plain or a circuit address; None for one that cannot be, as others may give us."""
    with suppress(exceptions.Error, ValueError):
        if not is_circuit(address):
            return _plain(address)
        base, relay = split_peer(address.removesuffix("/p2p-circuit"))
        assert relay is not None
        peer: bytes = PeerID.from_base58(relay).to_bytes()
        return _plain(base) + _P2P + bytes([len(peer)]) + peer + _CIRCUIT
    return None


def from_bytes(data: bytes) -> str | None:
    """Decode an address; None for a kind that we do not know."""
    with suppress(exceptions.Error, ValueError):
        return str(Multiaddr(data))
    return None


def _plain(address: str) -> bytes:
    data: bytes = Multiaddr(address).to_bytes()
    return data
