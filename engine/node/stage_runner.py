"""Keeps this node's stage running while it is wanted: worker, crash back-off, announcements."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto

from engine import __version__
from engine.core.clock import Clock
from engine.core.errors import EngineError, EnginePaused, WorkerFailed
from engine.core.profiles import ModelSize
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.localapi.schema import Progress
from engine.planner.announced import block_times
from engine.protocol.frames import ELEMENT_BYTES
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder, WorkerProcess
from engine.swarm.announcer import Announcer
from engine.swarm.peer import SwarmPeer

logger = logging.getLogger(__name__)

MAX_CRASHES = 5
STEADY_S = 600.0
"""A worker that lived this long has recovered: earlier crashes are forgotten."""
MAX_BACKOFF_S = 30.0
ANNOUNCE_CHANGES_S = 2.0
"""Changes of free room are announced at most this often."""


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
        announcer: Announcer,
        peer: SwarmPeer,
        order: LoadOrder,
        max_blocks: int,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        """`max_blocks` fit here; `on_change` is called when what `shoal status` shows has changed."""
        self._handler = handler
        self._announcer = announcer
        self._peer = peer
        self.order = order
        self.max_blocks = max_blocks
        self._clock = clock
        self._on_change = on_change
        self._size = ModelSize.of(order.spec, ELEMENT_BYTES[order.dtype])
        self._serving: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._worker: WorkerProcess | None = None
        self.phase = Phase.PAUSED
        self.reason = ""
        self.progress: Progress | None = None

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id while there is one."""
        return None if self._worker is None else self._worker.pid

    def start(self) -> None:
        """Load and serve until stopped."""
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve_forever(), name="stage")

    async def resume(self) -> None:
        """Serve again after a pause, or stay online if draining has not ended yet."""
        await self._cancel_drain()
        if self.phase is Phase.DRAINING:
            await self.stop("The stage is starting again.", Phase.LOADING)
        self.start()

    async def pause(self, reason: str, *, finish_first: bool) -> None:
        """End the worker, at once or after the running sessions; withdraw the announcement."""
        await self._cancel_drain()
        if not finish_first or self.phase is not Phase.ONLINE:
            await self.stop(reason, Phase.PAUSED)
            return
        self._set(Phase.DRAINING, "Finishing running requests, then pausing.")
        self._announcer.update(self.info(StageState.DRAINING))

        async def finish() -> None:
            await self._handler.drain()
            await self.stop(reason, Phase.PAUSED)

        self._draining = asyncio.create_task(finish(), name="drain")

    async def stop(self, reason: str, phase: Phase) -> None:
        """End the worker now. Its memory is free when this returns."""
        self._handler.close(EnginePaused(reason))
        if self._serving is not None:
            self._serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
            self._serving = None
        self._set(phase, reason)
        await self._announcer.withdraw()

    async def close(self) -> None:
        """Stop for good."""
        await self._cancel_drain()
        await self.stop("The engine is ending.", Phase.PAUSED)

    def info(self, state: StageState) -> StageInfo:
        """Our announcement."""
        base_s, row_s = self._handler.pace.decode.base_s, self._handler.pace.decode.row_s
        step_s = base_s + row_s
        block_s, block_row_s = block_times(base_s, row_s, self.order.span, self._size)
        free, _ = self._handler.kv_tokens
        return StageInfo(
            peer=self._peer.peer_id,
            span=self.order.span,
            state=state,
            kv_free_tokens=free.device,
            kv_ram_free_tokens=free.ram,
            decode_tokens_per_s=1 / step_s if step_s else 0.0,
            decode_row_s=row_s,
            uplink_bytes_per_s=self._handler.uplink_bytes_per_s,
            addresses=self._peer.announce_addresses(),
            relay=self._peer.relays,
            version=__version__,
            max_blocks=self.max_blocks,
            block_s=block_s,
            block_row_s=block_row_s,
            sessions=self._handler.num_sessions,
        )

    def overlay(self, snapshot: SwarmSnapshot) -> SwarmSnapshot:
        """The swarm as the snapshot has it, with ourselves as we are now.

        Announcements travel for seconds; about ourselves we know at once.
        """
        others = tuple(stage for stage in snapshot.stages if stage.peer != self._peer.peer_id)
        states = {Phase.ONLINE: StageState.ONLINE, Phase.LOADING: StageState.JOINING}
        own = (self.info(states[self.phase]),) if self.phase in states else ()
        return replace(snapshot, stages=(*others, *own))

    async def _serve_forever(self) -> None:
        crashes = 0
        while True:
            started_s = self._clock.monotonic_s()
            self._set(Phase.LOADING, f"Loading blocks {self.order.span}.")
            self._announcer.update(self.info(StageState.JOINING))
            try:
                await self._serve_once()
            except WorkerFailed as error:
                logger.warning("%s", error)
                lived_s = self._clock.monotonic_s() - started_s
                crashes = 1 if lived_s > STEADY_S else crashes + 1
                if crashes >= MAX_CRASHES:
                    await self._fail(
                        f"The compute process ended {crashes} times in a row, so it is not started "
                        "again; run `shoal doctor`, then resume."
                    )
                    return
            except EngineError as error:
                logger.error("The stage cannot run: %s", error)
                await self._fail(str(error))
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
                Phase.LOADING, f"The compute process crashed; starting again in {backoff_s:.0f} s."
            )
            self._announcer.update(self.info(StageState.JOINING))
            await asyncio.sleep(backoff_s)

    async def _serve_once(self) -> None:
        try:
            self._worker = await WorkerProcess.start(
                self.order,
                on_progress=self._show_progress,
                on_open_failed=self._handler.open_failed,
            )
            self.progress = None
            serving = asyncio.create_task(self._handler.serve(self._worker, self.order))
            try:
                await asyncio.sleep(0)  # the handler takes over before anyone hears of us
                self._set(Phase.ONLINE, "")
                await self._announce_while(serving)
            finally:
                serving.cancel()
                with contextlib.suppress(asyncio.CancelledError, WorkerFailed):
                    await serving
        finally:
            self.progress = None
            if self._worker is not None:
                worker, self._worker = self._worker, None
                await worker.stop()

    async def _announce_while(self, serving: asyncio.Task[None]) -> None:
        announced: object = None
        while not serving.done():
            if self.phase is Phase.ONLINE:
                info = self.info(StageState.ONLINE)
                # Speeds are told with the next refresh; room and ways to us cannot wait.
                told = (info.kv_free_tokens, info.kv_ram_free_tokens, info.addresses, info.relay)
                if told != announced:
                    self._announcer.update(info)
                    announced = told
            await asyncio.wait({serving}, timeout=ANNOUNCE_CHANGES_S)
        await serving  # raises what ended it

    def _show_progress(self, done: float, total: float) -> None:
        self.progress = Progress(
            what=f"Loading blocks {self.order.span}", done=done, total=total, unit="tensors"
        )
        self._on_change()

    async def _fail(self, reason: str) -> None:
        self._handler.close(EnginePaused(reason))
        self._set(Phase.FAILED, reason)
        await self._announcer.withdraw()

    def _set(self, phase: Phase, reason: str) -> None:
        self.phase, self.reason = phase, reason
        self._on_change()

    async def _cancel_drain(self) -> None:
        if self._draining is not None and self._draining is not asyncio.current_task():
            self._draining.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._draining
            self._draining = None
