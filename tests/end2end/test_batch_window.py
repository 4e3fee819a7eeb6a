"""The window of batches on a real (virtual) screen, with the real engine and the starter model."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.desktop.running_app import App, running_app
from tests.support.desktop.screen import LOOK_LIMIT_S, desktop, require_desktop_programs, wait_until

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

BATCHES = "Shoal batches"
START_LIMIT_S = 120.0
WORK_LIMIT_S = 150.0
GOOD_ROWS = 48
FISH = ("herring", "sardine", "eel", "cod", "pike")
ROWS = "Rows of the batch"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One app and its engine for all of these tests."""
    require_desktop_programs()
    folder = tmp_path_factory.mktemp("batch")
    with (
        desktop(folder, tray=True) as screen,
        running_app(
            screen, folder, "--", "--model", "starter", start_limit_s=START_LIMIT_S
        ) as running,
    ):
        running.wait_for_state("idle", "serving")
        wait_until(lambda: running.status().can_chat, START_LIMIT_S, "a route")
        yield running


def open_batches(app: App) -> None:
    app.choose("b")
    app.screen.wait_for_window(BATCHES)


def write(app: App, field: str, text: str) -> None:
    """Write into a field of the form, in place of what it holds."""
    app.press(field, window=BATCHES)
    app.screen.keys("ctrl+a", "BackSpace")
    if text:
        app.screen.write(text)


def column(app: App, title: str) -> list[str]:
    """What stands in the visible part of a column of the batch's rows."""
    (table,) = app.named(ROWS, BATCHES)
    start = f"{title}: "
    return [one.name.removeprefix(start) for one in table.inside if one.name.startswith(start)]


def job(app: App) -> dict[str, Any]:
    """What the engine knows of the newest batch."""
    found: dict[str, Any] = app.ask_engine("/shoal/v1/jobs")["jobs"][0]
    return found


def results(path: Path) -> list[dict[str, str]]:
    """The rows that are whole by now."""
    whole = path.read_bytes().rpartition(b"\r\n")[0].decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(whole, newline="")))


def at_rest(app: App, output: Path) -> dict[str, Any] | None:
    """The newest batch when no row is being answered, and its results hold all rows that were."""
    found = job(app)
    ended_rows = found["done_rows"] + found["failed_rows"]
    return found if not found["running_rows"] and len(results(output)) == ended_rows else None


def test_table_is_checked_paused_killed_and_ends_with_each_row_answered_once(
    app: App, tmp_path: Path
) -> None:
    table, output = tmp_path / "fish.csv", tmp_path / "fish.results.csv"
    rows = [f"{number},{FISH[number % len(FISH)]} {number}" for number in range(GOOD_ROWS)]
    too_long = "sea " * 9000  # more tokens than the model's context holds
    table.write_text("\n".join(["id,name", *rows[:2], "lonely", *rows[2:], f"long,{too_long}", ""]))
    open_batches(app)

    write(app, "File with the rows", str(table))
    app.wait_to_read("Table with 2 columns, UTF-8, separated by “,”", window=BATCHES)
    write(app, "Prompt", "Where does the ")
    app.press("Insert a column into the prompt", window=BATCHES)
    wait_until(app.screen.menu_is_open, LOOK_LIMIT_S, "the columns")
    app.screen.keys("Down", "Down", "Return")
    app.screen.write(" live?")
    app.wait_to_read("Where does the {name} live?", window=BATCHES)
    app.wait_to_read(
        "Where does the herring 0 live?",
        "Line 4: The row has 1 values",
        str(output),
        window=BATCHES,
    )
    write(app, "Longest answer, in tokens", "24\t")
    app.press("Check all rows and start", window=BATCHES)
    app.wait_to_read(
        "Some rows cannot be asked", f"1 of {GOOD_ROWS + 2} rows cannot be asked",
        "Line 4: The row has 1 values", "Nothing has been asked yet.", window=BATCHES,
    )  # fmt: skip

    app.press("Start without these rows", window=BATCHES)
    wait_until(lambda: job(app)["done_rows"] >= 3, WORK_LIMIT_S, "some answers")
    app.press("Pause", window=BATCHES)
    app.wait_to_read("Paused until you resume.", window=BATCHES)
    paused = wait_until(lambda: at_rest(app, output), WORK_LIMIT_S, "results of what is done")
    assert paused["done_rows"] < GOOD_ROWS
    wait_until(lambda: {"Done", "Failed"} <= set(column(app, "State")), 30, "rows that are over")
    app.press(ROWS, window=BATCHES)
    app.screen.keys("ctrl+End")
    wait_until(lambda: "Waiting" in column(app, "State"), 30, "rows that wait")

    app.press("Resume", window=BATCHES)
    wait_until(lambda: job(app)["done_rows"] > paused["done_rows"], WORK_LIMIT_S, "more answers")
    before = results(output)
    engine = app.engine_pid()
    os.kill(engine, signal.SIGKILL)
    app.wait_to_read("The engine does not answer; batches go on", window=BATCHES)
    app.screen.keys("ctrl+w")
    wait_until(lambda: not app.screen.windows(BATCHES), LOOK_LIMIT_S, "the end of the window")

    summary = f"“fish.csv” is done: {GOOD_ROWS} rows answered, 2 failed."
    app.wait_to_read(summary, limit_s=START_LIMIT_S + WORK_LIMIT_S)
    assert app.engine_pid() != engine
    after = results(output)
    assert [row["id"] for row in after] == [
        *map(str, range(2)), "lonely", *map(str, range(2, GOOD_ROWS)), "long",
    ]  # fmt: skip
    assert after[: len(before)] == before, "a row was asked twice"
    assert [row["id"] for row in after if row["error"]] == ["lonely", "long"]

    (told,) = app.named(summary)
    place = app.eyes.box(told)
    assert place is not None
    app.screen.click(*place.centre)
    app.screen.wait_for_window(BATCHES)
    app.wait_to_read(
        "Done, with failed rows", f"{GOOD_ROWS} of {GOOD_ROWS + 2} answered, 2 failed",
        window=BATCHES,
    )  # fmt: skip
    app.press("Only failed rows", window=BATCHES)
    wait_until(lambda: set(column(app, "State")) == {"Failed"}, 30, "the failed rows alone")
    assert any("context" in text for text in column(app, "Answer"))
    ended = job(app)["ended_at"]
    app.press("Retry failed rows", window=BATCHES)
    wait_until(lambda: job(app)["state"] == "completed" and job(app)["ended_at"] > ended, 60, "it")
    assert results(output) == after, "only the failed row was asked again"
    app.wait_to_read("Done, with failed rows", window=BATCHES)


def test_batch_is_cancelled_and_keeps_its_answers(app: App, tmp_path: Path) -> None:
    lines, output = tmp_path / "many.jsonl", tmp_path / "many.results.jsonl"
    lines.write_text(
        "\n".join(
            json.dumps({"custom_id": f"r{n}", "prompt": f"Count to {n}"}) for n in range(1000)
        )
    )
    open_batches(app)
    app.press("New batch", window=BATCHES)
    write(app, "File with the rows", str(lines))
    write(app, "Prompt", "")  # it stays from one batch to the next
    app.wait_to_read("Lines of JSON, one request each", "Count to 7", window=BATCHES)
    write(app, "Longest answer, in tokens", "8\t")
    app.press("Check all rows and start", window=BATCHES)
    wait_until(lambda: job(app)["done_rows"] >= 2, WORK_LIMIT_S, "some answers")
    app.press("Cancel", window=BATCHES)
    app.wait_to_read("Cancelled", "“many.jsonl” was cancelled.", window=BATCHES)
    done = job(app)
    assert done["state"] == "cancelled"
    kept = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(kept) == done["done_rows"] < 1000
    assert len({line["custom_id"] for line in kept}) == len(kept)
