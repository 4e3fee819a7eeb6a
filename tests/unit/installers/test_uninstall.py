"""Removing what the .run has installed, while it runs, with processes that stand in for app and engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the script asks Linux what runs"
)
SCRIPT = Path(__file__).parents[3] / "installers" / "linux" / "uninstall.sh"
PROGRAMS = ("dirname", "grep", "rm", "sed", "sh", "sleep", "tr")
WAITS = "import sys, time; print('.', flush=True); time.sleep(600)"


class Person:
    """A home with an installation, and programs that run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / ".local" / "lib" / "shoal"
        self.root.mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "uninstall.sh")
        self.state = home / ".local" / "state" / "shoal"
        self.state.mkdir(parents=True)
        self.running: list[subprocess.Popen[bytes]] = []
        (home / "programs").mkdir()
        for name in PROGRAMS:  # no systemctl, which would ask a real service
            (home / "programs" / name).symlink_to(shutil.which(name) or name)

    def starts(self, folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", WAITS, str(folder / "shoal")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.running.append(process)
        assert process.stdout is not None
        process.stdout.read(1)
        return process

    def uninstalls(self) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(self.home), "PATH": str(self.home / "programs")}
        return subprocess.run(
            ["/bin/sh", self.root / "uninstall.sh"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path / "Zoë Fisch")
    yield person
    for process in person.running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("ours", ["app", "engine"])
def test_what_runs_of_this_installation_ends_and_nothing_else_does(
    person: Person, ours: str
) -> None:
    running = person.starts(person.root / "versions" / "0.1.0")
    other = person.starts(person.home)  # which has a number by now that was once Shoal's
    app, engine = (running, other) if ours == "app" else (other, running)
    ready = {"url": "http://127.0.0.1:1", "pid": engine.pid, "process_start": 1}
    (person.state / "engine.json").write_text(json.dumps(ready))
    (person.state / "app.lock").write_text(f"{app.pid}\nshoal-app\npc\n")  # as Qt writes it
    done = person.uninstalls()
    assert (done.returncode, done.stderr) == (0, "")
    assert running.wait(10) != 0
    assert other.poll() is None
    assert not person.root.exists()
    assert person.state.exists()
