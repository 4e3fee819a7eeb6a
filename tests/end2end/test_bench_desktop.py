"""`shoal bench desktop` as a person runs it, in a hurry; nothing about its numbers is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.desktop.screen import desktop, require_desktop_programs

pytestmark = pytest.mark.end2end

HURRY = "--launches 1 --idle-s 1 --stream-s 1 --batch-s 1 --settle-s 0.2 --rows 2000 --messages 200"
SCENES = {"window", "open", "stream", "batch"}


def bench(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", "bench", "desktop", *words],
        env=environment, capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip


def test_every_number_stands_beside_its_target(tmp_path: Path) -> None:
    require_desktop_programs()
    with desktop(tmp_path, tray=True) as screen:
        done = bench(screen.environment, "--json", *HURRY.split())
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["surface"] == "tray"
    assert len(report["launches_s"]) == 1
    assert report["messages"] == 200
    assert report["rows"] == 2000
    assert report["streamed_tokens"] > 0
    assert set(report["rss_bytes"]) == {"shown", "idle", "idle-windows", *SCENES}
    assert report["rss_peak_bytes"] >= max(report["rss_bytes"].values()) * 0.9
    assert set(report["stalls"]) == SCENES
    for stalls in report["stalls"].values():
        assert set(stalls) == {
            "seconds", "longest_ms", "busy_ms", "where", "busiest_ms", "busiest_where", "late",
            "median_ms",
        }  # fmt: skip
    for key in ("launch_s", "open_s", "idle_cpu_percent", "idle_windows_cpu_percent"):
        assert report[key] >= 0
    assert [one["name"] for one in report["targets"]] == [
        "launch", "memory", "idle CPU",
        "longest stall, open", "longest stall, stream", "longest stall, batch",
    ]  # fmt: skip
    assert all(one["met"] is (one["value"] <= one["limit"]) for one in report["targets"])


def test_without_a_screen_it_says_so() -> None:
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    done = bench(bare, "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("shoal: There is no screen here")
