"""One job that is being worked on: what the runner remembers of it between two rows."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from engine.core.errors import EngineError, WorkerFailed
from engine.jobs.output import ResultFile
from engine.jobs.pace import Pace
from engine.jobs.records import Job, Row
from engine.localapi.jobs import JobState

MAX_STRIKES = 5
"""A row that failed so often while others were answered is to blame itself."""


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class Work:
    """A job that has rows to be answered."""

    job: Job
    output: ResultFile | None = None
    pace: Pace = field(default_factory=Pace)
    rows: deque[Row] = field(default_factory=deque)
    """Read from the store, not begun."""
    last_read: int = -1
    """Number of the last row that was read."""
    asked: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """Rows that are being answered."""
    uncommitted: int = 0
    """Rows that have an outcome which is not in the store yet."""
    settled: asyncio.Event = field(default_factory=_set_event)
    """Set while there are none."""
    strikes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of rows that have failed: how often, and after how many answers the last time."""
    output_trouble: str = ""
    """Why the results file is behind."""

    @property
    def may_start(self) -> bool:
        """Whether its next row may be asked."""
        return self.job.state in (JobState.QUEUED, JobState.RUNNING) and not self.output_trouble

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is on the way."""
        return not self.asked and not self.uncommitted

    def put_back(self, row: Row, error: EngineError, successes: int) -> bool:
        """Let a row be asked again; False when it has failed too often.

        Args:
            row: It has just failed.
            error: Why.
            successes: Rows that have been answered so far. A failure counts when others were
                answered since the one before, or when it took the compute process along: else the
                swarm is to blame.
        """
        strikes, then = self.strikes.get(row.number, (0, -1))
        if successes > then or isinstance(error, WorkerFailed):
            strikes += 1
        self.strikes[row.number] = (strikes, successes)
        if strikes >= MAX_STRIKES:
            return False
        self.rows.appendleft(row)
        return True
