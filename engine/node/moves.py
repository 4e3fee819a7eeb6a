"""From some blocks to others, so that no block is ever without a stage because of it.

A move keeps a standby: the old blocks are served until the new ones are, and then for the sessions
that began with them until those have gone elsewhere, so that no session breaks. Without memory for
both, the old ones are given up first, if others serve them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from engine.core.clock import Clock
from engine.core.errors import EnginePaused, StageRefused
from engine.core.plans import Span
from engine.node.herald import Herald
from engine.node.shift import Shift
from engine.node.tasks import end
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder

_COVER_LIMIT_S: Final = 120.0
"""How long new blocks wait, loaded, for others to take over the old ones."""
_COVER_CHECK_S: Final = 1.0

_T = TypeVar("_T")

Prepare = Callable[[], Awaitable[LoadOrder]]
"""Gets other blocks' weights ready."""
IsCovered = Callable[[], Awaitable[bool]]
"""Whether others serve what we would leave."""


class Movable(Protocol):
    """A stage, as a move sees it; `engine.node.stage_runner.StageRunner` is it."""

    order: LoadOrder
    herald: Herald

    def lead_with(self, shift: Shift, order: LoadOrder) -> Shift | None:
        """Announce these blocks, which are loaded, from now on; returns what serves the old ones."""
        ...

    def drain_for(self, span: Span) -> None:
        """Say that the present blocks are given up for these."""
        ...

    async def load_instead(self, order: LoadOrder) -> None:
        """Load these in place of the present ones, or those again if that fails."""
        ...


class Moves:
    """The moves of one stage, one at a time.

    Args:
        stage: Moves.
        handler: Serves.
        clock: The time.
    """

    def __init__(self, stage: Movable, handler: StageHandler, clock: Clock) -> None:
        self._stage = stage
        self._handler = handler
        self._clock = clock
        self._moving: asyncio.Task[Any] | None = None
        self._retiring: asyncio.Task[None] | None = None

    async def move(self, prepare: Prepare, is_covered: IsCovered, *, standby: bool) -> None:
        """Serve other blocks, and the present ones until nobody needs them here.

        Raises:
            EngineError: We stay where we are; the text says why.
        """
        if standby:
            await self._until_paused(self._bring_up(prepare, is_covered))
            if self._retiring is not None:
                await asyncio.wait({self._retiring})
        else:
            order = await self._until_paused(self._give_up(prepare, is_covered))
            await self._stage.load_instead(order)

    async def cancel(self) -> None:
        """End a move that has not come to its end; blocks that are served already stay."""
        await end(self._moving)

    async def end(self) -> None:
        """Do so, and serve the old blocks of one that has come there no longer."""
        await self.cancel()
        await end(self._retiring)
        self._retiring = None

    async def _until_paused(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do what a pause may end at any moment."""
        moving = self._moving = asyncio.create_task(work, name="move")
        try:
            await asyncio.wait({moving})
        finally:
            await end(moving)
            self._moving = None
        if moving.cancelled():
            raise EnginePaused("The stage was paused, or began again, before it could move.")
        result: _T = moving.result()
        return result

    async def _bring_up(self, prepare: Prepare, is_covered: IsCovered) -> None:
        order = await prepare()
        shift = await Shift.start(self._handler, order, lambda done, total: None)
        try:
            await self._await_cover(shift, is_covered)
        except BaseException:
            await shift.stop()
            raise
        # Nothing is awaited from here on: who pauses finds the old blocks, or the new ones.
        old = self._stage.lead_with(shift, order)
        if old is not None:
            self._retiring = asyncio.create_task(self._retire(old), name="retire")

    async def _await_cover(self, shift: Shift, is_covered: IsCovered) -> None:
        until_s = self._clock.monotonic_s() + _COVER_LIMIT_S
        while not await is_covered():
            if self._clock.monotonic_s() > until_s:
                raise self._needed()
            await asyncio.wait({shift.serving}, timeout=_COVER_CHECK_S)
            if shift.serving.done():
                break
        if shift.serving.done():
            await shift.serving  # raises what ended it

    async def _retire(self, old: Shift) -> None:
        """Serve the old blocks until everybody knows the new ones, and its sessions are gone."""
        try:
            await self._stage.herald.is_heard()
            await self._handler.retire(old.order)
        finally:
            await old.stop()

    async def _give_up(self, prepare: Prepare, is_covered: IsCovered) -> LoadOrder:
        if not await is_covered():
            raise self._needed()
        order = await prepare()
        if not await is_covered():  # that may have taken long
            raise self._needed()
        self._stage.drain_for(order.span)
        await self._handler.drain()
        return order

    def _needed(self) -> StageRefused:
        return StageRefused(
            f"Blocks {self._stage.order.span} are not given up, because nobody else serves all of "
            "them."
        )
