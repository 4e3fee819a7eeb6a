"""`--stages N`: further engines on this machine, each with a home of its own, as loopback peers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.core.errors import WorkerFailed
from engine.core.plans import Span
from engine.localapi.running import Home

logger = logging.getLogger(__name__)


class LocalStages:
    """The further engines; they end with this one, however it ends."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._processes: list[asyncio.subprocess.Process] = []
        self._watchers: list[asyncio.Task[None]] = []
        self._broken = asyncio.Event()

    @property
    def logs_dir(self) -> Path:
        """Their homes, each with its output and log."""
        return self._home.state_dir / "stages"

    async def start(self, invite: str, spans: Sequence[Span], extra: Sequence[str]) -> None:
        """Start one engine per span; they join by `invite` and load on their own.

        Raises:
            WorkerFailed: A process could not be started.
        """
        for number, span in enumerate(spans, start=2):
            root = self.logs_dir / str(number)
            root.mkdir(parents=True, exist_ok=True)
            log = root / "output.log"
            arguments = [
                "engine", "--invite", invite, "--blocks", f"{span.start}:{span.end}",
                "--listen", "/ip4/127.0.0.1/tcp/0", "--parent-pid", str(os.getpid()), *extra,
            ]  # fmt: skip
            environment = {
                **os.environ,
                "SHOAL_HOME": str(root),
                "SHOAL_MODELS": str(self._home.models_dir),
            }
            try:
                with log.open("wb") as output:
                    process = await asyncio.create_subprocess_exec(
                        sys.executable,
                        "-m",
                        "engine",
                        *arguments,
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        env=environment,
                    )
            except OSError as error:
                raise WorkerFailed(f"A further stage could not be started: {error}.") from error
            self._processes.append(process)
            self._watchers.append(asyncio.create_task(self._watch(process)))
            logger.info("stage %d of blocks %s: process %d", number, span, process.pid)

    async def wait_broken(self) -> None:
        """Return when one of them has ended, which it should not; never when there are none."""
        await self._broken.wait()

    async def stop(self) -> None:
        """End them all and wait."""
        for watcher in self._watchers:
            watcher.cancel()
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self._processes:
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()
        self._processes.clear()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        logger.error("local stage %d has ended (%s)", process.pid, process.returncode)
        self._broken.set()
