"""The window of batches on the engine's own routes, without a screen."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.batch_messages import JobChosen
from app.batch_rows import ANSWER, STATE
from app.engine_link.api import Api
from app.engine_link.batches import BatchLink
from app.messages import ConnectionLost, StatusArrived
from app.settings import Settings
from app.store import Store
from app.windows.batch import BatchWindow
from app.wiring.batch import BatchWiring
from engine.core.errors import ResourceError
from engine.localapi.jobs import JobCreateRequest
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile
from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.api_server import Api as Engine
from tests.support.api_server import serving_in_thread
from tests.support.app_states import status
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
LIMIT_MS = 15_000


class Batches:
    """A store, its wiring and a person's hands."""

    def __init__(self, folder: Path, url: str, token: str, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        (folder / "token").write_text(token)
        api = Api()
        api.engine = ReadyFile(url=url, token_file=str(folder / "token"), pid=1)
        self.store = Store()
        self.link = BatchLink(api, self.store)
        api.setParent(self.store)
        settings = Settings(Home.under(folder / "home"))
        self.wiring = BatchWiring(self.store, self.link, settings, self.store)
        self.store.changed.connect(lambda state: self.wiring.draw(state, NOW))
        self.told: list[str] = []
        self.wiring.notice.connect(self.told.append)
        self.store.dispatch(StatusArrived(status()))
        self.wiring.bring_up()

    @property
    def window(self) -> BatchWindow:
        assert self.wiring.window is not None
        return self.wiring.window

    def begin(self, table: Path, template: str) -> None:
        """Fill in the form and press the button."""
        self.window.form.take_file(str(table))
        self.window.form.template.setPlainText(template)
        self.qtbot.waitUntil(lambda: self.window.form.start.isEnabled(), timeout=LIMIT_MS)
        self.window.form.start.click()

    def wait_for_state(self, state: str) -> None:
        self.qtbot.waitUntil(
            lambda: [job.state for job in self.store.state.batches.jobs] == [state],
            timeout=LIMIT_MS,
        )

    def press(self, button: QPushButton) -> None:
        self.qtbot.waitUntil(lambda: button.isVisible() and button.isEnabled(), timeout=LIMIT_MS)
        button.click()

    def undo(self) -> None:
        """Press the button that takes the last order back."""
        self.qtbot.waitUntil(self.window.undo.isVisible, timeout=LIMIT_MS)
        self.press(self.window.undo.findChildren(QPushButton)[0])

    def create_like_a_program(self, folder: Path, rows: int) -> None:
        """A batch without a results file."""
        (folder / "in.txt").write_text("".join(f"{n}?\n" for n in range(rows)))
        self.link.create(JobCreateRequest(input_path=str(folder / "in.txt")))

    def save_to(self, file: Path) -> None:
        """Press the button and choose a file."""
        self.press(self.window.page.results)
        (dialog,) = self.window.findChildren(QFileDialog)
        dialog.fileSelected.emit(str(file))
        dialog.close()

    def form_text(self) -> str:
        """All that the form says beside what was written into it."""
        form = self.window.form
        labels = [one.text() for one in form.findChildren(QLabel) if one.isVisible()]
        cells = [
            form.rows.item(row, column)
            for row in range(form.rows.rowCount())
            for column in range(form.rows.columnCount())
        ]
        return "\n".join([*labels, *(cell.text() for cell in cells if cell is not None)])

    def cell(self, row: int, column: int) -> str:
        model = self.window.page.model
        return str(model.data(model.index(row, column)))


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> ScriptedBackend:
    return ScriptedBackend(tiny_tokenizer(tmp_path_factory.mktemp("tokenizer")))


@pytest.fixture(scope="module")
def engine(backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with serving_in_thread(backend, tmp_path_factory.mktemp("engine")) as api:
        yield api


@pytest.fixture
def batches(engine: Engine, tmp_path: Path, qtbot: QtBot) -> Iterator[Batches]:
    one = Batches(tmp_path, engine.url, engine.token, qtbot)
    yield one
    for job in one.store.state.batches.jobs:
        one.link.delete(job)
    qtbot.waitUntil(lambda: not one.store.state.batches.jobs, timeout=LIMIT_MS)
    one.link.let_go()
    one.window.deleteLater()
    one.store.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_batch_goes_from_the_form_to_its_results_file(batches: Batches, tmp_path: Path) -> None:
    table = tmp_path / "fish.csv"
    table.write_text("name\n" + "".join(f"fish {n}\n" for n in range(150)))
    batches.begin(table, "What is a {name}?")
    batches.wait_for_state("completed")
    batches.qtbot.waitUntil(lambda: batches.cell(0, STATE) == "Done", timeout=LIMIT_MS)
    assert batches.cell(0, ANSWER)
    assert batches.window.page.model.rowCount() == 150
    batches.window.page.rows.scrollToBottom()
    batches.qtbot.waitUntil(lambda: batches.cell(149, STATE) == "Done", timeout=LIMIT_MS)
    assert len((tmp_path / "fish.results.csv").read_text().splitlines()) == 151
    assert batches.window.form.input.text() == ""


def test_bad_rows_are_reviewed_before_anything_is_asked(batches: Batches, tmp_path: Path) -> None:
    lines = tmp_path / "mixed.jsonl"
    lines.write_text('{"prompt": "One?"}\nnonsense\n{"prompt": "Two?"}\n')
    batches.begin(lines, "")
    batches.wait_for_state("review")
    batches.qtbot.waitUntil(lambda: batches.window.page.problems.count() == 1, timeout=LIMIT_MS)
    assert batches.window.page.problems.item(0).text().startswith("Line 2")
    assert batches.store.state.batches.jobs[0].done_rows == 0
    batches.qtbot.waitUntil(batches.window.page.start.isEnabled)
    batches.window.page.start.click()
    batches.wait_for_state("completed")
    batches.window.page.failed.setChecked(True)
    batches.qtbot.waitUntil(lambda: batches.cell(0, STATE) == "Failed", timeout=LIMIT_MS)
    assert batches.window.page.model.rowCount() == 1


def test_end_is_told_to_the_tray_when_nobody_looks(batches: Batches, tmp_path: Path) -> None:
    text = tmp_path / "questions.txt"
    text.write_text("One?\nTwo?\n")
    batches.begin(text, "")
    batches.window.hide()
    batches.wait_for_state("completed")
    batches.qtbot.waitUntil(lambda: bool(batches.told), timeout=LIMIT_MS)
    assert batches.told == ["“questions.txt” is done: 2 rows answered."]


def test_wrong_template_is_told_with_the_columns_there_are(
    batches: Batches, tmp_path: Path
) -> None:
    table = tmp_path / "fish.csv"
    table.write_text("name\nHerring\n")
    batches.window.form.take_file(str(table))
    batches.window.form.template.setPlainText("What is a {nmae}?")
    texts = batches.window.form.findChildren(QLabel)
    batches.qtbot.waitUntil(
        lambda: any("write 'name' if you mean" in text.text() for text in texts), timeout=LIMIT_MS
    )
    assert batches.window.form.columns.isEnabled(), "the right one can be inserted"
    assert batches.window.form.rows.item(0, 1).text() == "Herring"
    assert not batches.window.form.start.isEnabled()


def test_results_file_of_somebody_else_is_not_written_over(
    batches: Batches, tmp_path: Path
) -> None:
    table = tmp_path / "fish.csv"
    table.write_text("name\nHerring\n")
    (tmp_path / "fish.results.csv").write_text("precious")
    batches.begin(table, "What is a {name}?")
    batches.qtbot.waitUntil(lambda: bool(batches.store.state.batches.refusal), timeout=LIMIT_MS)
    assert "fish.results.csv" in batches.store.state.batches.refusal
    assert (tmp_path / "fish.results.csv").read_text() == "precious"
    assert batches.window.form.input.text() == str(table)


def test_deleted_batch_leaves_the_list_and_comes_back(batches: Batches, tmp_path: Path) -> None:
    text = tmp_path / "questions.txt"
    text.write_text("One?\n")
    batches.begin(text, "")
    batches.wait_for_state("completed")
    batches.press(batches.window.page.delete)
    batches.qtbot.waitUntil(lambda: not batches.store.state.batches.jobs, timeout=LIMIT_MS)
    assert batches.window.list.count() == 0
    assert (tmp_path / "questions.results.jsonl").exists()
    batches.undo()
    batches.wait_for_state("completed")
    batches.qtbot.waitUntil(lambda: batches.cell(0, STATE) == "Done", timeout=LIMIT_MS)
    assert not batches.window.undo.isVisible()


def test_cancelled_batch_goes_on_when_that_is_undone(
    batches: Batches, backend: ScriptedBackend, tmp_path: Path
) -> None:
    backend.step_s = 0.02
    text = tmp_path / "questions.txt"
    text.write_text("".join(f"{n}?\n" for n in range(100)))
    batches.begin(text, "")
    batches.wait_for_state("running")
    batches.press(batches.window.page.cancel)
    batches.wait_for_state("cancelled")
    backend.step_s = 0.0
    batches.undo()
    batches.wait_for_state("completed")
    assert len((tmp_path / "questions.results.jsonl").read_text().splitlines()) == 100


def test_retry_is_undone_before_the_rows_are_answered(
    batches: Batches, backend: ScriptedBackend, tmp_path: Path
) -> None:
    lines = tmp_path / "mixed.jsonl"
    long = "word " * 2000  # does not fit into the context, which shows only when it is asked
    lines.write_text(json.dumps("One?") + "\n" + json.dumps(long) + "\n")
    batches.begin(lines, "")
    batches.wait_for_state("completed")
    batches.qtbot.waitUntil(batches.window.page.retry.isVisible, timeout=LIMIT_MS)
    backend.not_ready = ResourceError("Not now.")
    batches.press(batches.window.page.retry)
    batches.wait_for_state("running")
    batches.undo()
    batches.wait_for_state("completed")
    backend.not_ready = None
    assert batches.store.state.batches.jobs[0].failed_rows == 1


def test_offer_to_undo_ends_by_itself(batches: Batches, tmp_path: Path) -> None:
    text = tmp_path / "questions.txt"
    text.write_text("One?\n")
    batches.begin(text, "")
    batches.wait_for_state("completed")
    batches.wiring.undo_ends.setInterval(300)
    batches.press(batches.window.page.delete)
    batches.qtbot.waitUntil(batches.window.undo.isVisible, timeout=LIMIT_MS)
    batches.qtbot.waitUntil(lambda: not batches.window.undo.isVisible(), timeout=LIMIT_MS)


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.csv"])
def test_results_of_a_programs_batch_are_saved_from_the_window(
    batches: Batches, tmp_path: Path, name: str
) -> None:
    batches.create_like_a_program(tmp_path, rows=300)
    batches.wait_for_state("completed")
    batches.store.dispatch(JobChosen(batches.store.state.batches.jobs[0].id))
    file = tmp_path / name
    file.write_text("what was there before")
    batches.save_to(file)
    batches.qtbot.waitUntil(lambda: "turns" in file.read_text("utf-8-sig"), timeout=LIMIT_MS)
    table = name.endswith("csv")
    assert len(file.read_text("utf-8-sig").splitlines()) == 300 + table
    assert sorted(path.name for path in tmp_path.glob(f"{name}*")) == [name]


def test_results_that_cannot_be_saved_say_why(batches: Batches, tmp_path: Path) -> None:
    batches.create_like_a_program(tmp_path, rows=3)
    batches.wait_for_state("completed")
    batches.store.dispatch(JobChosen(batches.store.state.batches.jobs[0].id))
    batches.save_to(tmp_path / "no" / "such" / "folder.jsonl")
    batches.qtbot.waitUntil(lambda: bool(batches.window.refusal.text()), timeout=LIMIT_MS)
    assert "cannot be written" in batches.window.refusal.text()
    assert not batches.store.state.batches.busy


@pytest.mark.parametrize(
    ("name", "data", "template", "said"),
    [
        ("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 500, "{a}", "is not text"),
        ("empty.csv", b"", "{a}", "first line must name the columns"),
        ("twice.csv", b"a,a\n1,2\n", "{a}", "names the column 'a' twice"),
        ("other.csv", b"title,body\n1,2\n", "{titel}", "write 'title' if you mean"),
        ("plain.csv", b"title,body\n1,2\n", "", "give a template"),
        ("brace.txt", b"x\n", "Say {line", "single '{' at character 5"),
        ("hole.txt", b"x\n", "Say {}", "empty placeholder"),
    ],
)
def test_input_that_cannot_be_used_is_said_in_the_form_and_cannot_be_started(
    batches: Batches, tmp_path: Path, name: str, data: bytes, template: str, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    form = batches.window.form
    form.take_file(str(tmp_path / name))
    form.template.setPlainText(template)
    batches.qtbot.waitUntil(lambda: said in batches.form_text(), timeout=LIMIT_MS)
    assert not form.start.isEnabled()


@pytest.mark.parametrize(
    ("data", "detected", "asked"),
    [
        ("name;text\nAda;Größe\n".encode("utf-16"), "Table with 2 columns, UTF-16", "Say Größe"),
        ("name;text\nAda;Größe\n".encode("latin-1"), "CP1252, separated by “;”", "Say Größe"),
        ("\ufeffname,text\nAda,Größe\n".encode(), "UTF-8-SIG", "Say Größe"),
        (b'name,text\nAda,"two\nlines, and ""six"""\n', "“,”", 'Say two lines, and "six"'),
        (b"name,text\nAda\n", "", "Line 2: The row has 1 values, but the first line names 2"),
        (b'name,text\nAda,"open\n', "", "is opened here and never closed"),
    ],
)
def test_table_is_shown_as_it_will_be_asked_whatever_wrote_it(
    batches: Batches, tmp_path: Path, data: bytes, detected: str, asked: str
) -> None:
    (tmp_path / "in.csv").write_bytes(data)
    form = batches.window.form
    form.take_file(str(tmp_path / "in.csv"))
    form.template.setPlainText("Say {text}")
    batches.qtbot.waitUntil(lambda: asked in batches.form_text(), timeout=LIMIT_MS)
    assert detected in batches.form_text()


def test_results_on_a_disk_that_cannot_be_written_are_refused_in_the_form(
    batches: Batches, tmp_path: Path
) -> None:
    table = tmp_path / "fish.csv"
    table.write_text("name\nHerring\n")
    with small_disk(tmp_path / "disk", "64k") as disk:
        disk.set_read_only(read_only=True)
        batches.window.form.output.setText(str(disk.folder / "out.csv"))
        batches.begin(table, "What is a {name}?")
        batches.qtbot.waitUntil(lambda: "Read-only" in batches.form_text(), timeout=LIMIT_MS)
    assert "correct its permissions or choose another place." in batches.form_text()
    assert batches.window.form.input.text() == str(table)


def test_line_that_is_far_too_long_and_an_id_used_twice_are_named_in_the_form(
    batches: Batches, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    one = b'{"custom_id": "a", "prompt": "One?"}\n'
    with path.open("wb") as file:
        file.write(b"x" * (1 << 16))
        file.truncate(1 << 28)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + one + one)
    batches.window.form.take_file(str(path))
    batches.qtbot.waitUntil(lambda: "Line 1:" in batches.form_text(), timeout=LIMIT_MS)
    assert "longer than 4 million characters" in batches.form_text()
    assert "Line 3, column custom_id: custom_id 'a' was used in line 2" in batches.form_text()


def test_batches_are_heard_of_again_after_the_engine_was_away(
    batches: Batches, tmp_path: Path
) -> None:
    batches.store.dispatch(ConnectionLost("It is gone."))
    batches.store.dispatch(StatusArrived(status()))
    text = tmp_path / "questions.txt"
    text.write_text("One?\n")
    batches.begin(text, "")
    batches.wait_for_state("completed")
