"""Multiaddrs as text, as far as Shoal needs them; no hivemind, so that commands start quickly.

A plain address (`/ip4/…/tcp/…`) is dialled directly. A circuit address names a relay that holds a
slot for the peer: `/ip4/…/tcp/…/p2p/<relay>/p2p-circuit`.
"""

from __future__ import annotations

import ipaddress
import re

from engine.core.ids import PeerId

_ADDRESS = re.compile(
    r"/(?:ip4/(?P<ip4>\d{1,3}(?:\.\d{1,3}){3})|ip6/[0-9a-fA-F:.]{2,45}"
    r"|dns[46]?/[A-Za-z0-9._-]{1,253})"
    r"/(?:tcp|udp)/(?P<port>\d{1,5})(?:/(?:quic|quic-v1|ws|wss|tls))*"
)
_PEER = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}")
_CIRCUIT = "/p2p-circuit"


def split_peer(address: str) -> tuple[str, PeerId | None]:
    """Cut a trailing `/p2p/<id>` off: (address without it, the id or None)."""
    base, found, peer = address.rpartition("/p2p/")
    return (base, PeerId(peer)) if found else (address, None)


def is_peer_id(text: str) -> bool:
    """Whether this is the base58 id of an RSA key, the only kind that Shoal uses."""
    return _PEER.fullmatch(text) is not None


def is_plain(address: str) -> bool:
    """Whether this is a multiaddr without `/p2p/` at which a peer may be dialled directly."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        return False
    return match["ip4"] is None or all(int(part) < 256 for part in match["ip4"].split("."))


def is_circuit(address: str) -> bool:
    """Whether this is the way to a peer through a relay."""
    return address.endswith(_CIRCUIT) and is_bootstrap(address.removesuffix(_CIRCUIT))


def is_address(address: str) -> bool:
    """Whether a peer may be dialled at this: a plain address, or a circuit."""
    return is_plain(address) or is_circuit(address)


def is_bootstrap(address: str) -> bool:
    """Whether this is a plain address followed by `/p2p/` and a peer id."""
    base, peer = split_peer(address)
    return peer is not None and is_peer_id(peer) and is_plain(base)


def circuit(base: str, relay: PeerId) -> str:
    """The circuit address that leads through `relay`, itself at the plain address `base`."""
    return f"{base}/p2p/{relay}{_CIRCUIT}"


def relay_of(address: str) -> PeerId | None:
    """The relay of a circuit address; None for a plain one."""
    return split_peer(address.removesuffix(_CIRCUIT))[1] if address.endswith(_CIRCUIT) else None


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))


def ip_of(address: str) -> str | None:
    """The IP address that a multiaddr begins with; None when it begins with a name."""
    kind, _, rest = address.removeprefix("/").partition("/")
    host = rest.partition("/")[0]
    return host if kind in ("ip4", "ip6") else None


def port_of(address: str) -> int | None:
    """The TCP port of a plain address; None when it has none."""
    match = re.search(r"/tcp/(\d{1,5})", address)
    return int(match[1]) if match else None


def is_public(address: str) -> bool:
    """Whether the address is one of the whole internet, as far as its text tells."""
    ip = ip_of(address)
    try:
        return ip is not None and ipaddress.ip_address(ip).is_global
    except ValueError:
        return False
