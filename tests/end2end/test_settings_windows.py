"""The windows of the first steps and the settings against the real engine, without a screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QDoubleSpinBox, QFileDialog
from pytestqt.qtbot import QtBot

from app.engine_link.api import Api
from app.engine_link.engine import EngineLink
from app.engine_link.setup import SetupLink
from app.settings import Settings
from app.store import Store
from app.wiring.settings import SettingsWiring
from app.wiring.setup import SetupWiring
from engine.config import load
from engine.localapi.running import Home, find_running
from tests.support.real_engine import RealEngine, real_engine
from tests.support.tiny_models import save_tiny, save_tokenizer

pytestmark = [
    pytest.mark.end2end,
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
]
LIMIT_MS = 60_000


class App:
    """The app's parts on one engine."""

    def __init__(self, engine: RealEngine, qtbot: QtBot) -> None:
        self.store = Store()
        api = Api()
        self.engine_link = EngineLink(api)
        self.engine_link.message.connect(self.store.dispatch)
        self.link = SetupLink(api)
        self.setup = SetupWiring(self.store, self.link)
        settings = Settings(engine.home)
        self.settings = SettingsWiring(self.store, self.link, settings, engine.home)
        ready = find_running(engine.home)
        assert ready is not None
        self.engine_link.open(ready)
        self._qtbot = qtbot
        self.until(lambda: self.store.state.linked)

    def until(self, look: Callable[[], object]) -> None:
        self._qtbot.waitUntil(lambda: bool(look()), timeout=LIMIT_MS)

    def close(self) -> None:
        self.engine_link.close()
        for window in (self.setup.window, self.settings.window):
            if window is not None:
                window.close()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_tiny("llama", tmp_path / "model")
    save_tokenizer(tmp_path / "model")
    return tmp_path / "model"


def uplink(app: App) -> QDoubleSpinBox:
    window = app.settings.window
    assert window is not None
    editor = window.editors["limits.uplink_bytes_per_s"].editor
    assert isinstance(editor, QDoubleSpinBox)
    return editor


def test_caps_of_the_first_steps_and_later_settings_are_kept(
    tmp_path: Path, model: Path, qtbot: QtBot
) -> None:
    words = ("--await-setup", "--model", str(model))
    home = Home.under(tmp_path)
    with real_engine(tmp_path, *words) as engine:
        app = App(engine, qtbot)
        first = app.setup.window
        assert first is not None, "it opens by itself"
        first.next.click()
        app.until(lambda: app.store.state.setup.measuring)
        app.until(lambda: app.store.state.setup.profile is not None)
        assert app.store.state.setup.preview is not None
        first.next.click()
        app.until(lambda: app.store.state.setup.kept is not None)
        first.folder.choose.click()
        (dialog,) = first.findChildren(QFileDialog)
        dialog.fileSelected.emit(str(tmp_path / "models"))
        dialog.close()
        first.next.click()
        app.until(lambda: engine.status()["can_chat"])
        assert load(home.settings_file).model.folder == str(tmp_path / "models")
        # The slider stood at 8 Mbit/s.
        assert load(home.settings_file).limits.uplink_bytes_per_s == 1_000_000

        app.settings.bring_up()
        app.until(lambda: uplink(app).text() == "8.0 Mbit/s")
        window = app.settings.window
        assert window is not None
        uplink(app).setValue(4)
        window.apply.click()
        app.until(lambda: not window.changed and not app.store.state.setup.changing)

        window.identity.backup_wanted.emit("a long passphrase", str(tmp_path / "no" / "copy.txt"))
        app.until(lambda: "cannot be written" in app.store.state.setup.change_error)
        copy = tmp_path / "copy.txt"
        window.identity.backup_wanted.emit("a long passphrase", str(copy))
        app.until(lambda: str(copy) in app.store.state.setup.note)
        assert copy.stat().st_mode & 0o077 == 0
        window.identity.restore_wanted.emit("another passphrase", str(copy))
        app.until(lambda: "passphrase" in app.store.state.setup.change_error)
        before = engine.status()["peer_id"]
        window.identity.restore_wanted.emit("a long passphrase", str(copy))
        app.until(lambda: app.store.state.setup.note == "This node is who the copy was.")
        assert engine.wait(lambda status: status["peer_id"] is not None)["peer_id"] == before
        app.close()

    with real_engine(tmp_path, *words) as engine:
        app = App(engine, qtbot)
        assert app.setup.window is None, "it is shown once"
        app.settings.bring_up()
        app.until(lambda: uplink(app).text() == "4.0 Mbit/s")
        app.close()
