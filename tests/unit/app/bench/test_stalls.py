from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.bench.stalls import LATE_MS, StallWatch
from app.windows.markdown import stable_length


def test_a_stall_names_the_function_that_held_the_main_thread(qtbot: QtBot) -> None:
    long_text = "a line of text\n" * 1_500_000
    watch = StallWatch()
    watch.begin()
    qtbot.wait(50)
    stable_length(long_text)
    qtbot.wait(50)
    stalls = watch.end()
    assert stalls.longest_ms > LATE_MS
    assert stalls.busy_ms > 0
    assert stalls.where == "windows.markdown.stable_length"


def test_each_watch_begins_anew(qtbot: QtBot) -> None:
    watch = StallWatch()
    watch.begin()
    stable_length("a line of text\n" * 1_500_000)
    first = watch.end()
    watch.begin()
    qtbot.wait(30)
    second = watch.end()
    assert first.where
    assert second.where != first.where
