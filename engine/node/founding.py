"""Founding a swarm: its first invite names this node as the one to ask."""

from __future__ import annotations

from engine.localapi.running import Home
from engine.swarm import invites
from engine.swarm.identity import load_or_create
from engine.swarm.interfaces import free_port, interface_ips
from engine.swarm.invites import Invite


def found(home: Home, name: str, *, source: str, model_id: str, private: bool) -> Invite:
    """Make the invite of a new swarm that others reach on this machine's addresses.

    Raises:
        ConfigError: The name is not fit for an invite, or the key file is damaged.
    """
    return _invite(home, name, interface_ips(), source, model_id, private=private)


def found_on_loopback(home: Home, *, source: str, model_id: str) -> Invite:
    """Make the invite of a swarm whose members are all on this machine.

    Raises:
        ConfigError: The key file is damaged.
    """
    return _invite(home, "this computer", ["127.0.0.1"], source, model_id, private=True)


def _invite(
    home: Home, name: str, hosts: list[str], source: str, model_id: str, *, private: bool
) -> Invite:
    peer = load_or_create(home.identity_file).peer_id
    port = free_port()  # the swarm keeps it, since invites name it
    bootstrap = [f"/ip4/{host}/tcp/{port}/p2p/{peer}" for host in hosts]
    return invites.found(name, bootstrap, source, model_id, private=private)
