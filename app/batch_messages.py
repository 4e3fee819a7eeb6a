"""What can happen to batches and in their window, as frozen values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.localapi.jobs import JobInfo, JobPreview, JobPreviewRequest, JobRows


@dataclass(frozen=True, slots=True)
class PageWanted:
    """Which rows of a job: a page of those, in input order."""

    job: str
    only_failed: bool
    page: int
    """Counted from 0."""
    version: tuple[object, ...]
    """What was known of the job when they were asked for; see `batch_state.version_of`."""


TakeBack = Literal["uncancel", "unretry", "restore"]


@dataclass(frozen=True, slots=True)
class JobUndo:
    """What was done to a job and can be taken back."""

    job: str
    name: str
    order: TakeBack
    """What takes it back."""


@dataclass(frozen=True, slots=True)
class JobsFollowed:
    """The stream of changes has begun; all jobs that the engine has will follow."""


@dataclass(frozen=True, slots=True)
class JobsArrived:
    """Jobs that are new or have changed, and those that are gone."""

    jobs: tuple[JobInfo, ...]
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobsLost:
    """Changes are not heard of at the moment."""

    reason: str


@dataclass(frozen=True, slots=True)
class JobChosen:
    """The person looks at a job; None: at the form for a new one."""

    job: str | None


@dataclass(frozen=True, slots=True)
class FailedWanted:
    """Whether only failed rows shall be shown."""

    only_failed: bool


@dataclass(frozen=True, slots=True)
class RowsArrived:
    """A page."""

    wanted: PageWanted
    rows: JobRows


@dataclass(frozen=True, slots=True)
class RowsFailed:
    """It did not come."""

    wanted: PageWanted
    reason: str


@dataclass(frozen=True, slots=True)
class PreviewAsked:
    """The person has described an input; None: there is none any more."""

    wanted: JobPreviewRequest | None


@dataclass(frozen=True, slots=True)
class JobPreviewArrived:
    """The first rows of the input."""

    wanted: JobPreviewRequest
    preview: JobPreview


@dataclass(frozen=True, slots=True)
class JobPreviewFailed:
    """They cannot be shown."""

    wanted: JobPreviewRequest
    reason: str


@dataclass(frozen=True, slots=True)
class JobAsked:
    """A new job, or an order about one, is on its way."""


@dataclass(frozen=True, slots=True)
class JobCreated:
    """The engine has taken a new job."""

    job: JobInfo


@dataclass(frozen=True, slots=True)
class JobSettled:
    """The engine has obeyed."""

    job: JobInfo
    undo: JobUndo | None = None


@dataclass(frozen=True, slots=True)
class JobDeleted:
    """The engine has put a job into the trash."""

    undo: JobUndo


@dataclass(frozen=True, slots=True)
class JobUndone:
    """The engine has taken an order back."""

    job: JobInfo


@dataclass(frozen=True, slots=True)
class JobUndoExpired:
    """The last order stays."""


@dataclass(frozen=True, slots=True)
class ResultsSaved:
    """The results of a job are in the file that the person chose."""


@dataclass(frozen=True, slots=True)
class JobRefused:
    """The engine has not obeyed."""

    reason: str


@dataclass(frozen=True, slots=True)
class NewsRead:
    """The person has seen that a batch has ended."""


BatchMessage = (
    JobsFollowed
    | JobsArrived
    | JobsLost
    | JobChosen
    | FailedWanted
    | RowsArrived
    | RowsFailed
    | PreviewAsked
    | JobPreviewArrived
    | JobPreviewFailed
    | JobAsked
    | JobCreated
    | JobSettled
    | JobDeleted
    | JobUndone
    | JobUndoExpired
    | ResultsSaved
    | JobRefused
    | NewsRead
)
