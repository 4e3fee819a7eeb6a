"""Repairs of Shoal on Windows, and versions beside one another."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from engine.localapi import versions
from installers.setup_steps.installed import Parts
from installers.setup_steps.report import SetupFailed
from installers.windows.provision import Exit
from tests.support.windows.installation import Pc


def run_by_shortcut(pc: Pc) -> subprocess.CompletedProcess[str]:
    """What a click on the icon does; the windows are small programs here."""
    return subprocess.run(
        [sys.executable, "-S", pc.root / "start.py"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def windows_that(pc: Pc, version: str, *does: str) -> None:
    program = pc.root / "versions" / version / "app/Scripts/pythonw.exe"
    says = f'echo "{version} ${{SHOAL_TRIAL:--}} ${{SHOAL_ROLLED_BACK_FROM:--}} $*"'
    program.write_text("\n".join(["#!/bin/sh", says, *does]))
    program.chmod(0o755)


def test_newer_version_is_put_beside_and_the_one_before_runs_again_if_it_fails(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    windows_that(pc, "1", "exit 0")
    assert run_by_shortcut(pc).stdout == "1 - - -m app\n"
    pc.unpack("2")
    assert pc.run("install") is Exit.DONE
    assert pc.said == "Shoal 2 is tried at the next start; if it fails, 1 runs again."
    windows_that(pc, "2", "exit 1")
    done = run_by_shortcut(pc)
    assert done.stdout.splitlines() == ["2 2 - -m app", "1 - 2 -m app"]
    engines = pc.windows.linux / "opt/shoal/versions"
    assert sorted(engine.name for engine in engines.iterdir()) == ["1", "2"]


def test_version_that_has_shown_that_it_works_stays_and_the_next_setup_removes_the_one_before(
    pc: Pc,
) -> None:
    for version in ("1", "2"):
        pc.unpack(version)
        assert pc.run("install") is Exit.DONE
    versions.mark_healthy(pc.root, "2")
    windows_that(pc, "2", "exit 0")
    assert run_by_shortcut(pc).stdout == "2 - - -m app\n"
    pc.unpack("3")
    assert pc.run("install") is Exit.DONE
    engines = pc.windows.linux / "opt/shoal/versions"
    for folder in (pc.root / "versions", engines):
        assert sorted(version.name for version in folder.iterdir()) == ["2", "3"]
    assert "rm -rf /opt/shoal/versions/1" in " ".join(pc.windows.said())


@pytest.mark.parametrize("reason", ["uv", "linux", "disk"])
def test_update_that_fails_half_way_leaves_the_version_that_runs_as_it_was(
    pc: Pc, reason: str
) -> None:
    assert pc.run("install") is Exit.DONE
    windows_that(pc, "1", "exit 0")
    pc.unpack("2")
    if reason == "uv":
        (pc.windows.folder / "uv-fails.txt").write_text("error: dns error", "utf-8")
    elif reason == "linux":
        pc.windows.put(provision_fails="PyTorch cannot be reached; try again.")
    else:
        pc.machine.free_bytes = 1 << 20
    assert pc.run("install") is Exit.FAILED
    assert run_by_shortcut(pc).stdout == "1 - - -m app\n"


def test_linux_that_is_new_has_no_engine_to_go_back_to(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    pc.windows.put(distributions={})
    shutil.rmtree(pc.windows.linux)
    pc.unpack("2")
    assert pc.run("install") is Exit.DONE
    assert pc.said == "Shoal is installed."
    assert versions.read(pc.root).current == "2"
    assert [version.name for version in (pc.root / "versions").iterdir()] == ["2"]


def test_repair_that_fails_says_so_at_the_next_start_and_chats_can_still_be_kept(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    (pc.windows.folder / "uv-fails.txt").write_text("error: dns error", "utf-8")
    assert pc.run("install", "--repair") is Exit.FAILED
    assert "Shoal is not whole" in run_by_shortcut(pc).stderr
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert (pc.state / "kept" / "engine.tar").exists()


def test_repair_installs_again_and_keeps_linux_with_what_is_in_it(pc: Pc) -> None:
    pc.run("install")
    chats = pc.windows.linux / "home/shoal/.local/share/shoal/shoal.sqlite3"
    chats.write_text("chats")
    before = len(pc.windows.calls())
    assert pc.run("install", "--repair") is Exit.DONE
    again = "\n".join(pc.windows.said()[before:])
    assert "provision.sh" in again
    assert "--import" not in again
    assert "--unregister" not in again
    assert chats.read_text() == "chats"
    assert len(pc.uv_calls()) == 8
    assert "provision.sh --repair" in again


def test_newer_version_leaves_none_of_the_older_ones_wheels_in_linux(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    pc.unpack("2")
    assert pc.run("install") is Exit.DONE
    parts = Parts(pc.windows.linux / "opt/shoal/setup")
    assert parts.wheel.name == "shoal-2-py3-none-any.whl"
    (parts.folder / "shoal-1-py3-none-any.whl").touch()
    with pytest.raises(SetupFailed, match=r"shoal-1-.*, shoal-2-"):
        _ = parts.wheel
