"""Founding a swarm: its first invite names this node as the one to ask."""

from __future__ import annotations

from collections.abc import Sequence

from engine.localapi.running import Home
from engine.swarm import invites
from engine.swarm.identity import load_or_create
from engine.swarm.interfaces import free_port, interface_ips
from engine.swarm.invites import Invite


def found(
    home: Home, name: str, *, listen: Sequence[str], source: str, model_id: str, private: bool
) -> Invite:
    """Make the invite of a new swarm that others reach on this machine's addresses.

    Args:
        home: Whose identity it names.
        name: For people.
        listen: Multiaddrs that the settings name; empty: all interfaces, and any port.
        source: Where the model comes from.
        model_id: Which it is.
        private: Whether only holders of the invite get in.

    Raises:
        ConfigError: The name is not fit for an invite, or the key file is damaged.
    """
    places = fixed_places(listen) or {("ip4", "0.0.0.0", free_port()): None}  # noqa: S104
    addresses = [
        f"/{family}/{address}/tcp/{port}"
        for family, host, port in places
        for address in (interface_ips() if host == "0.0.0.0" else [host])  # noqa: S104
    ]
    return _invite(home, name, addresses, source, model_id, private=private)


def found_on_loopback(home: Home, *, source: str, model_id: str) -> Invite:
    """Make the invite of a swarm whose members are all on this machine.

    Raises:
        ConfigError: The key file is damaged.
    """
    address = f"/ip4/127.0.0.1/tcp/{free_port()}"
    return _invite(home, "this computer", [address], source, model_id, private=True)


def fixed_places(listen: Sequence[str]) -> dict[tuple[str, str, int], None]:
    """(address family, host, port) of each multiaddr that names a TCP port, in order."""
    parts = [address.strip("/").split("/") for address in listen]
    return {
        (part[0], part[1], int(part[3])): None
        for part in parts
        if len(part) == 4 and part[2] == "tcp" and part[3].isdecimal() and int(part[3])
    }


def _invite(
    home: Home, name: str, addresses: list[str], source: str, model_id: str, *, private: bool
) -> Invite:
    peer = load_or_create(home.identity_file).peer_id
    # The swarm keeps the ports, since invites name them.
    bootstrap = [f"{address}/p2p/{peer}" for address in addresses]
    return invites.found(name, bootstrap, source, model_id, private=private)
