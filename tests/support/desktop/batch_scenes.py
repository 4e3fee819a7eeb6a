"""Batches in every state, for pictures and tests of their window."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from app.batch_messages import (
    JobChosen,
    JobDeleted,
    JobPreviewArrived,
    JobPreviewFailed,
    JobsArrived,
    JobSettled,
    JobUndo,
    PageWanted,
    PreviewAsked,
    RowsArrived,
)
from app.batch_presenters import batch_view
from app.batch_state import PAGE_ROWS, version_of
from app.messages import EngineStarting, EngineStopped, StatusArrived
from app.settings import Settings
from app.state import AppState
from app.windows.batch import BatchWindow
from engine.localapi.jobs import (
    JobInfo,
    JobPreview,
    JobPreviewRequest,
    JobProblem,
    JobRow,
    JobRows,
    PreviewRow,
    RowState,
)
from engine.localapi.running import Home
from tests.support.app_states import after, status
from tests.support.desktop.language import tr

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
FILE = JobPreviewRequest(input_path="/home/ada/articles.csv", template="Summarize: {text}")
ARTICLES = (
    ("The harbour", "The harbour of Oban was built in 1811 and has been widened twice since."),
    ("Herring", "Herring swim in shoals of up to a billion fish, some kilometres long."),
    ("Tides", "Twice a day the sea rises and falls; the moon does most of that."),
    ("Nets", ""),
    ("Lighthouses", "A lighthouse tells ships where the land begins."),
)


def job(job_id: str = "job_1", **fields: Any) -> JobInfo:
    """A batch that runs."""
    known = {
        "id": job_id, "name": "articles.csv", "state": "running", "input_name": "articles.csv",
        "output_path": "/home/ada/articles.results.csv", "created_at": NOW.timestamp() - 1000,
        "started_at": NOW.timestamp() - 900, "total_rows": 50_000, "done_rows": 18_211,
        "failed_rows": 3, "running_rows": 8, "prompt_tokens": 1_811_003,
        "completion_tokens": 512_900, "tokens_per_s": 84.2, "eta_low_s": 4300.0,
        "eta_high_s": 6100.0,
    }  # fmt: skip
    return JobInfo.model_validate(known | fields)


OTHERS = (
    job("job_2", name="letters.txt", state="queued", done_rows=0, total_rows=210, failed_rows=0,
        created_at=NOW.timestamp() - 5000),
    job("job_3", name="Names for a boat", state="paused", reason="Paused until you resume.",
        done_rows=40, failed_rows=0, total_rows=120, created_at=NOW.timestamp() - 9000),
    job("job_4", name="tide-tables.jsonl", state="completed", done_rows=365, failed_rows=0,
        total_rows=365, created_at=NOW.timestamp() - 99_000, ended_at=NOW.timestamp() - 90_000),
)  # fmt: skip
BAD = job(
    state="review", done_rows=0, total_rows=1200, failed_rows=0, running_rows=0, num_problems=140,
    prompt_tokens=0, completion_tokens=0, started_at=None,
    problems=tuple(
        JobProblem(line=line, column="text", message="it is empty; write something, or leave it out.")
        for line in (5, 19, 20, 44)
    ),
)  # fmt: skip


def rows(wanted: PageWanted, total: int) -> JobRows:
    """A page of a batch."""
    first = wanted.page * PAGE_ROWS
    every = range(first, min(first + PAGE_ROWS, total))
    return JobRows(
        rows=tuple(
            JobRow(
                number=at, line=at + 2, custom_id=f"row-{at + 1}", state=_state(at),
                prompt=f"Summarize: {ARTICLES[at % 3][1]}",
                answer=f"In short: {ARTICLES[at % 3][0].lower()}." if at < 9 and at != 4 else None,
                error="The prompt has 9,120 tokens, but the context holds 8,192." if at == 4 else None,
            )
            for at in every
        ),
        next_after=every[-1] if every and every[-1] + 1 < total else None,
    )  # fmt: skip


def _state(at: int) -> RowState:
    if at == 4:
        return RowState.FAILED
    return RowState.DONE if at < 9 else RowState.RUNNING if at < 17 else RowState.PENDING


def preview(*, bad: bool = True) -> JobPreview:
    """The first rows of a table."""
    return JobPreview(
        format="csv", encoding="utf-8", delimiter=";", columns=("title", "text"),
        rows=tuple(
            PreviewRow(
                line=at, values=values,
                request={"messages": [{"role": "user", "content": f"Summarize: {values[1]}"}]},
            )
            if values[1] or not bad
            else PreviewRow(
                line=at, values=values,
                problem=JobProblem(line=at, column="text", message="it is empty."),
            )
            for at, values in enumerate(ARTICLES, 2)
        ),
    )  # fmt: skip


def looking_at(shown: JobInfo, *others: JobInfo) -> AppState:
    """A batch with its first rows, beside others."""
    wanted = PageWanted(shown.id, only_failed=False, page=0, version=version_of(shown))
    return after(
        EngineStarting(), StatusArrived(status()), JobsArrived((shown, *others)),
        JobChosen(shown.id), RowsArrived(wanted, rows(wanted, shown.total_rows)),
    )  # fmt: skip


def scenes() -> dict[str, AppState]:
    """States worth a look."""
    up = (EngineStarting(), StatusArrived(status()))
    done = job(state="completed", ended_at=NOW.timestamp(), done_rows=49_997, running_rows=0)
    cancelled = job(state="cancelled", ended_at=NOW.timestamp(), running_rows=0)
    news = after(JobsArrived((done,)), JobChosen("job_3"), start=looking_at(job(), *OTHERS))
    form = after(*up, JobsArrived(OTHERS))
    return {
        "running": looking_at(job(), *OTHERS),
        "checking": looking_at(job(state="validating", done_rows=0, failed_rows=0), *OTHERS),
        "review": looking_at(BAD, *OTHERS),
        "done": looking_at(done, *OTHERS),
        "news": news,
        "cancelled": after(
            JobSettled(cancelled, JobUndo(cancelled.id, cancelled.name, "uncancel")),
            start=looking_at(cancelled, *OTHERS),
        ),
        "deleted": after(
            JobDeleted(JobUndo("job_1", "articles.csv", "restore")), start=looking_at(job(), *OTHERS)
        ),
        "unsaved": looking_at(done.model_copy(update={"output_path": None}), *OTHERS),
        "empty": after(*up, JobsArrived(())),
        "form": after(PreviewAsked(FILE), JobPreviewArrived(FILE, preview()), start=form),
        "form-wrong": after(
            PreviewAsked(FILE),
            JobPreviewFailed(FILE, "The template names the column txet, but there are title and text."),
            start=form,
        ),
        "stopped": after(EngineStopped("It ended."), start=looking_at(job(), *OTHERS)),
    }  # fmt: skip


def batch_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The window of batches in every state."""
    for scene, state in scenes().items():
        if not wanted(f"batch-{scene}"):
            continue
        with tempfile.TemporaryDirectory() as home:
            window = BatchWindow(Settings(Home.under(Path(home))))
            if scene.startswith("form"):
                window.form.input.setText(FILE.input_path or "")
                window.form.template.setPlainText(FILE.template or "")
                window.form.output.setText("/home/ada/articles.results.csv")
            window.show_view(batch_view(state, NOW, tr))
            window.bring_up()
            yield f"batch-{scene}", window
            window.deleteLater()
