import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine.cli.start import qt_problem, window_problem

REPOSITORY = Path(engine.__file__).parents[1]
MISSING = "libEGL.so.1: cannot open shared object file: No such file or directory"


@pytest.fixture
def packages(tmp_path, monkeypatch) -> Path:
    """A folder whose packages a child process finds before the real ones."""
    folder = tmp_path / "packages"
    (folder / "PySide6").mkdir(parents=True)
    (folder / "PySide6" / "__init__.py").write_text("")
    (folder / "PySide6" / "QtWidgets.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{REPOSITORY}")
    return folder


def test_without_a_display_there_is_no_window(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert window_problem() == "there is no display."


def test_qt_that_cannot_find_a_library_says_which(packages):
    assert qt_problem() is None
    (packages / "PySide6" / "QtWidgets.py").write_text(f"raise ImportError({MISSING!r})")
    assert qt_problem() == f"Qt cannot be loaded ({MISSING})."


def test_with_a_display_the_tray_takes_over_with_the_engines_arguments(packages, tmp_path):
    (packages / "app").mkdir()
    (packages / "app" / "__init__.py").write_text("")
    (packages / "app" / "__main__.py").write_text(
        "import json, sys; print(json.dumps(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-m", "engine", "--stages", "2", "--dtype", "float32"],
        env={**os.environ, "DISPLAY": ":99"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == ["--", "--stages", "2", "--dtype", "float32"]
