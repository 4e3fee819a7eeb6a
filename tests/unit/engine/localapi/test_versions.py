"""Which version starts, and what becomes of one that does not: with real programs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.localapi import versions
from engine.localapi.installation import Installation
from engine.localapi.versions import MAX_STARTS, RESTART_EXIT, Versions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An installation in a path with blanks, whose version 1.0.0 runs."""
    root = tmp_path / "Shoal für alle"
    root.mkdir()
    (root / "start.py").write_bytes(Path(versions.__file__).read_bytes())
    (root / "mark.py").write_text(
        "import sys, pathlib, start\nstart.mark_healthy(pathlib.Path('.'), sys.argv[1])\n"
    )
    add(root, "1.0.0", "exit 0")
    versions.adopt(root, "1.0.0")
    return root


def add(root: Path, version: str, does: str) -> None:
    """A version that notes its start, then does something; `$HEALTHY` says that it works."""
    folder = versions.folder_of(root, version)
    folder.mkdir(parents=True)
    program = folder / "shoal"
    program.write_text(
        f'#!/bin/sh\ncd "$SHOAL_VERSIONS"\n'
        f'echo "{version} $*|$SHOAL_TRIAL|$SHOAL_ROLLED_BACK_FROM" >> started\n'
        f'HEALTHY="{sys.executable} -S mark.py {version}"\n{does}\n'
    )
    program.chmod(0o755)
    (folder / "start.json").write_text('{"command": ["{here}/shoal"]}')


def start(root: Path, *words: str, within_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    code = f"import sys, pathlib, start; sys.exit(start.run(pathlib.Path('.').resolve(), sys.argv[1:], {within_s}))"
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *words],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def started(root: Path) -> list[str]:
    return (root / "started").read_text().splitlines()


def test_version_that_says_it_works_runs_from_then_on_and_the_one_before_is_kept(root):
    add(root, "2.0.0", "$HEALTHY")
    versions.stage(root, "2.0.0")
    assert start(root, "engine", "--debug").returncode == 0
    assert start(root).returncode == 0
    assert started(root) == ["2.0.0 engine --debug|2.0.0|", "2.0.0 ||"]
    assert versions.read(root) == Versions(current="2.0.0", previous="1.0.0")


def test_version_that_crashes_at_once_gives_way_to_the_one_before_in_the_same_start(root):
    add(root, "2.0.0", "kill -SEGV $$")
    versions.stage(root, "2.0.0")
    done = start(root, "engine")
    assert done.returncode == 0
    assert started(root) == ["2.0.0 engine|2.0.0|", "1.0.0 engine||2.0.0"]
    assert "2.0.0 did not start, so 1.0.0 runs again" in done.stderr
    assert versions.read(root) == Versions(current="1.0.0", failed="2.0.0")


def test_version_that_says_nothing_in_time_is_ended(root):
    add(root, "2.0.0", "exec sleep 60")
    versions.stage(root, "2.0.0")
    assert start(root, within_s=0.5).returncode == 0
    assert [line.split()[0] for line in started(root)] == ["2.0.0", "1.0.0"]


def test_version_that_takes_the_computer_down_is_tried_only_so_often(root):
    add(root, "2.0.0", "kill -9 $PPID; exit 1")
    versions.stage(root, "2.0.0")
    for _ in range(MAX_STARTS):
        assert start(root, "engine").returncode == -signal.SIGKILL
    assert start(root, "engine").returncode == 0
    assert started(root)[-1] == "1.0.0 engine||2.0.0"


def test_program_that_asks_for_it_is_started_again_as_the_new_version(root):
    add(root, "1.5.0", f"exit {RESTART_EXIT}")
    add(root, "2.0.0", "$HEALTHY; exit 7")
    versions.adopt(root, "1.5.0")
    script = 'import sys, pathlib, start; start.stage(pathlib.Path("."), "2.0.0")'
    (versions.folder_of(root, "1.5.0") / "shoal").write_text(
        f"#!/bin/sh\ncd \"$SHOAL_VERSIONS\"\n{sys.executable} -S -c '{script}'; exit {RESTART_EXIT}\n"
    )
    assert start(root, "engine").returncode == 7  # it worked, so its end is its own affair
    assert versions.read(root) == Versions(current="2.0.0", previous="1.5.0")


def test_short_commands_are_the_present_versions_and_try_nothing(root):
    add(root, "2.0.0", "exit 1")
    versions.stage(root, "2.0.0")
    assert start(root, "status", "--json").returncode == 0
    assert started(root) == ["1.0.0 status --json||"]
    assert versions.read(root).starts == 0


@pytest.mark.parametrize(
    "does",
    [
        "exit 0",
        f'{sys.executable} -S -c \'import start, pathlib; start.excuse(pathlib.Path("."), "2.0.0")\'; exit 1',
    ],
)
def test_version_that_could_not_begin_for_other_reasons_is_not_to_blame(root, does):
    add(root, "2.0.0", does)
    versions.stage(root, "2.0.0")
    for _ in range(MAX_STARTS + 1):
        start(root, "engine")
    assert {line.split()[0] for line in started(root)} == {"2.0.0"}
    assert versions.read(root).staged == "2.0.0"


def test_what_ends_the_start_ends_the_program_and_blames_nobody(root):
    add(root, "2.0.0", "trap 'echo ended >> started; exit 1' TERM; while :; do sleep 0.1; done")
    versions.stage(root, "2.0.0")
    starting = subprocess.Popen([sys.executable, "start.py", "engine"], cwd=root)
    until = time.monotonic() + 20
    while not (root / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    starting.terminate()
    assert starting.wait(20) == 1
    assert started(root)[1:] == ["ended"]
    assert versions.read(root).staged == "2.0.0"


@pytest.mark.parametrize("text", ["", "[]", '{"current": "../../etc"}', '{"current": "9.9.9"}'])
def test_installation_that_is_not_whole_says_so(root, text):
    (root / "versions.json").write_text(text)
    done = start(root, "engine")
    assert (done.returncode, "install it again" in done.stderr) == (1, True)


def test_a_half_installed_version_is_not_tried(root):
    versions.folder_of(root, "2.0.0").mkdir()
    versions.stage(root, "2.0.0")
    assert start(root, "engine").returncode == 0
    assert started(root) == ["1.0.0 engine||2.0.0"]


def test_the_installers_word_for_the_first_version(root):
    add(root, "3.0.0", "exit 0")
    subprocess.run([sys.executable, "start.py", "--adopt", "3.0.0"], cwd=root, check=True)
    found = json.loads((root / "versions.json").read_text())
    assert (found["current"], found["previous"]) == ("3.0.0", "1.0.0")


def test_a_version_that_failed_is_told_until_the_one_that_took_over_works(root, monkeypatch):
    add(root, "2.0.0", "exit 1")
    versions.stage(root, "2.0.0")
    start(root, "engine")
    monkeypatch.setenv("SHOAL_VERSIONS", str(root))
    monkeypatch.setenv("SHOAL_ROLLED_BACK_FROM", "2.0.0")
    monkeypatch.delenv("SHOAL_PACKAGE", raising=False)
    monkeypatch.delenv("SHOAL_TRIAL", raising=False)
    took_over = Installation.from_environment()
    assert took_over.rolled_back_from == "2.0.0"
    took_over.mark_healthy()
    assert versions.read(root) == Versions(current="1.0.0")
    assert Installation.from_environment().rolled_back_from == ""
    start(root, "engine")
    assert started(root)[-1] == "1.0.0 engine||"
