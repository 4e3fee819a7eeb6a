from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.batch_messages import (
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
    JobUndo,
    JobUndoExpired,
    JobUndone,
    PageWanted,
    PreviewAsked,
    RowsArrived,
    TakeBack,
)
from app.batch_presenters import batch_view, eta_words
from app.batch_state import (
    MAX_PAGES,
    PAGE_ROWS,
    Batches,
    after_row,
    apply_to_batches,
    known_rows,
    version_of,
)
from app.messages import EngineStarting, Message, StatusArrived
from engine.localapi.jobs import JobPreview, JobProblem, JobRows
from tests.support.app_states import after, status
from tests.support.desktop.batch_scenes import BAD, FILE, OTHERS, job, looking_at, preview, rows

DELETED = JobUndo("job_1", "articles.csv", "restore")
NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


def batches(*messages: Message) -> Batches:
    return after(*messages).batches


def page(number: int, total: int = 50_000, *, only_failed: bool = False) -> RowsArrived:
    wanted = PageWanted("job_1", only_failed, number, version_of(job()))
    return RowsArrived(wanted, rows(wanted, total))


def test_newest_batch_comes_first_and_changes_keep_the_order() -> None:
    known = batches(JobsArrived((*OTHERS, job())), JobsArrived((job("job_3", state="running",
                    created_at=OTHERS[1].created_at),)))  # fmt: skip
    assert [one.id for one in known.jobs] == ["job_1", "job_2", "job_3", "job_4"]
    assert known.jobs[2].state == "running"


def test_what_another_engine_does_not_have_is_gone() -> None:
    known = batches(
        JobsArrived((job(), *OTHERS)), JobChosen("job_1"), JobsFollowed(), JobsArrived(OTHERS)
    )
    assert "job_1" not in [one.id for one in known.jobs]
    assert known.chosen is None


def test_deleted_batch_leaves_the_form_behind() -> None:
    known = batches(JobsArrived((job(),)), JobChosen("job_1"), JobDeleted(DELETED))
    assert known.jobs == ()
    assert known.chosen is None


def test_order_taken_back_brings_the_batch_before_the_eyes_again() -> None:
    before = JobsArrived((job(), *OTHERS)), JobChosen("job_1"), JobAsked(), JobDeleted(DELETED)
    known = batches(*before, JobChosen("job_2"), JobAsked(), JobUndone(job()))
    assert known.chosen == "job_1"
    assert [one.id for one in known.jobs] == ["job_1", "job_2", "job_3", "job_4"]
    assert (known.undo, known.busy) == (None, False)


def test_last_order_is_the_one_that_can_be_taken_back_for_a_while() -> None:
    cancelled = JobUndo("job_1", "articles.csv", "uncancel")
    known = batches(
        JobsArrived((job(),)), JobSettled(job(state="cancelled"), cancelled),
        JobSettled(job(state="cancelled", priority=10)),
    )  # fmt: skip
    assert known.undo == cancelled
    known = apply_to_batches(known, JobDeleted(DELETED))
    assert known.undo == DELETED
    assert apply_to_batches(known, JobUndoExpired()).undo is None


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("restore", "“a.csv” is in the trash."),
        ("uncancel", "“a.csv” was cancelled."),
        ("unretry", "The failed rows of “a.csv” are asked again."),
    ],
)
def test_undo_says_what_was_done(order: TakeBack, said: str) -> None:
    offered = after(
        StatusArrived(status()), JobsArrived((job(),)),
        JobSettled(job(), JobUndo("job_1", "a.csv", order)),
    )  # fmt: skip
    assert batch_view(offered, NOW, str).undo == said


def test_only_a_few_pages_are_held_of_fifty_thousand_rows() -> None:
    known = batches(JobsArrived((job(),)), JobChosen("job_1"), *(page(n) for n in range(20)))
    assert [one.page for one in known.pages] == list(range(20 - MAX_PAGES, 20))
    assert known_rows(known) == 50_000
    assert after_row(known, 399) == 39_899


def test_rows_of_another_batch_that_come_late_are_left_out() -> None:
    known = batches(JobsArrived((job(), *OTHERS)), JobChosen("job_2"), page(0))
    assert known.pages == ()


def test_failed_rows_become_known_page_by_page() -> None:
    failing = job(failed_rows=250)
    known = batches(JobsArrived((failing,)), JobChosen("job_1"), FailedWanted(only_failed=True))
    assert known_rows(known) == PAGE_ROWS
    assert after_row(known, 1) is None
    found = page(0, only_failed=True)
    moved = JobRows(rows=found.rows.rows, next_after=1777)
    known = apply_to_batches(known, RowsArrived(found.wanted, moved))
    assert after_row(known, 1) == 1777
    assert known_rows(known) == 2 * PAGE_ROWS


@pytest.mark.parametrize(
    ("state", "is_news"), [("completed", True), ("failed", True), ("cancelled", False)]
)
def test_end_of_a_batch_is_news_until_it_is_looked_at(state: str, is_news: bool) -> None:
    first = JobsArrived((job(),))
    known = batches(first, JobsArrived((job(state=state),)))
    assert (known.news is not None) is is_news
    assert apply_to_batches(known, JobChosen("job_1")).news is None


def test_batches_that_ended_before_the_app_began_are_no_news() -> None:
    assert batches(JobsArrived((job(state="completed"),))).news is None


def test_preview_of_what_was_written_before_is_left_out() -> None:
    newer = FILE.model_copy(update={"template": "Translate: {text}"})
    known = batches(PreviewAsked(newer), JobPreviewArrived(FILE, preview()))
    assert known.preview is None
    assert batches(PreviewAsked(newer), JobPreviewFailed(FILE, "No.")).preview_error == ""


def test_new_batch_is_looked_at() -> None:
    known = batches(JobAsked(), JobCreated(job(state="validating")))
    assert (known.chosen, known.busy) == ("job_1", False)


def test_running_batch_tells_how_far_it_is_and_how_long_it_takes_yet() -> None:
    view = batch_view(looking_at(job()), NOW, str)
    assert view.job is not None
    facts = dict(view.job.facts)
    assert facts["Rows"] == "18,211 of 50,000 answered, 3 failed, 8 being answered"
    assert facts["Time left"] == "72–102 min"
    assert facts["Speed"] == "84.2 tokens/s"
    assert view.job.share == pytest.approx(18_214 / 50_000)
    assert view.job.pause.visible
    assert not view.job.delete.visible


@pytest.mark.parametrize(
    ("low_s", "high_s", "said"),
    [
        (0.2, 0.4, "about 0 s"),
        (40, 95, "40–95 s"),
        (700, 1100, "12–18 min"),
        (5400, 7300, "1.5–2 h"),
        (7200, 7200, "about 2 h"),
        (200_000, 400_000, "2.3–4.6 d"),
    ],
)
def test_time_left_is_a_range_in_one_unit(low_s: float, high_s: float, said: str) -> None:
    assert eta_words(low_s, high_s, str) == said


def test_bad_rows_are_named_before_anything_is_asked() -> None:
    view = batch_view(looking_at(BAD), NOW, str)
    assert view.job is not None
    assert view.job.problems_title == "140 of 1,200 rows cannot be asked; the first 4:"
    assert view.job.problems[0].startswith("Line 5, column text: it is empty")
    assert view.job.start.visible
    assert view.job.cancel.visible
    assert "Nothing has been asked yet" in view.job.detail


def test_failed_rows_can_be_retried_when_the_batch_has_ended() -> None:
    for state, failed, retries in (("completed", 3, True), ("completed", 0, False),
                                   ("running", 3, False)):  # fmt: skip
        view = batch_view(looking_at(job(state=state, failed_rows=failed)), NOW, str)
        assert view.job is not None
        assert view.job.retry.visible is retries


def test_form_shows_columns_and_the_prompts_that_come_of_them() -> None:
    form = batch_view(
        after(
            EngineStarting(), StatusArrived(status()), PreviewAsked(FILE),
            JobPreviewArrived(FILE, preview()),
        ), NOW, str,
    ).form  # fmt: skip
    assert form.detected == "Table with 2 columns, UTF-8, separated by “;”"
    assert form.header == ("Line", "title", "text", "What is asked")
    assert form.rows[1][3].startswith("Summarize: Herring swim")
    assert form.rows[3][3] == "Line 5, column text: it is empty."
    assert form.bad_rows == {3}
    assert form.can_start
    assert form.note == "1 of the first 5 rows cannot be asked; the table says why."


@pytest.mark.parametrize(
    "message",
    [
        JobPreviewFailed(FILE, "There is no such file."),
        JobPreviewArrived(FILE, JobPreview(format="csv", encoding="utf-8",
                          problem=JobProblem(message="There is no such file."))),
        JobRefused("There is no such file."),
    ],
)  # fmt: skip
def test_form_says_why_a_batch_cannot_begin(message: Message) -> None:
    form = batch_view(after(StatusArrived(status()), PreviewAsked(FILE), message), NOW, str).form
    assert form.problem == "There is no such file."
    assert not form.can_start


def test_list_says_why_it_is_empty() -> None:
    up = StatusArrived(status())
    assert batch_view(after(JobsArrived(())), NOW, str).note.startswith(
        "The engine does not answer"
    )
    assert batch_view(after(up), NOW, str).note == "Asking the engine…"
    assert batch_view(after(up, JobsArrived(())), NOW, str).note == "There are no batches yet."


def test_answer_that_comes_late_does_not_undo_what_the_stream_has_told() -> None:
    known = batches(
        JobAsked(), JobsArrived((job(state="completed"),)), JobCreated(job(state="validating"))
    )
    assert known.jobs[0].state == "completed"
