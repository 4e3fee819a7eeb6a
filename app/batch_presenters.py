"""Batches as lists, words and controls. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from app.batch_form_presenters import FormView, form_view, problem_words
from app.batch_messages import JobUndo
from app.batch_state import RowPage, chosen_job, known_rows, version_of
from app.presenters import Action
from app.state import AppState
from app.words import Tr, counted, day_words, number
from engine.localapi.jobs import (
    ENDED_STATES,
    PAUSED_BY_PERSON,
    JobInfo,
    JobState,
    RowState,
)

PRIORITIES = (-10, 0, 10)
"""What the three choices of the window mean."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A batch in the list."""

    id: str
    title: str
    detail: str
    share: float | None
    """How much is done, 0 to 1; None: there is nothing to go on with."""
    is_bad: bool


@dataclass(frozen=True, slots=True)
class RowsView:
    """The table of rows: what is known, and under which version of the job."""

    job: str | None
    only_failed: bool
    count: int
    version: tuple[object, ...]
    pages: tuple[RowPage, ...]
    states: tuple[tuple[RowState, str], ...]
    """What each state is called."""


@dataclass(frozen=True, slots=True)
class JobView:
    """The batch that is looked at."""

    id: str
    title: str
    state: str
    detail: str
    """What it waits for or why it has failed; may be empty."""
    share: float
    facts: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    problems_title: str
    start: Action
    pause: Action
    resume: Action
    retry: Action
    cancel: Action
    delete: Action
    results: Action
    """Shows the file with them, or saves one where there is none."""
    output_path: str | None
    priority: int | None
    """Index in `PRIORITIES`; None: another one."""
    priority_label: str
    can_change_priority: bool


@dataclass(frozen=True, slots=True)
class BatchView:
    """The window of batches."""

    lines: tuple[JobLine, ...]
    chosen: str | None
    note: str
    """Why the list is empty or old; empty when it is not."""
    refusal: str
    undo: str
    """What was done and can be taken back, as a sentence; empty while there is nothing."""
    can_undo: bool
    news: str
    """The batch that has ended, as a sentence."""
    news_job: str | None
    job: JobView | None
    rows: RowsView
    form: FormView


def batch_view(state: AppState, now: datetime, tr: Tr) -> BatchView:
    """The batches; `now` carries the local time zone."""
    batches = state.batches
    job = chosen_job(batches)
    news = batches.news if batches.news is not None and batches.news.id != batches.chosen else None
    return BatchView(
        lines=tuple(_line(one, now, tr) for one in batches.jobs),
        chosen=None if job is None else job.id,
        note=_note(state, tr),
        refusal=batches.refusal if job is not None else "",
        undo="" if batches.undo is None else undo_words(batches.undo, tr),
        can_undo=state.linked and not batches.busy,
        news="" if news is None else news_words(news, tr),
        news_job=None if news is None else news.id,
        job=None if job is None else _job(job, state, tr),
        rows=RowsView(
            job=None if job is None else job.id,
            only_failed=batches.only_failed,
            count=known_rows(batches),
            version=() if job is None else version_of(job),
            pages=batches.pages,
            states=tuple((one, _row_state(one, tr)) for one in RowState),
        ),
        form=form_view(batches, linked=state.linked, tr=tr),
    )


def news_words(job: JobInfo, tr: Tr) -> str:
    """What has become of a batch: `“Articles” is done: 120 rows answered, 3 failed.`."""
    if job.state is JobState.FAILED:
        why = job.reason or tr("its input cannot be used.")
        return tr("“{name}” has failed: {reason}").format(name=job.name, reason=why)
    done = counted(job.done_rows, tr("{n} row answered|{n} rows answered"), tr)
    if job.failed_rows:
        failed = counted(job.failed_rows, tr("{n} failed|{n} failed"), tr)
        done = tr("{done}, {failed}").format(done=done, failed=failed)
    return tr("“{name}” is done: {what}.").format(name=job.name, what=done)


def undo_words(undo: JobUndo, tr: Tr) -> str:
    """What was done to a batch: `“Articles” was cancelled.`."""
    match undo.order:
        case "restore":
            text = tr("“{name}” is in the trash.")
        case "uncancel":
            text = tr("“{name}” was cancelled.")
        case "unretry":
            text = tr("The failed rows of “{name}” are asked again.")
        case _:
            assert_never(undo.order)
    return text.format(name=undo.name)


def eta_words(low_s: float, high_s: float, tr: Tr) -> str:
    """`about 3 min`, `12–18 min`, `1.5–2 h`: how long it will take yet."""
    for unit_s, words, digits in (
        (86_400.0, tr("{n} d"), 1),
        (3600.0, tr("{n} h"), 1),
        (60.0, tr("{n} min"), 0),
        (1.0, tr("{n} s"), 0),
    ):
        if high_s >= 2 * unit_s or unit_s == 1.0:
            low, high = (_rounded(value / unit_s, digits, tr) for value in (low_s, high_s))
            if low == high:
                return tr("about {time}").format(time=words.format(n=high))
            return words.format(n=f"{low}–{high}")
    raise AssertionError("a second is the last unit")


def _rounded(value: float, decimals: int, tr: Tr) -> str:
    """Without a decimal that says nothing."""
    value = round(value, decimals)
    return number(value, tr, 0 if value == int(value) else decimals)


def _note(state: AppState, tr: Tr) -> str:
    if not state.linked:
        return tr("The engine does not answer; batches go on when it runs again.")
    if state.batches.lost:
        return state.batches.lost
    if not state.batches.listed:
        return tr("Asking the engine…")
    return "" if state.batches.jobs else tr("There are no batches yet.")


def _line(job: JobInfo, now: datetime, tr: Tr) -> JobLine:
    goes_on = job.state not in ENDED_STATES
    if goes_on and job.state not in (JobState.VALIDATING, JobState.REVIEW):
        detail = f"{_state(job, tr)}, {number(_rows_done(job), tr)} / {number(job.total_rows, tr)}"
    else:
        detail = _state(job, tr)
    if not goes_on:
        detail += f", {day_words(job.ended_at or job.created_at, now, tr)}"
    return JobLine(
        id=job.id,
        title=job.name,
        detail=detail,
        share=_share(job) if goes_on and job.total_rows else None,
        is_bad=job.state in (JobState.FAILED, JobState.REVIEW),
    )


def _job(job: JobInfo, state: AppState, tr: Tr) -> JobView:
    free = state.linked and not state.batches.busy
    ended = job.state in ENDED_STATES
    works = job.state in (JobState.QUEUED, JobState.RUNNING)
    priority = PRIORITIES.index(job.priority) if job.priority in PRIORITIES else None
    return JobView(
        id=job.id,
        title=job.name,
        state=_state(job, tr),
        detail=_detail(job, tr),
        share=_share(job),
        facts=_facts(job, tr),
        problems=tuple(problem_words(one, tr) for one in job.problems),
        problems_title=_problems_title(job, tr),
        start=Action(tr("&Start without these rows"), job.state is JobState.REVIEW, free),
        pause=Action(tr("&Pause"), works, free),
        resume=Action(tr("&Resume"), job.state is JobState.PAUSED, free),
        retry=Action(
            tr("Re&try failed rows"), job.state is JobState.COMPLETED and job.failed_rows > 0, free
        ),
        cancel=Action(tr("&Cancel"), not ended, free),
        delete=Action(tr("&Delete"), ended, free),
        results=_results(job, tr, free=free),
        output_path=job.output_path,
        priority=priority,
        priority_label=tr("Priority {n}").format(n=job.priority),
        can_change_priority=free and not ended,
    )


def _results(job: JobInfo, tr: Tr, *, free: bool) -> Action:
    if job.output_path is None:
        return Action(tr("Sa&ve results…"), _rows_done(job) > 0, free)
    return Action(tr("Sho&w results"), job.done_rows > 0)


def _problems_title(job: JobInfo, tr: Tr) -> str:
    if not job.problems:
        return ""
    if job.state is JobState.REVIEW:
        text = tr("{n} of {total} rows cannot be asked|{n} of {total} rows cannot be asked")
    elif job.state is JobState.FAILED:
        return tr("What is wrong with the input")
    else:
        text = tr("{n} of {total} rows could not be asked|{n} of {total} rows could not be asked")
    title = counted(job.num_problems, text, tr, total=number(job.total_rows, tr))
    if job.num_problems > len(job.problems):
        title += tr("; the first {n}:").format(n=len(job.problems))
    return title


def _facts(job: JobInfo, tr: Tr) -> tuple[tuple[str, str], ...]:
    rows = tr("{done} of {total} answered").format(
        done=number(job.done_rows, tr), total=number(job.total_rows, tr)
    )
    if job.state is JobState.VALIDATING:
        rows = tr("{n} read so far").format(n=number(job.total_rows, tr))
    if job.failed_rows:
        rows += ", " + counted(job.failed_rows, tr("{n} failed|{n} failed"), tr)
    if job.running_rows:
        rows += ", " + tr("{n} being answered").format(n=number(job.running_rows, tr))
    facts = [(tr("Rows"), rows)]
    if job.state is JobState.RUNNING:
        eta = tr("not known yet")
        if job.eta_low_s is not None and job.eta_high_s is not None:
            eta = eta_words(job.eta_low_s, job.eta_high_s, tr)
        facts.append((tr("Time left"), eta))
        facts.append((tr("Speed"), tr("{n} tokens/s").format(n=number(job.tokens_per_s, tr, 1))))
    if job.completion_tokens:
        tokens = tr("{read} read, {written} written").format(
            read=number(job.prompt_tokens, tr), written=number(job.completion_tokens, tr)
        )
        facts.append((tr("Tokens"), tokens))
    if job.output_path is not None:
        facts.append((tr("Results"), job.output_path))
    return tuple(facts)


def _state(job: JobInfo, tr: Tr) -> str:
    match job.state:
        case JobState.VALIDATING:
            return tr("Checking the rows")
        case JobState.REVIEW:
            return tr("Some rows cannot be asked")
        case JobState.QUEUED:
            return tr("Waiting for its turn")
        case JobState.RUNNING:
            return tr("Running")
        case JobState.PAUSED:
            return tr("Paused")
        case JobState.COMPLETED:
            return tr("Done, with failed rows") if job.failed_rows else tr("Done")
        case JobState.FAILED:
            return tr("Failed")
        case JobState.CANCELLED:
            return tr("Cancelled")
        case _:
            assert_never(job.state)


def _row_state(state: RowState, tr: Tr) -> str:
    match state:
        case RowState.PENDING:
            return tr("Waiting")
        case RowState.RUNNING:
            return tr("Being answered")
        case RowState.DONE:
            return tr("Done")
        case RowState.FAILED:
            return tr("Failed")
        case _:
            assert_never(state)


def _detail(job: JobInfo, tr: Tr) -> str:
    """What it waits for, or why it has failed: troubles as the engine tells them."""
    if job.reason == PAUSED_BY_PERSON:
        return tr("Paused until you resume.")
    if job.state is JobState.REVIEW:
        return tr(
            "Nothing has been asked yet. Start without these rows (each gets an error in the "
            "results), or cancel, correct the file and begin again."
        )
    return job.reason


def _rows_done(job: JobInfo) -> int:
    return job.done_rows + job.failed_rows


def _share(job: JobInfo) -> float:
    """Below 0 while the end is unknown."""
    if job.state is JobState.VALIDATING:
        return -1.0
    return _rows_done(job) / job.total_rows if job.total_rows else 0.0
