"""What the app knows of batches, and how each message changes it. Pure.

A job may have 50,000 rows. The app holds a few pages around the one that is looked at; the engine has
the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from app.batch_messages import (
    BatchMessage,
    FailedWanted,
    JobAsked,
    JobChosen,
    JobCreated,
    JobDeleted,
    JobPreviewArrived,
    JobPreviewFailed,
    JobRefused,
    JobsArrived,
    JobSettled,
    JobsFollowed,
    JobsLost,
    JobUndo,
    JobUndoExpired,
    JobUndone,
    NewsRead,
    PageWanted,
    PreviewAsked,
    ResultsSaved,
    RowsArrived,
    RowsFailed,
)
from engine.localapi.jobs import (
    ENDED_STATES,
    JobInfo,
    JobPreview,
    JobPreviewRequest,
    JobRow,
    JobState,
)

PAGE_ROWS = 100
MAX_PAGES = 8
"""Held at once; a page takes some 50 KB."""
FIRST_ROW = -1
"""What the first page comes after."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows of the job that is looked at."""

    page: int
    version: tuple[object, ...]
    rows: tuple[JobRow, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Batches:
    """Everything that the window of batches draws; errors are sentences, empty while there is none."""

    listed: bool = False
    """Whether all jobs are known."""
    lost: str = ""
    """Why changes are not heard of."""
    jobs: tuple[JobInfo, ...] = ()
    """Newest first."""
    chosen: str | None = None
    only_failed: bool = False
    pages: tuple[RowPage, ...] = ()
    """The one that came last is the last."""
    cursors: tuple[int, ...] = (FIRST_ROW,)
    """Number of the row before each page; where only failed rows are shown, known as far as pages
    have come."""
    preview_wanted: JobPreviewRequest | None = None
    preview: JobPreview | None = None
    """Of what is wanted, or of what was wanted before until it comes."""
    preview_error: str = ""
    busy: bool = False
    refusal: str = ""
    undo: JobUndo | None = None
    """The last order that can be taken back, for a while."""
    news: JobInfo | None = None
    """The batch that has ended last and has not been looked at since."""


def version_of(job: JobInfo) -> tuple[object, ...]:
    """Changes whenever a row of the job may have changed."""
    return job.state, job.total_rows, job.done_rows, job.failed_rows, job.running_rows


def chosen_job(batches: Batches) -> JobInfo | None:
    """The job that is looked at."""
    return next((job for job in batches.jobs if job.id == batches.chosen), None)


def after_row(batches: Batches, page: int) -> int | None:
    """Number of the row before a page; None while it is unknown."""
    if not batches.only_failed:
        return page * PAGE_ROWS + FIRST_ROW
    return batches.cursors[page] if page < len(batches.cursors) else None


def known_rows(batches: Batches) -> int:
    """How many rows the table has; failed ones become known page by page."""
    job = chosen_job(batches)
    if job is None:
        return 0
    if not batches.only_failed:
        return job.total_rows
    return min(job.failed_rows, len(batches.cursors) * PAGE_ROWS)


def apply_to_batches(batches: Batches, message: BatchMessage) -> Batches:
    """The state after `message`."""
    match message:
        case JobsFollowed():
            return replace(batches, listed=False, lost="")
        case JobsArrived(jobs, deleted):
            return _with_jobs(batches, jobs, deleted)
        case JobsLost(reason):
            return replace(batches, lost=reason)
        case JobChosen(job):
            news = batches.news
            seen = news is not None and news.id == job
            return _without_rows(
                replace(batches, chosen=job, refusal="", news=None if seen else news)
            )
        case FailedWanted(only_failed):
            return _without_rows(replace(batches, only_failed=only_failed))
        case RowsArrived(wanted, found):
            return _with_page(
                batches, wanted, RowPage(wanted.page, wanted.version, found.rows), found.next_after
            )
        case RowsFailed(wanted, reason):
            return _with_page(
                batches, wanted, RowPage(wanted.page, wanted.version, (), reason), None
            )
        case PreviewAsked(asked):
            return replace(
                batches,
                preview_wanted=asked,
                preview=None if asked is None else batches.preview,
                preview_error="",
                refusal="",
            )
        case JobPreviewArrived(asked, preview):
            if asked != batches.preview_wanted:
                return batches  # the person has described another one meanwhile
            return replace(batches, preview=preview, preview_error="")
        case JobPreviewFailed(asked, reason):
            if asked != batches.preview_wanted:
                return batches
            return replace(batches, preview=None, preview_error=reason)
        case JobAsked():
            return replace(batches, busy=True, refusal="")
        case JobCreated(job):
            known = any(
                one.id == job.id for one in batches.jobs
            )  # the stream was faster, and newer
            made = _with_jobs(replace(batches, busy=False), () if known else (job,), ())
            return _without_rows(replace(made, chosen=job.id))
        case JobSettled(job, undo):
            settled = replace(batches, busy=False, refusal="", undo=undo or batches.undo)
            return _with_jobs(settled, (job,), ())
        case JobDeleted(undo):
            settled = replace(batches, busy=False, refusal="", undo=undo)
            return _with_jobs(settled, (), (undo.job,))
        case JobUndone(job):
            settled = replace(batches, busy=False, refusal="", undo=None)
            return _without_rows(replace(_with_jobs(settled, (job,), ()), chosen=job.id))
        case JobUndoExpired():
            return replace(batches, undo=None)
        case ResultsSaved():
            return replace(batches, busy=False, refusal="")
        case JobRefused(reason):
            return replace(batches, busy=False, refusal=reason)
        case NewsRead():
            return replace(batches, news=None)
        case _:
            assert_never(message)


def _with_jobs(batches: Batches, jobs: Iterable[JobInfo], deleted: Iterable[str]) -> Batches:
    """With what is new; the first list after the stream has begun is the whole of them."""
    known = {job.id: job for job in batches.jobs}
    changed = {job.id: job for job in jobs}
    kept = (known if batches.listed else {}) | changed
    for gone in deleted:
        kept.pop(gone, None)
    news = batches.news
    for job in changed.values():
        before = known.get(job.id)
        if before is not None and _has_ended(before, job):
            news = job
    after = replace(
        batches,
        listed=True,
        lost="",
        jobs=tuple(sorted(kept.values(), key=lambda job: (-job.created_at, job.id))),
        news=news if news is None or news.id in kept else None,
    )
    if after.chosen is not None and after.chosen not in kept:
        return _without_rows(replace(after, chosen=None))
    return after


def _has_ended(before: JobInfo, job: JobInfo) -> bool:
    """By itself: who cancels a batch need not be told."""
    ended = job.state in ENDED_STATES and job.state is not JobState.CANCELLED
    return ended and before.state not in ENDED_STATES


def _without_rows(batches: Batches) -> Batches:
    return replace(batches, pages=(), cursors=(FIRST_ROW,))


def _with_page(
    batches: Batches, wanted: PageWanted, page: RowPage, next_after: int | None
) -> Batches:
    if (wanted.job, wanted.only_failed) != (batches.chosen, batches.only_failed):
        return batches  # the person looks at other rows by now
    others = tuple(one for one in batches.pages if one.page != page.page)
    cursors = batches.cursors
    if wanted.only_failed and next_after is not None and page.page < len(cursors):
        moved = cursors[page.page + 1 : page.page + 2] != (next_after,)
        rest = () if moved else cursors[page.page + 2 :]
        cursors = (*cursors[: page.page + 1], next_after, *rest)
    return replace(batches, pages=(*others, page)[-MAX_PAGES:], cursors=cursors)
