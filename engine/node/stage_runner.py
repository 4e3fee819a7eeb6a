"""Keeps this node's stage running while it is wanted: worker, crash back-off, announcements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum, auto

from engine.core.clock import Clock
from engine.core.errors import EngineError, EnginePaused, StageRefused, WorkerFailed
from engine.core.plans import Span
from engine.core.sentences import Sentence
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.localapi.schema import Progress
from engine.node.herald import Herald
from engine.node.moves import IsCovered, Moves, Prepare
from engine.node.shift import Shift
from engine.node.tasks import end
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder

logger = logging.getLogger(__name__)

MAX_CRASHES = 5
STEADY_S = 600.0
"""A worker that lived this long has recovered: earlier crashes are forgotten."""
MAX_BACKOFF_S = 30.0
ANNOUNCE_CHANGES_S = 2.0
"""Changes of free room are announced at most this often."""
ANNOUNCE_SPEED_S = 20.0
"""Changes of speed are."""


class Phase(Enum):
    """What the stage is doing."""

    LOADING = auto()
    ONLINE = auto()
    DRAINING = auto()
    PAUSED = auto()
    FAILED = auto()


class StageRunner:
    """One stage, from loading to pause and back."""

    def __init__(
        self,
        handler: StageHandler,
        herald: Herald,
        order: LoadOrder,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        """`on_change` is called when what `shoal status` shows has changed."""
        self._handler = handler
        self.herald = herald
        self.order = order
        self._clock = clock
        self._on_change = on_change
        self._shift: Shift | None = None
        self._previous: LoadOrder | None = None
        """What was served before, until what replaced it is."""
        self._serving: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._moves = Moves(self, handler, clock)
        self._changing = asyncio.Lock()
        """Held while the worker is ended or another begins, by who wants that."""
        self._loaded = asyncio.Event()
        """Cleared while the phase is LOADING."""
        self.phase = Phase.PAUSED
        self.reason = ""
        self.progress: Progress | None = None

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id while there is one."""
        return None if self._shift is None else self._shift.worker_pid

    def start(self) -> None:
        """Load and serve until stopped."""
        if self._serving is None or self._serving.done():
            self._set(Phase.LOADING, "")  # at once: nobody shall see that it was paused
            self._serving = asyncio.create_task(self._serve_forever(), name="stage")

    async def resume(self) -> None:
        """Serve again after a pause, or stay online if draining has not ended yet."""
        await self._cancel_drain()
        async with self._changing:
            if self.phase is Phase.DRAINING:
                await self._stop("The stage is starting again.", Phase.LOADING)
            self.start()

    async def pause(self, reason: str, *, finish_first: bool) -> None:
        """End the worker, at once or after the running sessions; withdraw the announcement."""
        await self._cancel_drain()
        await self._cancel_move()
        async with self._changing:
            if not finish_first or self.phase is not Phase.ONLINE:
                await self._stop(reason, Phase.PAUSED)
                return
            self._set(Phase.DRAINING, Sentence("Finishing running requests, then pausing."))
            self.announce(StageState.DRAINING)

        async def finish() -> None:
            await self._handler.drain()
            await self._stop(reason, Phase.PAUSED)

        self._draining = asyncio.create_task(finish(), name="drain")

    async def close(self) -> None:
        """Stop for good."""
        await self._cancel_drain()
        await self._cancel_move()
        async with self._changing:
            await self._stop("The engine is ending.", Phase.PAUSED)

    async def _stop(self, reason: str, phase: Phase) -> None:
        """End the worker now. Its memory is free when this returns."""
        self._handler.close(EnginePaused(reason))
        await self._end_work()
        self._set(phase, reason)
        await self.herald.withdraw()

    async def _end_work(self) -> None:
        await self._moves.end()
        await end(self._serving)
        self._serving = None

    async def _cancel_drain(self) -> None:
        if self._draining is not asyncio.current_task():
            await end(self._draining)
            self._draining = None

    # What others hear -----------------------------------------------------------------------

    def announce(self, state: StageState, next_span: Span | None = None) -> StageInfo:
        """Tell the swarm what we are, and where we are going; returns what was said."""
        self.herald.next_span = next_span
        return self.herald.tell(self.order.span, state)

    def info(self) -> StageInfo | None:
        """Our announcement as it is now; None while we have no part in the swarm."""
        states = {Phase.ONLINE: StageState.ONLINE, Phase.LOADING: StageState.JOINING}
        state = states.get(self.phase)
        return None if state is None else self.herald.info(self.order.span, state)

    def overlay(self, snapshot: SwarmSnapshot) -> SwarmSnapshot:
        """The swarm as the snapshot has it, with ourselves as we are now."""
        return self.herald.overlay(snapshot, self.info())

    # Moves ----------------------------------------------------------------------------------

    async def move(self, prepare: Prepare, is_covered: IsCovered, *, standby: bool) -> None:
        """Serve other blocks, and the present ones until nobody needs them here.

        Args:
            prepare: Gets the other blocks' weights ready.
            is_covered: Whether others serve what we would leave.
            standby: There is memory for both; otherwise the present ones are given up first.

        Raises:
            EngineError: We stay where we are; the text says why.
        """
        if self.phase is not Phase.ONLINE:
            raise EnginePaused("The stage stopped serving before it could move.")
        await self._moves.move(prepare, is_covered, standby=standby)

    def lead_with(self, shift: Shift, order: LoadOrder) -> Shift | None:
        """See `Movable`."""
        old, self._shift, self.order = self._shift, shift, order
        self._handler.lead_with(order)
        self.announce(StageState.ONLINE)
        self._on_change()
        return old

    def drain_for(self, span: Span) -> None:
        """See `Movable`."""
        self._set(
            Phase.DRAINING,
            Sentence("Finishing running requests, then moving to blocks {span}.", span=str(span)),
        )
        self.announce(StageState.DRAINING, span)

    async def load_instead(self, order: LoadOrder) -> None:
        """See `Movable`."""
        async with self._changing:
            if self.phase is not Phase.DRAINING:
                raise EnginePaused("The stage was paused, or began again, before it could move.")
            self._handler.close(EnginePaused(f"This stage is moving to blocks {order.span}."))
            await self._end_work()
            self._previous, self.order = self.order, order
            self.start()
        await self._loaded.wait()
        if self.order is not order:
            raise StageRefused(
                f"Blocks {order.span} could not be loaded, so this node has gone back to blocks "
                f"{self.order.span}; the log says why."
            )

    async def _cancel_move(self) -> None:
        await self._moves.cancel()
        if self.phase is Phase.DRAINING and self._draining is None:
            self._set(Phase.ONLINE, "")

    # The worker's life ----------------------------------------------------------------------

    async def _serve_forever(self) -> None:
        crashes = 0
        while True:
            started_s = self._clock.monotonic_s()
            self._set(Phase.LOADING, Sentence("Loading blocks {span}.", span=str(self.order.span)))
            self.announce(StageState.JOINING)
            try:
                await self._serve_once()
            except EngineError as error:
                if self._previous is not None:
                    logger.warning("back to blocks %s: %s", self._previous.span, error)
                    self.order, self._previous = self._previous, None
                    continue
                if not isinstance(error, WorkerFailed):
                    logger.error("The stage cannot run: %s", error)
                    await self._fail(str(error))
                    return
                logger.warning("%s", error)
                lived_s = self._clock.monotonic_s() - started_s
                crashes = 1 if lived_s > STEADY_S else crashes + 1
                if crashes >= MAX_CRASHES:
                    await self._fail(
                        f"The compute process failed {crashes} times in a row, so it is not started "
                        f"again; run `shoal doctor`, then resume. The last time: {error}"
                    )
                    return
            except Exception as error:
                logger.exception("the stage failed")
                await self._fail(
                    f"Something unexpected went wrong in the stage ({type(error).__name__}); see "
                    "the log, then resume."
                )
                return
            backoff_s = min(2.0 ** (crashes - 1), MAX_BACKOFF_S)
            self._set(
                Phase.LOADING,
                Sentence(
                    "The compute process crashed; starting again in {seconds} s.",
                    seconds=round(backoff_s),
                ),
            )
            self.announce(StageState.JOINING)
            await asyncio.sleep(backoff_s)

    async def _serve_once(self) -> None:
        try:
            self._shift = await Shift.start(self._handler, self.order, self._show_progress)
            self.progress, self._previous = None, None
            self._set(Phase.ONLINE, "")
            await self._announce_while_serving()
        finally:
            self.progress = None
            await self._moves.cancel()
            if self._shift is not None:
                shift, self._shift = self._shift, None
                await shift.stop()

    async def _announce_while_serving(self) -> None:
        announced: object = None
        due_s = 0.0
        while self._shift is not None:
            shift = self._shift
            if shift.serving.done():
                await shift.serving  # raises what ended it
            if self.phase is Phase.ONLINE:
                info = self.herald.info(self.order.span, StageState.ONLINE)
                now_s = self._clock.monotonic_s()
                # Changes of speeds can wait; that they are known, room, and ways to us cannot.
                told = (
                    info.decode_tokens_per_s > 0,
                    info.uplink_bytes_per_s > 0,
                    info.kv_free_tokens,
                    info.kv_ram_free_tokens,
                    info.addresses,
                    info.relay,
                )
                if told != announced or now_s >= due_s:
                    self.herald.tell(self.order.span, StageState.ONLINE)
                    announced, due_s = told, now_s + ANNOUNCE_SPEED_S
            await asyncio.wait({shift.serving}, timeout=ANNOUNCE_CHANGES_S)

    def _show_progress(self, done: float, total: float) -> None:
        what = Sentence("Loading blocks {span}", span=str(self.order.span))
        self.progress = Progress.of(what, done, total, "tensors")
        self._on_change()

    async def _fail(self, reason: str) -> None:
        self._handler.close(EnginePaused(reason))
        self._set(Phase.FAILED, reason)
        await self.herald.withdraw()

    def _set(self, phase: Phase, reason: str) -> None:
        self.phase, self.reason = phase, reason
        if phase is Phase.LOADING:
            self._loaded.clear()
        else:
            self._loaded.set()
        self._on_change()
