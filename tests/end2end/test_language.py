"""The app in the language of its user, on a real (virtual) screen, used by keyboard."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.settings import Language, Settings
from engine.localapi.running import Home
from tests.support.desktop.screen import (
    LOOK_LIMIT_S,
    Desktop,
    desktop,
    require_desktop_programs,
    wait_until,
)

pytestmark = pytest.mark.end2end

REPOSITORY = Path(__file__).parents[2]
FAKE_ENGINE = f"{sys.executable} -m tests.support.fake_engine"
GERMAN_SYSTEM = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"}
APP_PAGE = 4
FRENCH_ROW = 3


@contextmanager
def running(screen: Desktop, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "app.log").open("ab") as log:
        app = subprocess.Popen(
            [sys.executable, "-m", "app", "--engine-command", FAKE_ENGINE, "--"],
            cwd=REPOSITORY,
            env=screen.environment | GERMAN_SYSTEM | {"SHOAL_HOME": str(folder / "home")},
            stdout=log,
            stderr=log,
        )
    try:
        yield app
    finally:
        screen.grab(folder / "at-the-end.png")
        app.terminate()
        app.wait(timeout=15)


def test_first_start_speaks_the_systems_language_and_the_next_one_that_was_chosen(
    tmp_path: Path,
) -> None:
    require_desktop_programs()
    settings = Settings(Home.under(tmp_path / "home"))
    with desktop(tmp_path, tray=False) as screen:
        with running(screen, tmp_path) as app:
            screen.wait_for_window("^Shoal$")
            screen.keys("alt+e")  # Einstellungen
            screen.wait_for_window("Shoal – Einstellungen")
            screen.keys(*["Down"] * APP_PAGE, "alt+c", *["Down"] * FRENCH_ROW)  # Sprache

            def french() -> bool:
                settings._file.sync()
                return settings.language is Language.FRENCH

            wait_until(french, LOOK_LIMIT_S, "the choice of French")
            screen.grab(tmp_path / "chosen.png")
            screen.keys("alt+F4")
            wait_until(
                lambda: not screen.windows("Einstellungen"), LOOK_LIMIT_S, "the end of the settings"
            )
            screen.keys("alt+b")  # Shoal beenden
            assert app.wait(timeout=15) == 0
        with running(screen, tmp_path) as app:
            screen.wait_for_window("^Shoal$")
            screen.keys("alt+r")  # Réglages
            screen.wait_for_window("Shoal – Réglages")
