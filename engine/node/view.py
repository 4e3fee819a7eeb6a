"""The swarm as this node sees it now, itself included."""

from __future__ import annotations

from dataclasses import replace

from engine.core.snapshot import SwarmSnapshot
from engine.node.stage_runner import StageRunner
from engine.swarm.directory import Directory
from engine.swarm.links import Links


class View:
    """The swarm as requests from here see it: the directory's, and our own stage as it is now."""

    def __init__(self, directory: Directory, links: Links) -> None:
        self._directory = directory
        self._links = links
        self.stage: StageRunner | None = None

    def snapshot(self) -> SwarmSnapshot:
        """See `engine.client.client.SwarmView`."""
        snapshot = self._directory.snapshot()
        measured = {**snapshot.link_s, self._links.local_peer: self._links.neighbours.one_way_s()}
        snapshot = replace(snapshot, link_s=measured)
        return snapshot if self.stage is None else self.stage.overlay(snapshot)

    async def refresh(self) -> SwarmSnapshot:
        """See `engine.client.client.SwarmView`."""
        await self._directory.refresh()
        return self.snapshot()
