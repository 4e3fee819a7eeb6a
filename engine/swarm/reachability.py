"""Whether others can connect to this node, and what follows: what it announces, who relays for it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.core.reach import Reach
from engine.swarm import dial_back
from engine.swarm.addresses import ip_of, is_loopback, is_plain, is_public, port_of
from engine.swarm.daemon import Daemon
from engine.swarm.interfaces import free_port, interface_ips
from engine.swarm.relay_slots import RelaySlots

_logger = logging.getLogger(__name__)

_MAX_ASKED = 3
_MAX_LAN_ADDRESSES = 3
_DOUBTS = 2
"""Checks in a row that must fail before a node that was reachable gives up being so."""


class Reachability:
    """What we know of our own reachability; starts hopeful, unless the settings say otherwise."""

    def __init__(
        self,
        config: SwarmConfig,
        listen: Sequence[str],
        clock: Clock,
    ) -> None:
        self._config = config
        self._is_local = all(is_loopback(address) for address in listen)
        self._accepts = config.reachability != "outbound_only"
        self._external: tuple[str, ...] = ()
        """Addresses at which others have reached us."""
        self._relays_well = True
        self._failed_checks = 0
        self.is_steady = False
        """Whether the last check changes nothing, so that the next may wait."""
        self.slots = RelaySlots(clock)

    @property
    def mode(self) -> Reach:
        """How to start p2pd: local, direct or outbound-only."""
        if self._is_local:
            return Reach.LOCAL
        return Reach.DIRECT if self._accepts else Reach.OUTBOUND_ONLY

    @property
    def reach(self) -> Reach:
        """What others can do now."""
        mode = self.mode
        if mode is Reach.OUTBOUND_ONLY and self.slots.circuits():
            return Reach.RELAYED
        return mode

    @property
    def relays(self) -> bool:
        """Whether others may count on us as a relay."""
        return self.mode is Reach.DIRECT and self._relays_well and self._config.relay_for_others

    @property
    def relays_badly(self) -> bool:
        """Whether p2pd cuts the circuits that it relays too early: start it again."""
        wants_to = self.mode is Reach.DIRECT and self._config.relay_for_others
        return wants_to and not self._relays_well

    def announced(self, visible: Sequence[str]) -> tuple[str, ...]:
        """Where others reach us, the most useful first: an announcement has room for a few."""
        near = [address for address in visible if is_loopback(address)]
        rest = [address for address in visible if not is_loopback(address)]
        if self.mode is Reach.OUTBOUND_ONLY:
            lan = [address for address in rest if not is_public(address)]
            found = [*lan[:_MAX_LAN_ADDRESSES], *self.slots.circuits(), *near]
        else:
            found = [*self._external, *rest, *near]
        return tuple(dict.fromkeys(found))

    async def check(self, daemon: Daemon, peers: Iterable[PeerId], visible: Sequence[str]) -> bool:
        """Ask some of `peers` whether they can connect to us, and believe the most of them.

        Args:
            daemon: Running.
            peers: Who may be asked.
            visible: p2pd's addresses.

        Returns:
            False when most of them failed.
        """
        connections = await daemon.connections()
        near = [peer for peer in peers if any(map(is_plain, connections.get(peer, ())))]
        ports = {port for address in visible if (port := port_of(address)) is not None}
        asked = random.sample(near, min(_MAX_ASKED, len(near)))
        found = await asyncio.gather(*(dial_back.ask(daemon, peer, ports) for peer in asked))
        answers = [answer for answer in found if answer is not None]
        if not answers:
            return True
        reached = [answer for answer in answers if answer.reached_ports]
        external = (
            f"/{'ip6' if ':' in answer.ip else 'ip4'}/{answer.ip}/tcp/{port}"
            for answer in reached
            for port in answer.reached_ports
            if port in ports
        )
        self._external = tuple(filter(is_plain, external))
        if reached:
            self._relays_well = 2 * sum(answer.relays_well for answer in reached) > len(reached)
        is_reached = 2 * len(reached) > len(answers)
        if self._config.reachability == "auto":
            self._believe(is_reached=is_reached)
        self.is_steady = is_reached == self._accepts
        return is_reached

    def give_up(self) -> None:
        """Believe that nobody can connect to us, unless the settings say otherwise."""
        if self._config.reachability == "auto":
            self._accepts = False

    def _believe(self, *, is_reached: bool) -> None:
        self._failed_checks = 0 if is_reached else self._failed_checks + 1
        if is_reached:
            self._accepts = True
        elif self._failed_checks >= _DOUBTS:
            self.give_up()


def outbound_addresses(listen: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(where p2pd shall listen, what it shall tell others) when nobody can connect to us.

    At a new port: libp2p dials from the port on which it listens, and only what others see of that
    port helps to punch holes; after a restart, the old connections would still occupy the old one
    for a minute. And it hides public addresses: others would dial them in vain before they punch.
    """
    hosts = dict.fromkeys(ip for address in listen if (ip := ip_of(address)) is not None)
    port = free_port()
    own = [f"/ip4/{ip}/tcp/{port}" for ip in interface_ips()]
    private = [address for address in own if not is_public(address)]
    announce = private[:_MAX_LAN_ADDRESSES] or [f"/ip4/127.0.0.1/tcp/{port}"]
    return tuple(f"/ip{6 if ':' in ip else 4}/{ip}/tcp/{port}" for ip in hosts), tuple(announce)
