"""What becomes of answered rows: they are committed in groups, then results files grow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from engine.core.errors import DiskFull, EngineError
from engine.jobs.records import Job, Outcome
from engine.jobs.store import JobStore
from engine.jobs.work import Work
from engine.localapi.jobs import JobState

logger = logging.getLogger(__name__)

RETRY_S: Final = 5.0
"""A full disk is tried again this often."""
ACTIVE: Final = (JobState.QUEUED, JobState.RUNNING)
_MAX_UNCOMMITTED: Final = 256
"""Answers may come faster than a slow disk takes them; memory shall not grow with them."""


class Settling:
    """Outcomes on their way to the store and into results files.

    Args:
        store: Where they are committed.
        works: The jobs that are worked on, by key; whoever owns them changes them.
        on_change: Told each job of which something changed.
        on_room: Told when more outcomes can be taken.
    """

    def __init__(
        self,
        store: JobStore,
        works: Mapping[int, Work],
        on_change: Callable[[Job], None],
        on_room: Callable[[], None],
    ) -> None:
        self._store = store
        self._works = works
        self._on_change = on_change
        self._on_room = on_room
        self._finished: list[tuple[Work, Outcome]] = []
        self._to_commit = asyncio.Event()
        self.trouble = ""
        """Why nothing can be committed, as a sentence; empty while all goes well."""

    @property
    def is_behind(self) -> bool:
        """Whether the disk takes nothing, or so much waits for it, that no more should be asked."""
        return bool(self.trouble) or len(self._finished) >= _MAX_UNCOMMITTED

    def add(self, work: Work, outcome: Outcome) -> None:
        """Commit an outcome soon."""
        work.uncommitted += 1
        work.settled.clear()
        self._finished.append((work, outcome))
        self._to_commit.set()

    async def run(self) -> None:
        """Commit until cancelled."""
        while True:
            await self._to_commit.wait()
            self._to_commit.clear()
            group = list(self._finished)
            try:
                jobs = await self._store.complete([outcome for _, outcome in group])
            except EngineError as error:
                logger.warning("outcomes wait for the disk: %s", error)
                await self._wait_for_the_disk(str(error))
                continue
            del self._finished[: len(group)]
            self.trouble = ""
            self._on_room()
            for work, _ in group:
                work.uncommitted -= 1
                if not work.uncommitted:
                    work.settled.set()
            for job in jobs:
                at_work = self._works.get(job.key)
                if at_work is not None:
                    at_work.job = job
                    await self.write_results(at_work)
                    self._on_change(job)

    async def write_results(self, work: Work) -> None:
        """Let the results file of a job grow; what prevents that is told by the job."""
        if work.output is None:
            return
        try:
            await work.output.advance()
            work.output_trouble = ""
        except DiskFull as error:
            work.output_trouble = str(error)
            loop = asyncio.get_running_loop()
            loop.call_later(RETRY_S, self._try_results_again, work)
        except EngineError as error:
            logger.warning("a job pauses: %s", error)
            if work.job.state in ACTIVE:
                work.job = await self._store.move(
                    work.job.key, set(ACTIVE), state=JobState.PAUSED, reason=str(error)
                )

    def clear(self) -> None:
        """Forget what is not committed: its rows are pending in the store."""
        self._finished.clear()

    async def _wait_for_the_disk(self, text: str) -> None:
        self.trouble = text
        for work in self._works.values():
            self._on_change(work.job)
        await asyncio.sleep(RETRY_S)
        self._to_commit.set()

    def _try_results_again(self, work: Work) -> None:
        if self._works.get(work.job.key) is work:
            work.output_trouble = ""
            self._on_change(work.job)
