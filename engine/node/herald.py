"""What the swarm hears of our stage, and our own view of it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from engine import __version__
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.announced import block_equivalents, block_times_of
from engine.planner.rebalance import steady
from engine.server.handler import StageHandler
from engine.swarm.announcer import Announcer
from engine.swarm.peer import SwarmPeer

SEEN_LIMIT_S = 30.0


class Herald:
    """Puts together the announcement of one stage.

    Args:
        handler: Knows its room and its pace.
        announcer: Tells the swarm.
        peer: Knows how we are reached.
        max_blocks: Blocks that fit here.
        size: The model's.
    """

    def __init__(
        self,
        handler: StageHandler,
        announcer: Announcer,
        peer: SwarmPeer,
        max_blocks: int,
        size: ModelSize,
    ) -> None:
        self._handler = handler
        self._announcer = announcer
        self._peer = peer
        self._max_blocks = max_blocks
        self._size = size
        self.block_times = (0.0, 0.0)
        """(`block_s`, `block_row_s`): as measured, until passes have told; blocks are all alike."""
        self.next_span: Span | None = None
        """Blocks that we are about to hold instead."""

    def info(self, span: Span, state: StageState) -> StageInfo:
        """Our announcement while we hold these blocks."""
        cost = self._handler.decode_cost
        if cost.of(1):
            share = self._handler.pace.work_share
            found = block_times_of(cost.base_s / share, cost.row_s / share, span, self._size)
            said_s, found_s = sum(self.block_times), sum(found)
            if steady(said_s, found_s) != said_s:
                self.block_times = found
        block_s, block_row_s = self.block_times
        parts = block_equivalents(span, self._size)
        step_s = parts * (block_s + block_row_s)
        free, _ = self._handler.kv_tokens
        return StageInfo(
            peer=self._peer.peer_id,
            span=span,
            state=state,
            kv_free_tokens=free.device,
            kv_ram_free_tokens=free.ram,
            decode_tokens_per_s=1 / step_s if step_s else 0.0,
            decode_row_s=parts * block_row_s,
            uplink_bytes_per_s=self._handler.uplink_bytes_per_s,
            addresses=self._peer.announce_addresses(),
            relay=self._peer.relays,
            version=__version__,
            max_blocks=self._max_blocks,
            block_s=block_s,
            block_row_s=block_row_s,
            sessions=self._handler.num_sessions,
            next_span=self.next_span,
        )

    def tell(self, span: Span, state: StageState) -> StageInfo:
        """Announce that; returns what is said."""
        info = self.info(span, state)
        self._announcer.update(info)
        return info

    async def is_heard(self) -> bool:
        """Wait until all have had the time to see what was said last; False if that may not be."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEEN_LIMIT_S):
                await self._announcer.seen()
                return True
        return False

    async def withdraw(self) -> None:
        """Say no more, and that we are gone."""
        self.next_span = None
        await self._announcer.withdraw()

    def overlay(self, snapshot: SwarmSnapshot, own: StageInfo | None) -> SwarmSnapshot:
        """The swarm as the snapshot has it, with ourselves as we are now; None: not there.

        Announcements travel for seconds; about ourselves we know at once.
        """
        others = tuple(stage for stage in snapshot.stages if stage.peer != self._peer.peer_id)
        return replace(snapshot, stages=others if own is None else (*others, own))
