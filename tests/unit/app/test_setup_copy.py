"""The setup of a new version on Windows, started from a copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.engine_link.api import Api
from app.engine_link.setup import SetupLink
from app.messages import StatusArrived
from app.settings import Settings
from app.setup_copy import NotAsSigned, copied
from app.store import Store
from app.windows.settings import APP, SettingsWindow
from app.wiring.settings import SettingsWiring
from engine.localapi.running import Home
from engine.localapi.updates import UpdateInfo
from tests.support.app_states import status

pytestmark = [
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),
    pytest.mark.skipif(sys.platform == "win32", reason="nothing may be started there"),
]


class Started(QObject):
    """What would be started."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[Path] = []

    @Slot(QUrl)
    def start(self, url: QUrl) -> None:
        self.files.append(Path(url.toLocalFile()))


@pytest.fixture
def started() -> Iterator[Started]:
    one = Started()
    QDesktopServices.setUrlHandler("file", one, "start")
    yield one
    QDesktopServices.unsetUrlHandler("file")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    file = tmp_path / "linux" / "shoal-0.2.0-setup.exe"
    file.parent.mkdir()
    file.write_bytes(b"MZ" + bytes(3 << 20))
    return file


def signed(setup: Path) -> str:
    return sha256(setup.read_bytes()).hexdigest()


@pytest.fixture
def window(
    tmp_path: Path, original: Path, qapp: QCoreApplication, qtbot: QtBot
) -> Iterator[SettingsWindow]:
    store, home = Store(), Home.under(tmp_path / "home")
    link = SetupLink(Api(store), store)
    link.message.connect(store.dispatch)
    wiring = SettingsWiring(store, link, Settings(home), home, store)
    info = UpdateInfo.model_validate(
        {"step": "ready", "package": "setup", "version": "0.2.0", "command": str(original),
         "sha256": signed(original)}
    )  # fmt: skip
    store.dispatch(StatusArrived(status(update=info)))
    wiring.bring_up()
    assert wiring.window is not None
    wiring.window.open_page(APP)
    yield wiring.window
    wiring.window.close()
    wiring.window.deleteLater()


def test_setup_starts_from_a_copy_that_outlasts_its_original(
    window: SettingsWindow, tmp_path: Path, original: Path, started: Started, qtbot: QtBot
) -> None:
    window.update_part.open.click()
    qtbot.waitUntil(lambda: bool(started.files))
    copy = Home.under(tmp_path / "home").updates_dir / original.name
    assert started.files == [copy]
    assert copy.read_bytes() == original.read_bytes()


def test_setup_that_cannot_be_copied_is_not_started_and_the_reason_is_told(
    window: SettingsWindow, original: Path, started: Started, qtbot: QtBot
) -> None:
    original.unlink()
    window.update_part.open.click()
    qtbot.waitUntil(
        lambda: any("No such file" in label.text() for label in window.findChildren(QLabel))
    )
    assert started.files == []


def test_setup_that_has_changed_since_it_was_signed_is_not_started_and_its_copy_goes(
    window: SettingsWindow, tmp_path: Path, original: Path, started: Started, qtbot: QtBot
) -> None:
    original.write_bytes(original.read_bytes()[:-1] + b"!")
    window.update_part.open.click()
    qtbot.waitUntil(
        lambda: any("was signed" in label.text() for label in window.findChildren(QLabel))
    )
    assert started.files == []
    assert not list(Home.under(tmp_path / "home").updates_dir.iterdir())


def test_only_the_newest_copy_stays_and_one_that_is_there_is_not_replaced(
    tmp_path: Path, original: Path
) -> None:
    folder = tmp_path / "updates"
    folder.mkdir()
    (folder / "shoal-0.1.9-setup.exe").write_bytes(b"MZ")
    (folder / "shoal-0.1.8-setup.exe.part").write_bytes(b"MZ")
    copy = copied(original, folder, signed(original))
    assert list(folder.iterdir()) == [copy]
    inode = copy.stat().st_ino
    assert copied(original, folder, signed(original)).stat().st_ino == inode
    copy.write_bytes(b"MZ damaged")
    assert copied(original, folder, signed(original)).read_bytes() == original.read_bytes()
    with pytest.raises(NotAsSigned):
        copied(original, folder, "")
