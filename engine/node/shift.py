"""One worker with its blocks: from loading to its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from engine.core.errors import WorkerFailed
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder, WorkerProcess


class Shift:
    """Serves what `order` says until it is stopped, or the worker ends by itself."""

    def __init__(self, handler: StageHandler, worker: WorkerProcess, order: LoadOrder) -> None:
        self.order = order
        self._worker = worker
        self.serving = asyncio.create_task(handler.serve(worker, order), name="serving")
        """Ends when the worker does, with what has happened to it."""

    @classmethod
    async def start(
        cls, handler: StageHandler, order: LoadOrder, on_progress: Callable[[float, float], None]
    ) -> Shift:
        """Load the blocks and begin to serve.

        Raises:
            EngineError: The blocks cannot be loaded, or the process ended.
        """
        worker = await WorkerProcess.start(
            order, on_progress=on_progress, on_open_failed=handler.open_failed
        )
        shift = cls(handler, worker, order)
        try:
            await asyncio.sleep(0)  # the handler takes over before anyone hears of us
        except BaseException:
            await shift.stop()
            raise
        return shift

    @property
    def worker_pid(self) -> int:
        """The worker's process id."""
        return self._worker.pid

    async def stop(self) -> None:
        """End the worker now. Its memory is free when this returns."""
        self.serving.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError, WorkerFailed):
                await self.serving
        finally:
            await self._worker.stop()
