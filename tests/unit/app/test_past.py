"""History, log and diagnostics: state and presenters."""

from __future__ import annotations

from datetime import UTC, datetime

from app.messages import ConnectionLost, EngineStarting, Message, StatusArrived
from app.past_messages import (
    ArchiveTold,
    LogArrived,
    LogFailed,
    PreviewArrived,
    PreviewFailed,
    RangeChosen,
    StatisticsArrived,
    StatisticsFailed,
)
from app.past_presenters import PastView, past_view, sizes_of
from engine.localapi.statistics import (
    DiagnosticsEntry,
    DiagnosticsPreview,
    Range,
    Statistics,
    StatisticsSample,
    StatisticsTotals,
)
from tests.support.app_states import after, status

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
NONE = StatisticsTotals()
PREVIEW = DiagnosticsPreview(entries=(DiagnosticsEntry(name="a", about="b", text="ü" * 1200),))


def sample(ago_s: float, **fields: object) -> StatisticsSample:
    known = {
        "unix_s": int(NOW.timestamp() - ago_s), "seconds": 10, "tokens_served": 0,
        "tokens_used": 0, "sent_bytes": 0, "received_bytes": 0, "ram_bytes": 10**9,
    }  # fmt: skip
    return StatisticsSample.model_validate(known | fields)


def history(*samples: StatisticsSample, span: Range = Range.HOUR) -> StatisticsArrived:
    return StatisticsArrived(
        Statistics(range=span, step_s=10, samples=samples, today=NONE, all=NONE)
    )


def seen(*messages: Message, linked: bool = True) -> PastView:
    begin = (EngineStarting(), StatusArrived(status())) if linked else (EngineStarting(),)
    return past_view(after(*begin, *messages), NOW, str)


def test_sums_become_rates_by_the_time_that_was_seen() -> None:
    half_seen = sample(20, seconds=5, tokens_served=40, tokens_used=5, sent_bytes=1_000_000)
    tokens, network, *_ = seen(history(half_seen)).plots
    assert [(line.name, line.points[0][1]) for line in tokens.lines] == [
        ("served", 8.0), ("used", 1.0)
    ]  # fmt: skip
    assert network.words(network.lines[0].points[0][1] or 0, str) == "1.6 Mbit/s"


def test_missing_steps_are_gaps_and_not_zeros() -> None:
    tokens = seen(history(sample(100), sample(90), sample(20))).plots[0]
    assert [value for _, value in tokens.lines[0].points] == [0.0, 0.0, None, 0.0]


def test_history_that_ended_is_not_what_is_now() -> None:
    now, before = (seen(history(sample(ago_s))).plots[0] for ago_s in (15, 600))
    assert now.lines[0].points[-1][1] == 0.0
    assert before.lines[0].points[-1][1] is None


def test_machine_without_a_gpu_has_empty_plots_that_say_so() -> None:
    plots = {one.title: one.empty for one in seen(history(sample(10))).plots}
    assert plots["GPU load"] == "Nothing was read from a GPU in this time."
    assert plots["Memory of Shoal"] == ""


def test_values_have_units() -> None:
    one = sample(10, gpu_memory_bytes=5_200_000_000, gpu_busy_share=0.375, gpu_c=61.4)
    plots = {
        shown.title: shown.words(shown.lines[0].points[0][1] or 0, str)
        for shown in seen(history(one)).plots
    }
    assert plots == {
        "Tokens": "0 tokens/s",
        "Network": "0 kbit/s",
        "GPU memory": "5.2 GB",
        "Memory of Shoal": "1.0 GB",
        "GPU load": "38 %",
        "GPU temperature": "61 °C",
    }


def test_answer_for_a_time_that_is_no_longer_wanted_is_dropped() -> None:
    view = seen(history(sample(10)), RangeChosen(Range.WEEK), history(sample(10), sample(5)))
    assert view.range is Range.WEEK
    assert len(view.plots[0].lines[0].points) == 1
    view = seen(RangeChosen(Range.WEEK), history(sample(10), sample(5), span=Range.WEEK))
    assert len(view.plots[0].lines[0].points) == 2


def test_failures_are_told_and_go_away_with_the_next_answer() -> None:
    view = seen(StatisticsFailed("No."), LogFailed("No log."), PreviewFailed("No files."))
    told = (view.activity_note, view.log_note, view.diagnostics_note)
    assert told == ("No.", "No log.", "No files.")
    view = seen(
        StatisticsFailed("No."), LogFailed("No log."), PreviewFailed("No files."),
        history(sample(10)), LogArrived(("one", "two")), PreviewArrived(PREVIEW),
    )  # fmt: skip
    assert (view.activity_note, view.log_note, view.diagnostics_note) == ("", "", "")
    assert view.log == "one\ntwo"


def test_what_is_awaited_is_told_also_while_there_is_no_engine() -> None:
    assert seen().activity_note == "Asking the engine…"
    view = seen(linked=False)
    assert view.activity_note == "This comes as soon as the engine answers."
    assert view.log_note == "The engine does not answer; what it wrote last is in the folder."
    assert seen(LogArrived(())).log_note == "The log is empty."


def test_archive_can_be_saved_once_its_content_is_shown() -> None:
    assert not seen().can_save
    view = seen(PreviewArrived(PREVIEW), ArchiveTold("Saved as /x.zip."))
    assert view.can_save
    assert view.archive_note == "Saved as /x.zip."
    assert sizes_of(view.entries, str) == ("2.4 KB",)
    assert not seen(PreviewArrived(PREVIEW), ConnectionLost("It is away.")).can_save
