"""The window of batches on the engine's own routes, without a screen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.batch_rows import ANSWER, STATE
from app.engine_link.api import Api
from app.engine_link.batches import BatchLink
from app.messages import ConnectionLost, StatusArrived
from app.settings import Settings
from app.store import Store
from app.windows.batch import BatchWindow
from app.wiring.batch import BatchWiring
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile
from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.api_server import Api as Engine
from tests.support.api_server import serving_in_thread
from tests.support.app_states import status

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

    def cell(self, row: int, column: int) -> str:
        model = self.window.page.model
        return str(model.data(model.index(row, column)))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("engine")
    with serving_in_thread(ScriptedBackend(tiny_tokenizer(folder)), folder) as api:
        yield api


@pytest.fixture
def batches(engine: Engine, tmp_path: Path, qtbot: QtBot) -> Iterator[Batches]:
    one = Batches(tmp_path, engine.url, engine.token, qtbot)
    yield one
    for job in one.store.state.batches.jobs:
        one.link.delete(job.id)
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
        lambda: any("did you mean 'name'?" in text.text() for text in texts), timeout=LIMIT_MS
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


def test_deleted_batch_leaves_list_and_results_alone(batches: Batches, tmp_path: Path) -> None:
    text = tmp_path / "questions.txt"
    text.write_text("One?\n")
    batches.begin(text, "")
    batches.wait_for_state("completed")
    batches.link.delete(batches.store.state.batches.jobs[0].id)
    batches.qtbot.waitUntil(lambda: not batches.store.state.batches.jobs, timeout=LIMIT_MS)
    assert batches.window.list.count() == 0
    assert (tmp_path / "questions.results.jsonl").exists()


def test_batches_are_heard_of_again_after_the_engine_was_away(
    batches: Batches, tmp_path: Path
) -> None:
    batches.store.dispatch(ConnectionLost("It is gone."))
    batches.store.dispatch(StatusArrived(status()))
    text = tmp_path / "questions.txt"
    text.write_text("One?\n")
    batches.begin(text, "")
    batches.wait_for_state("completed")
