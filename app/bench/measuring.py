"""Starts the app anew and watches it from outside: how soon it is there, memory, idle CPU."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
from PySide6.QtCore import qVersion

from app.bench.person import Plan
from app.bench.report import Report, Stalls
from engine.core.clock import SystemClock

MEMORY_EVERY_S = 0.5
END_LIMIT_S = 20.0
ENGINE_LOG = "driven.log"


class MeasurementFailed(Exception):
    """The app could not be measured; the text is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured."""

    engine_command: Sequence[str]
    launches: int
    """Whose median counts; one more before them reads everything from disk."""
    messages: int
    """That the engine's long conversation has, for the report."""
    rows: int
    plan: Plan


@dataclass(slots=True)
class _Seen:
    """What one run of the app has told, and what was seen of it."""

    started_s: float
    scenes: dict[str, dict[str, Any]] = field(default_factory=dict)
    rss_bytes: dict[str, int] = field(default_factory=dict)
    rss_peak_bytes: int = 0
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Of the process so far, at the end of each scene."""

    @property
    def launch_s(self) -> float:
        """From the start of the process to its icon."""
        return float(self.scenes["shown"]["at_s"]) - self.started_s


def measure(bench: Bench) -> Report:
    """Measure the app on a home of its own, which is gone afterwards.

    Raises:
        MeasurementFailed: The app or its engine did not do what was expected.
    """
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        home = Path(folder)
        rows_file = home / "rows.txt"
        rows_file.write_text(
            "".join(f"Say in one word what fish number {n} does.\n" for n in range(bench.rows))
        )
        launches = [
            _run(bench, home, rows_file, launch_only=True) for _ in range(bench.launches + 1)
        ]
        seen = _run(bench, home, rows_file, launch_only=False)
    launches_s = [one.launch_s for one in launches[1:]]
    scenes = seen.scenes
    return Report(
        platform=str(scenes["shown"]["platform"]),
        surface=str(scenes["shown"]["surface"]),
        qt=str(qVersion()),
        cores=os.cpu_count() or 1,
        launch_s=statistics.median(launches_s),
        launches_s=launches_s,
        rss_bytes={
            scene: size for scene, size in seen.rss_bytes.items() if not scene.endswith("-begins")
        },
        rss_peak_bytes=seen.rss_peak_bytes,
        idle_cpu_percent=_idle_percent(seen, "idle", bench.plan.idle_s),
        idle_windows_cpu_percent=_idle_percent(seen, "idle-windows", bench.plan.idle_s),
        messages=bench.messages,
        open_s=scenes["open"]["open_s"],
        rows=scenes["batch"]["rows"],
        rows_done=scenes["batch"]["rows_done"],
        streamed_tokens=scenes["stream"]["tokens"],
        stalls={
            scene: Stalls.model_validate(facts["stalls"])
            for scene, facts in scenes.items()
            if "stalls" in facts
        },
    )


def _idle_percent(seen: _Seen, scene: str, seconds: float) -> float:
    return 100 * (seen.cpu_s[scene] - seen.cpu_s[f"{scene}-begins"]) / seconds


def _run(bench: Bench, home: Path, rows_file: Path, *, launch_only: bool) -> _Seen:
    """Start the app, hear what it tells, and wait for its end."""
    plan = bench.plan
    command = [
        sys.executable, "-m", "app.bench.driven", "--idle-s", str(plan.idle_s),
        "--stream-s", str(plan.stream_s), "--batch-s", str(plan.batch_s),
        "--settle-s", str(plan.settle_s),
        "--rows-file", str(rows_file), *(["--launch-only"] if launch_only else []),
        "--", *bench.engine_command,
    ]  # fmt: skip
    environment = os.environ | {"SHOAL_HOME": str(home / "home")}
    log = home / ENGINE_LOG
    with log.open("wb") as errors:
        seen = _Seen(SystemClock().monotonic_s())
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
        try:
            assert process.stdout is not None
            with _watching_memory(process.pid, seen):
                _listen(process.stdout, psutil.Process(process.pid), seen)
            code = process.wait(timeout=END_LIMIT_S)
        finally:
            _end(process)
    if code != 0:
        raise MeasurementFailed(_why(seen, code, log))
    return seen


def _listen(told: IO[bytes], process: psutil.Process, seen: _Seen) -> None:
    """Take what the app tells, until it ends."""
    for line in told:
        facts = json.loads(line)
        scene = facts.pop("scene")
        seen.scenes[scene] = facts
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seen.cpu_s[scene] = times.user + times.system
            seen.rss_bytes[scene] = process.memory_info().rss


@contextmanager
def _watching_memory(pid: int, seen: _Seen) -> Iterator[None]:
    """Look at the memory now and then: it may be higher between two scenes."""
    over = threading.Event()
    process = psutil.Process(pid)

    def look() -> None:
        with suppress(psutil.NoSuchProcess):
            while not over.wait(MEMORY_EVERY_S):
                seen.rss_peak_bytes = max(seen.rss_peak_bytes, process.memory_info().rss)

    looker = threading.Thread(target=look, name="memory", daemon=True)
    looker.start()
    try:
        yield
    finally:
        over.set()
        looker.join()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave no process behind: the app ends its engine when it is asked to end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()  # its engine then ends with its lease
            process.wait()


def _why(seen: _Seen, code: int, log: Path) -> str:
    if "failed" in seen.scenes:
        return f"The app could not be measured: {seen.scenes['failed']['reason']}"
    last = (log.read_text("utf-8", "replace").strip().splitlines() or ["it left no word"])[-1]
    return f"The app ended with code {code} before it was measured ({last[:300]})."
