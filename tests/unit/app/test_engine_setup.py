"""Setting the engine's environment up from the window, with a stand-in for what does it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app import installed
from app.engine_setup import EngineSetup
from app.windows.engine_setup import EngineSetupWindow
from app.wiring.engine_setup import EngineSetupWiring
from engine.localapi.running import Home
from installers.setup_steps.installed import Installed, Parts, data_folder
from installers.setup_steps.report import Report

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

STAND_IN = """
import json, pathlib, sys, time
folder = pathlib.Path(__file__).parent
with (folder / "asked").open("a") as asked:
    asked.write(sys.argv[1] + "\\n")
known = json.loads((folder / "known.json").read_text())
if sys.argv[1] == "check":
    ready = (folder / "ready").exists()
    print(json.dumps(known["offer"] | {"ready": ready}), flush=True)
    sys.exit(0)
if sys.argv[1] == "remove":
    print(json.dumps({"problem": known["stays"]}) if known["stays"] else "", flush=True)
    sys.exit(1 if known["stays"] else 0)
for line in known["lines"]:
    print(line if isinstance(line, str) else json.dumps(line), flush=True)
while known["waits"]:
    time.sleep(0.05)
if not known["fails"]:
    (folder / "ready").touch()
sys.exit(known["fails"])
"""
OFFER = {
    "ready": False, "folder": "/home/zoë fisch/environment", "case": "no_card", "driver": "580",
    "download_bytes": 400_000_000, "needed_bytes": 2_000_000_000, "free_bytes": 9_000_000_000,
    "problem": "",
}  # fmt: skip


class Person:
    """Someone before the window, and what does the work behind it."""

    def __init__(self, folder: Path, qtbot: QtBot) -> None:
        self.folder = folder
        self.qtbot = qtbot
        (folder / "shoal-setup.py").write_text(STAND_IN)
        self.prepare()
        self.wiring = EngineSetupWiring([sys.executable, str(folder / "shoal-setup.py")])
        self.ready: list[bool] = []
        self.wiring.ready.connect(lambda: self.ready.append(True))

    def prepare(self, **known: object) -> None:
        every = {"offer": OFFER, "lines": [], "waits": False, "fails": 0, "stays": ""} | known
        (self.folder / "known.json").write_text(json.dumps(every))

    @property
    def window(self) -> EngineSetupWindow:
        assert self.wiring.window is not None
        return self.wiring.window

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().split()

    def reads(self, text: str) -> None:
        def is_there() -> bool:
            window = self.wiring.window
            labels = [] if window is None else window.findChildren(QLabel)
            return any(text in label.text() and label.isVisible() for label in labels)

        self.qtbot.waitUntil(is_there, timeout=20_000)

    def click(self, words: str) -> None:
        (button,) = (
            button
            for button in self.window.findChildren(QPushButton)
            if button.text().replace("&", "") == words and button.isVisible()
        )
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def until(self, look: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(look()), timeout=20_000)


@pytest.fixture
def person(tmp_path: Path, qtbot: QtBot) -> Person:
    return Person(tmp_path, qtbot)


def test_nothing_is_downloaded_before_the_person_has_seen_how_much_and_said_yes(
    person: Person,
) -> None:
    person.prepare(lines=[{"step": "packages"}, "a library's chatter", {"say": "…"}])
    person.wiring.start()
    person.reads("about 400 MB")
    person.reads("2.0 GB of 9.0 GB that are free")
    person.reads("the CPU, because there is no NVIDIA card")
    person.reads("/home/zoë fisch/environment")
    assert person.asked() == ["check"]
    person.click("Download and set up")
    person.until(lambda: person.ready)
    assert person.wiring.window is None


def test_where_everything_is_there_no_window_appears(person: Person) -> None:
    (person.folder / "ready").touch()
    person.wiring.start()
    person.until(lambda: person.ready)
    assert person.wiring.window is None


def test_progress_is_shown_and_can_be_interrupted(person: Person) -> None:
    person.prepare(lines=[{"step": "torch"}, {"progress": "x", "share": 0.37}], waits=True)
    person.wiring.start()
    person.reads("about 400 MB")
    person.click("Download and set up")
    person.reads("Fetching PyTorch, the largest part … 37 %")
    person.click("Interrupt")
    person.reads("One more thing: the engine")
    assert not person.ready


def test_a_failure_is_told_and_can_be_tried_again_or_cleaned_up(person: Person) -> None:
    full = {"problem": "The disk is full; free some space."}
    person.prepare(lines=[full], fails=1, stays="The folder cannot be removed.")
    person.wiring.start()
    person.reads("about 400 MB")
    person.click("Download and set up")
    person.reads("The disk is full; free some space.")
    person.click("Remove what was downloaded")
    person.reads("The folder cannot be removed.")
    person.prepare()
    person.click("Remove what was downloaded")
    person.reads("One more thing: the engine")
    person.click("Download and set up")
    person.until(lambda: person.ready)
    assert person.asked() == ["check", "install", "remove", "remove", "check", "install"]


def test_a_disk_that_is_too_small_is_told_before_anything_begins_and_looked_at_again(
    person: Person,
) -> None:
    person.prepare(offer=OFFER | {"problem": "Setup needs about 2 GB of disk, but has 1."})
    person.wiring.start()
    person.reads("Setup needs about 2 GB of disk")
    person.prepare()
    person.click("Try again")
    person.reads("One more thing: the engine")
    assert person.asked() == ["check", "check"]


def test_closing_the_window_ends_what_runs(person: Person) -> None:
    person.prepare(waits=True, lines=[{"step": "packages"}])
    given_up: list[bool] = []
    person.wiring.given_up.connect(lambda: given_up.append(True))
    person.wiring.start()
    person.reads("about 400 MB")
    person.click("Download and set up")
    person.reads("Fetching the libraries it needs …")
    person.click("Quit")
    person.until(lambda: given_up)
    assert not person.ready


def test_a_setup_that_is_missing_is_told(qtbot: QtBot) -> None:
    wiring = EngineSetupWiring(["/nowhere/shoal-setup"])
    wiring.start()
    qtbot.waitUntil(lambda: wiring.window is not None, timeout=20_000)
    assert wiring.window is not None
    qtbot.addWidget(wiring.window)


def test_app_and_setup_agree_where_the_engine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "lib" / "shoal-app"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setattr(installed, "is_frozen", lambda: True)
    monkeypatch.setattr(sys, "executable", str(program))
    for variables in ({"SHOAL_HOME": str(tmp_path / "h")}, {"XDG_DATA_HOME": str(tmp_path / "d")}):
        monkeypatch.delenv("SHOAL_HOME", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for beside in (False, True):
            marker = program.with_name("start.json")
            marker.touch() if beside else marker.unlink(missing_ok=True)
            parts = Parts(program.parent / "engine")
            setup = Installed(parts, data_folder(variables, program.parent), Report())
            assert installed.engine_python(Home.from_environment()) == str(setup.python)
    monkeypatch.delenv("SHOAL_VERSIONS", raising=False)
    assert installed.own_command() == (str(program.with_name("shoal")),)
    monkeypatch.setenv("SHOAL_VERSIONS", str(tmp_path))
    assert installed.own_command() == (str(tmp_path / "shoal"),)
    assert installed.setup_command() == (str(program.with_name("shoal-setup")),)


def test_what_starts_the_app_on_windows_outlasts_the_version_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("SHOAL_VERSIONS", raising=False)
    assert installed.own_command() == (sys.executable, "-m", "app")
    monkeypatch.setenv("SHOAL_VERSIONS", str(tmp_path))
    launcher = tmp_path / "launcher" / "Scripts" / "pythonw.exe"
    assert installed.own_command() == (str(launcher), str(tmp_path / "start.py"))


def test_what_is_asked_while_a_command_is_still_ending_waits_its_turn(
    tmp_path: Path, qtbot: QtBot
) -> None:
    person = Person(tmp_path, qtbot)
    setup = EngineSetup([sys.executable, str(tmp_path / "shoal-setup.py")])
    ends: list[tuple[str, bool]] = []
    setup.ended.connect(lambda word, well: ends.append((word, well)))
    person.prepare(fails=1)
    setup.run("install")
    setup.run("remove")
    qtbot.waitUntil(lambda: len(ends) == 2, timeout=10_000)
    assert ends == [("install", False), ("remove", True)]
    assert person.asked() == ["install", "remove"]
