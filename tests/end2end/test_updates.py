"""From one version to the next and back, with real engines, real packages and a batch that runs on.

None of the versions can load Qt, as on a server.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import engine
from engine.localapi import versions
from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from tests.support.real_engine import RealEngine, eventually, gone, real_engine
from tests.support.tiny_models import save_tiny
from tests.support.update_site import UpdateSite

pytestmark = pytest.mark.end2end
LIMIT_S = 240.0
SOURCE = Path(engine.__file__).parent
NUM_ROWS = 20_000
"""More than can be done while the test runs."""
MIGRATION = '\nMIGRATIONS = (*MIGRATIONS, Migration("{0}", ("CREATE TABLE v{0} (id INTEGER)",)))\n'
CRASH = "\nimport os, signal\nasync def _run(options, database):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
NO_QT = "raise ImportError('there is no Qt on a server')\n"


def built(folder: Path, version: str, *, crashes: bool = False) -> bytes:
    """A package that installs this source as another version, with a migration more."""
    tree = folder / version
    (tree / "PySide6").mkdir(parents=True)
    (tree / "PySide6" / "__init__.py").write_text(NO_QT)
    (tree / "resources").symlink_to(SOURCE.parent / "resources")
    (tree / "start.json").write_text('{"command": ["{here}/shoal"]}')
    (tree / "shoal").write_text(
        '#!/bin/sh\nPYTHONPATH=$(dirname "$0") PYTHONDONTWRITEBYTECODE=1 '
        f'exec {sys.executable} -m engine "$@"\n'
    )
    (tree / "shoal").chmod(0o755)
    subprocess.run(["cp", "-r", SOURCE, tree / "engine"], check=True)
    initial = tree / "engine" / "__init__.py"
    initial.write_text(initial.read_text().replace(engine.__version__, version))
    migrations = tree / "engine" / "storage" / "migrations.py"
    added = map(MIGRATION.format, range(1, int(version.split(".")[1])))
    migrations.write_text(migrations.read_text() + "".join(added))
    if crashes:
        run = tree / "engine" / "node" / "run.py"
        run.write_text(run.read_text() + CRASH)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        archive.add(tree, version)
    script = (
        '#!/bin/sh\nset -e\n[ "$1 $2" = "-- --beside" ]\n'
        'tail -n +6 "$0" | tar xz -C "$3/versions"\nexit 0\n'
    )
    return script.encode() + packed.getvalue()


@contextmanager
def installation(tmp_path: Path, site: UpdateSite, swarm: RealEngine) -> Iterator[Home]:
    """Version 0.1.0 as its own installer leaves it, running as a service would, as the swarm's second stage."""
    root, home = tmp_path / "Programs für alle", Home.under(tmp_path / "home")
    (root / "versions").mkdir(parents=True)
    (root / "start.py").write_bytes(Path(versions.__file__).read_bytes())
    first = tmp_path / "first.run"
    first.write_bytes(built(tmp_path, "0.1.0"))
    subprocess.run(["sh", first, "--", "--beside", root], check=True)
    versions.adopt(root, "0.1.0")
    home.config_dir.mkdir(parents=True)
    swarm.wait_state("idle")
    swarm.api.call("POST", "/shoal/v1/swarm/create", {"name": "reef"})
    home.settings_file.write_text(f'[updates]\nurl = "{site.url}"\nkey = "{site.key}"\n')
    invite = swarm.api.call("GET", "/shoal/v1/swarm")["invite"]
    service = psutil.Popen(
        [sys.executable, root / "start.py", "engine", "--blocks", "2:4", "--invite", invite],
        cwd=tmp_path,  # else Python would find this source first
        env={**os.environ, "SHOAL_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: find_running(home), lambda ready: ready is not None, LIMIT_S)
        yield home
    finally:
        family = service.children(recursive=True)
        service.terminate()
        service.wait(30)
        assert gone(family, 30) == []


def shoal(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", *words],
        env={**os.environ, "SHOAL_HOME": str(home.config_dir.parent)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def others_may_use(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o077)


def call(home: Home, method: str, path: str, body: Any = None) -> dict[str, Any]:
    ready = find_running(home)
    assert ready is not None
    return ApiClient.of(ready).call(method, f"/shoal/v1/{path}", body)


class Stream:
    """A long answer of another member of the swarm, read in the background."""

    def __init__(self, engine: RealEngine) -> None:
        self.text, self._engine = "", engine
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        body = {"prompt": "Hello", "max_tokens": 250, "temperature": 1.5, "seed": 1, "stream": True}
        with self._engine.api.stream("POST", "/v1/completions", body) as events:
            for line in events:
                if line != "[DONE]":
                    self.text += json.loads(line)["choices"][0]["text"]

    def whole(self) -> str:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()
        return self.text


def test_chats_and_a_running_batch_survive_an_update_and_one_that_does_not_start(tmp_path):
    tiny = save_tiny("llama", tmp_path / "tiny")
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f"{number},word {number}" for number in range(NUM_ROWS)]
    source.write_text("\n".join(["id,text", *rows]))
    batch = {"input_path": str(source), "output_path": str(output), "template": "Say {text}"}
    batch["parameters"] = {"max_tokens": 12, "temperature": 0}
    half = ("--model", str(tiny), "--blocks", "0:2")
    with (
        UpdateSite(tmp_path) as site,
        real_engine(tmp_path / "other", *half) as other,
        installation(tmp_path, site, other) as home,
    ):
        chat = call(home, "POST", "chats", {"title": "Herrings"})["id"]
        job = call(home, "POST", "jobs", batch)["id"]

        def working(more_than: int = 0) -> int:
            path = f"jobs/{job}"
            info = eventually(
                lambda: call(home, "GET", path), lambda i: i["done_rows"] > more_than, LIMIT_S
            )
            return info["done_rows"]

        done = working()
        assert "HTTP 404" in shoal(home, "update", "check").stderr
        site.publish("0.2.0", built(tmp_path, "0.2.0"), summary="Swims faster.")
        installed = json.loads(shoal(home, "update", "install", "--json").stdout)
        assert (installed["step"], installed["version"]) == ("ready", "0.2.0")
        assert installed["summary"] == "Swims faster."
        undisturbed = Stream(other).whole()
        stream, engine = Stream(other), find_running(home)
        eventually(lambda: len(stream.text), lambda length: length > 40, LIMIT_S)
        call(home, "POST", "updates/restart")
        status = call(home, "GET", "status")
        assert (status["state"], status["update"]["step"]) == ("draining", "restarting")
        assert len(stream.text) < len(undisturbed)
        assert stream.whole() == undisturbed
        assert find_running(home) == engine
        eventually(lambda: find_running(home), lambda ready: ready not in (None, engine), LIMIT_S)
        assert call(home, "GET", "status")["version"] == "0.2.0"
        other.wait(lambda status: len(status["plan"]) == 2)
        assert Stream(other).whole() == undisturbed
        assert call(home, "GET", f"chats/{chat}")["title"] == "Herrings"
        done = working(done)

        site.publish("0.3.0", built(tmp_path, "0.3.0", crashes=True))
        assert shoal(home, "update", "install").returncode == 0
        failed = shoal(home, "update", "restart")
        assert failed.returncode == 1
        assert "Shoal 0.3.0 did not start, so 0.2.0 runs again" in failed.stderr
        status = call(home, "GET", "status")
        assert (status["version"], status["update"]["failed"]) == ("0.2.0", "0.3.0")
        assert "Chats and batch jobs are those of before" in "".join(status["notices"])
        assert call(home, "GET", f"chats/{chat}")["title"] == "Herrings"
        working(done)
        call(home, "POST", f"jobs/{job}/cancel")
        table = eventually(
            lambda: list(csv.DictReader(io.StringIO(output.read_text("utf-8-sig")))),
            lambda rows: len(rows) == call(home, "GET", f"jobs/{job}")["done_rows"],
            LIMIT_S,
        )

        # What a service manager's stop does; nobody else has these blocks.
        other.wait(lambda status: len(status["plan"]) == 2)
        stream, ready = Stream(other), find_running(home)
        assert ready is not None
        eventually(lambda: len(stream.text), lambda length: length > 40, LIMIT_S)
        service = psutil.Process(ready.pid).parent()
        assert service is not None
        service.terminate()
        assert stream.whole() == undisturbed

        # Another person of this computer finds a port of their own, and nothing to read.
        assert ready.url != other.url
        assert [file for file in home.identity_file.parent.iterdir() if others_may_use(file)] == []
    ids = [int(row["id"]) for row in table]
    assert len(ids) > done
    assert ids == sorted(set(ids)), "a row was done twice"
    assert all(row["finish_reason"] in ("stop", "length") for row in table)
