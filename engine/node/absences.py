"""Notices stages that are gone sooner than their announcements expire."""

from __future__ import annotations

import asyncio
import logging

from engine.core.errors import PeerError
from engine.core.ids import PeerId, short
from engine.swarm.directory import Directory
from engine.swarm.links import Links

logger = logging.getLogger(__name__)


class Absences:
    """Looks after stages whose link broke: who cannot be reached again, while others can, is gone.

    Args:
        links: Tell what broke, and what works again.
        directory: Shall not show who is gone.
    """

    def __init__(self, links: Links, directory: Directory) -> None:
        self._links = links
        self._directory = directory
        self._lost: asyncio.Queue[tuple[PeerId, float]] = asyncio.Queue()
        """Whose link broke, and when it had announced itself last by then."""
        self._asked: set[PeerId] = set()
        links.on_lost(self._on_lost)
        links.on_linked(directory.believe)

    async def watch(self) -> None:
        """Do so until cancelled."""
        async with asyncio.TaskGroup() as asking:
            while True:
                asking.create_task(self._ask(*await self._lost.get()))

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        announced_unix_s = self._directory.announced_unix_s(peer)
        if announced_unix_s is not None and peer not in self._asked:
            self._asked.add(peer)
            self._lost.put_nowait((peer, announced_unix_s))

    async def _ask(self, peer: PeerId, announced_unix_s: float) -> None:
        neighbours = self._links.neighbours
        try:
            await self._links.connect(peer)
        except PeerError as error:
            if not neighbours.open_links():
                return  # it may well be we who are gone
            if neighbours.of(peer).incoming is not None:
                return  # it has come to us meanwhile
            logger.info("…%s counts as gone until it speaks again: %s", short(peer), error)
            self._directory.set_aside(peer, announced_unix_s)
        except Exception:
            logger.exception("a lost peer could not be asked")
        finally:
            self._asked.discard(peer)
