"""Hosts on an internet of their own, some of them at home behind a router that translates addresses.

Network namespaces joined by a bridge, with addresses that look public, because libp2p uses no others
for punching holes. Needs Linux, root, and the commands `ip` and `nft`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from types import TracebackType
from typing import Self

_ROUTER = """
table ip home {
  chain input {
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iifname "lan" accept
    iifname "lo" accept
  }
  chain forward {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
  chain postrouting {
    type nat hook postrouting priority 100;
    oifname "wan" masquerade
  }
}
"""


def missing() -> str:
    """Why no such network can be made here; empty when it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "making network namespaces needs root"
    for command in ("ip", "nft"):
        if shutil.which(command) is None:
            return f"the command {command} is not installed"
    probe = f"shoal-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode != 0:
        return "network namespaces are not allowed here"
    try:
        rules = ["ip", "netns", "exec", probe, "nft", "-f", "-"]
        failed = subprocess.run(rules, input=_ROUTER.encode(), capture_output=True).returncode
        return "the kernel translates no addresses" if failed else ""
    finally:
        subprocess.run(["ip", "netns", "del", probe], check=False)


class Internet:
    """A context in which hosts may be added; `at(name)` begins a command that runs on one."""

    def __init__(self) -> None:
        self._prefix = f"shoal-{os.getpid()}"
        self._namespaces: list[str] = []
        self._num_public = 0

    def __enter__(self) -> Self:
        """Make the bridge."""
        self._namespace("core")
        self._in("core", "ip link add bridge type bridge", "ip link set bridge up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process that is left on the hosts, and remove them."""
        for name in reversed(self._namespaces):
            left = subprocess.run(
                ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
            )
            for pid in left.stdout.split():
                os.kill(int(pid), 9)
            subprocess.run(["ip", "netns", "del", name], check=False)

    def at(self, host: str) -> list[str]:
        """What to put before a command so that it runs on `host`."""
        return ["ip", "netns", "exec", f"{self._prefix}-{host}"]

    def add_public(self, host: str) -> None:
        """A host that everybody can connect to."""
        self._namespace(host)
        self._join(host)

    def add_home(self, host: str) -> None:
        """A host behind a router of its own."""
        router = f"{host}-router"
        self._namespace(host)
        self._namespace(router)
        network = self._join(router)
        inside, outside = f"{self._prefix}-{host}", f"{self._prefix}-{router}"
        self._in(
            router,
            f"ip link add lan type veth peer name lan netns {inside}",
            f"ip addr add 192.168.{network}.1/24 dev lan",
            "ip link set lan up",
            "sysctl -qw net.ipv4.ip_forward=1",
        )
        self._in(
            host,
            f"ip addr add 192.168.{network}.2/24 dev lan",
            "ip link set lan up",
            f"ip route add default via 192.168.{network}.1",
        )
        rules = ["ip", "netns", "exec", outside, "nft", "-f", "-"]
        subprocess.run(rules, input=_ROUTER.encode(), check=True)

    def _join(self, host: str) -> int:
        self._num_public += 1
        number, namespace = self._num_public, f"{self._prefix}-{host}"
        self._in(
            "core",
            f"ip link add port{number} type veth peer name wan netns {namespace}",
            f"ip link set port{number} master bridge up",
        )
        self._in(host, f"ip addr add 45.77.0.{number}/24 dev wan", "ip link set wan up")
        return number

    def _namespace(self, host: str) -> None:
        name = f"{self._prefix}-{host}"
        subprocess.run(["ip", "netns", "add", name], check=True)
        self._namespaces.append(name)
        self._in(host, "ip link set lo up")

    def _in(self, host: str, *commands: str) -> None:
        for command in commands:
            subprocess.run([*self.at(host), *command.split()], check=True)
