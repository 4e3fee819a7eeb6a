"""Finds this node's place in the swarm, and a better one as the others come and go.

`engine.planner.rebalance` decides; this acts on it. Everyone sees the swarm a few seconds late, so
whoever wants to hold blocks says so first (as JOINING, or as `next_span`), waits until all have had
the time to look, and asks again: of two with the same aim the one with the lower id goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Protocol

from engine.core.errors import EngineError, EnginePaused, PeerUnreachable
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.core.sentences import Sentence
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.node.stage_runner import Phase, StageRunner
from engine.planner.rebalance import CHECK_EVERY_S, Move, decide, wait_s
from engine.planner.routing import left_alone, uncovered
from engine.server.worker_process import LoadOrder

logger = logging.getLogger(__name__)

HURRY_S = 5.0
"""The same, while blocks are missing that somebody must take."""
GLANCE_S = 0.5
"""Whether some are missing is looked up this often."""
MAX_DOUBLINGS = 6
"""So often the time between two looks doubles, while each move fails: what fails is costly."""
MAX_AIMS = 4
"""So often we look for another place when others want ours."""


class Policy(Protocol):
    """Says where a node should be; see `engine.planner.rebalance.decide`."""

    def __call__(
        self,
        snapshot: SwarmSnapshot,
        peer: PeerId,
        max_blocks: int,
        *,
        size: ModelSize | None,
    ) -> Move | None:
        """The move, or none."""
        ...


class View(Protocol):
    """The swarm as its announcements have it; `engine.swarm.directory.Directory` is one."""

    def snapshot(self) -> SwarmSnapshot:
        """As last seen."""
        ...

    async def refresh(self) -> SwarmSnapshot:
        """Look again now.

        Raises:
            PeerUnreachable: Nobody could be asked.
        """
        ...


class Balancer:
    """Chooses the blocks of one node.

    Args:
        peer: Our id.
        max_blocks: Blocks that fit here.
        size: The model's.
        view: The swarm.
        prepare: Gets the weights of a span ready, and says how to load them.
        has_room: Whether so many more blocks fit now.
        rng: Spreads the nodes' checks.
        every_s: Mean time between checks.
        policy: Decides.
    """

    def __init__(
        self,
        peer: PeerId,
        max_blocks: int,
        size: ModelSize,
        view: View,
        prepare: Callable[[Span], Awaitable[LoadOrder]],
        has_room: Callable[[int], Awaitable[bool]],
        rng: Random,
        every_s: float = CHECK_EVERY_S,
        policy: Policy = decide,
    ) -> None:
        self._peer = peer
        self._max_blocks = max_blocks
        self._size = size
        self._view = view
        self._prepare = prepare
        self._has_room = has_room
        self._rng = rng
        self._every_s = every_s
        self._policy = policy
        self.reason = Sentence("")
        """Why we hold what we hold, as a sentence."""

    async def choose(self) -> Span:
        """The blocks of a node that holds none yet; to be confirmed by `join`."""
        move = await self._ask(None)
        assert move is not None, "who has no place gets one"
        self.reason = move.reason
        return move.span

    async def join(self, stage: StageRunner) -> Span:
        """Announce where we are going to be, and go elsewhere if someone else is first.

        Returns:
            The blocks to hold.
        """
        others = [s for s in self._view.snapshot().stages if s.peer != self._peer]
        for _ in range(MAX_AIMS if others else 0):
            own = stage.announce(StageState.JOINING)
            if not await self._is_seen(stage):
                break  # nobody can be asked; the first good choice must do
            move = await self._ask(own)
            if move is None:
                break
            logger.info("another node goes to blocks %s first", stage.order.span)
            self.reason = move.reason
            stage.order = replace(stage.order, span=move.span)
        return stage.order.span

    async def run(self, stage: StageRunner) -> None:
        """Look now and then whether another place would be better, until cancelled."""
        failures = 0
        while True:
            await self._rest(2 ** min(failures, MAX_DOUBLINGS))
            failures += 1
            try:
                if stage.phase is Phase.ONLINE:
                    await self.consider(stage)
                failures = 0
            except (PeerUnreachable, EnginePaused) as error:
                logger.info("could not look for a better place: %s", error)
                failures = 0
            except EngineError as error:
                logger.warning("stayed at blocks %s: %s", stage.order.span, error)
            except Exception:
                logger.exception("looking for a better place failed")

    async def _rest(self, times: int) -> None:
        """Wait until the next look, `times` as long as usual; not so long once blocks are missing."""
        left_s, is_hurried = wait_s(self._rng, self._every_s * times), False
        while left_s > 0:
            if not is_hurried and uncovered(self._view.snapshot(), joining=True):
                left_s, is_hurried = min(left_s, wait_s(self._rng, HURRY_S * times)), True
            step_s = min(left_s, GLANCE_S)
            await asyncio.sleep(step_s)
            left_s -= step_s

    async def consider(self, stage: StageRunner) -> bool:
        """Move if that is better for the swarm; whether we have.

        Raises:
            EngineError: It did not work; we are where we were.
        """
        await self._view.refresh()
        own = stage.info()
        move = None if own is None else await self._ask(own)
        if move is None:
            return False
        try:
            settled = await self._settle(stage, move)
            if settled is None:
                return False
            logger.info("moving to blocks %s: %s", settled.span, settled.reason)
            await self._go(stage, settled)
            return True
        finally:
            if stage.herald.next_span is not None:
                stage.herald.next_span = None
                if stage.phase is Phase.ONLINE:
                    stage.announce(StageState.ONLINE)

    async def _settle(self, stage: StageRunner, move: Move) -> Move | None:
        """Announce an aim until nobody else has it; None: better to stay."""
        for _ in range(MAX_AIMS):
            if move.span == stage.order.span or stage.phase is not Phase.ONLINE:
                return None
            own = stage.announce(StageState.ONLINE, move.span)
            if not await self._is_seen(stage) or stage.herald.next_span != move.span:
                return None  # nobody can have seen it, or it was taken back meanwhile
            again = await self._ask(own)
            if again is None or again.span == move.span:
                return move
            logger.info("not to blocks %s: %s", move.span, again.reason)
            move = again
        return None

    async def _go(self, stage: StageRunner, move: Move) -> None:
        standby = await self._has_room(len(move.span))
        await stage.move(
            lambda: self._prepare(move.span),
            self._is_covered(move.span if standby else None),
            standby=standby,
        )
        self.reason = move.reason

    def _is_covered(self, span: Span | None) -> Callable[[], Awaitable[bool]]:
        """Asks whether nothing is lost if we serve only these blocks; None: none at all."""

        async def is_covered() -> bool:
            try:
                await self._view.refresh()
            except PeerUnreachable:
                return False
            return not self._is_needed(span)

        return is_covered

    def _is_needed(self, span: Span | None) -> bool:
        """Whether some blocks would be lost if we held only these; none are lost that nobody uses."""
        snapshot = self._view.snapshot()
        return not uncovered(snapshot) and bool(left_alone(snapshot, self._peer, span))

    async def _is_seen(self, stage: StageRunner) -> bool:
        """Wait until all could see what we announced, and look at them; whether that worked."""
        try:
            is_heard = await stage.herald.is_heard()
            await self._view.refresh()
        except PeerUnreachable:
            return False
        return is_heard

    async def _ask(self, own: StageInfo | None) -> Move | None:
        snapshot = self._view.snapshot()
        others = tuple(stage for stage in snapshot.stages if stage.peer != self._peer)
        stages = others if own is None else (*others, own)
        # A large swarm takes a moment.
        return await asyncio.to_thread(
            self._policy,
            replace(snapshot, stages=stages),
            self._peer,
            self._max_blocks,
            size=self._size,
        )
