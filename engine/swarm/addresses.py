"""Multiaddrs as text, as far as Shoal needs them; no hivemind, so that commands start quickly."""

from __future__ import annotations

import re

from engine.core.ids import PeerId

_ADDRESS = re.compile(
    r"/(?:ip4/(?P<ip4>\d{1,3}(?:\.\d{1,3}){3})|ip6/[0-9a-fA-F:.]{2,45}"
    r"|dns[46]?/[A-Za-z0-9._-]{1,253})"
    r"/(?:tcp|udp)/(?P<port>\d{1,5})(?:/(?:quic|quic-v1|ws|wss|tls))*"
)
_PEER = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}")


def split_peer(address: str) -> tuple[str, PeerId | None]:
    """Cut a trailing `/p2p/<id>` off: (address without it, the id or None)."""
    base, found, peer = address.rpartition("/p2p/")
    return (base, PeerId(peer)) if found else (address, None)


def is_peer_id(text: str) -> bool:
    """Whether this is the base58 id of an RSA key, the only kind that Shoal uses."""
    return _PEER.fullmatch(text) is not None


def is_address(address: str) -> bool:
    """Whether this is a plain multiaddr without `/p2p/` that a peer may be dialled at."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        return False
    return match["ip4"] is None or all(int(part) < 256 for part in match["ip4"].split("."))


def is_bootstrap(address: str) -> bool:
    """Whether this is such a multiaddr followed by `/p2p/` and a peer id."""
    base, peer = split_peer(address)
    return peer is not None and is_peer_id(peer) and is_address(base)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))
