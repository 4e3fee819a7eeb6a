"""This machine's own addresses and ports."""

from __future__ import annotations

import socket

import psutil


def interface_ips() -> list[str]:
    """IPv4 addresses of the interfaces that others can reach; loopback only if there is no other."""
    found = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family is socket.AF_INET and not address.address.startswith("127.")
    ]
    return found[:8] or ["127.0.0.1"]


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
