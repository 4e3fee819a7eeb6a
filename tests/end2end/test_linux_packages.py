"""The packages for Linux: the .deb on a new and minimal Debian with a screen, the .run in a new home."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine import __version__
from tests.support.clean_system import (
    PERSON,
    PERSONS_HOME,
    CleanSystem,
    require_clean_systems,
)
from tests.support.desktop.screen import desktop, require_desktop_programs, wait_until
from tests.support.starter import starter_directory

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
DEB, RUN = f"shoal_{__version__}_amd64.deb", f"shoal-{__version__}-x86_64.run"
RELEASE = os.environ.get("SHOAL_TEST_DEBIAN", "bookworm")
HOME = PERSONS_HOME.lstrip("/")
SETUP_LIMIT_S = 240.0
START_LIMIT_S = 120.0
SHOWN_LIMIT_S = 40.0


def build(folder: Path, *targets: str) -> Path:
    words = (*targets, "--fast", "--out", str(folder))
    done = subprocess.run(
        [sys.executable, ROOT / "installers" / "build.py", *words],
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the packages are."""
    require_clean_systems()
    if shutil.which("makeself") is None:
        pytest.skip("needs makeself")
    return build(tmp_path_factory.mktemp("out"), "deb", "run")


@pytest.fixture(scope="module")
def package(built: Path) -> Path:
    return built / DEB


@pytest.fixture(scope="module")
def system(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanSystem]:
    folder = tmp_path_factory.mktemp("debian")
    shared = {"/srv/models": starter_directory().parent}
    try:
        made = CleanSystem.unpack(folder / "root", RELEASE, shared)
        shutil.copy(package, made.folder / "root" / package.name)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_package_keeps_to_the_rules_of_debian_and_of_desktops(package: Path) -> None:
    missing = [name for name in ("lintian", "desktop-file-validate", "appstreamcli", "man")
               if shutil.which(name) is None]  # fmt: skip
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    files = package.parent / "files"
    subprocess.run(["dpkg-deb", "--extract", package, files], check=True)
    share = files / "usr" / "share"
    for command in (
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)],
        ["desktop-file-validate", str(share / "applications" / "shoal.desktop")],
        ["appstreamcli", "validate", "--no-net", *map(str, (share / "metainfo").glob("*.xml"))],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    autostart = [path for path in files.rglob("*") if "autostart" in path.parts]
    assert autostart == []
    notices = (files / "usr/lib/shoal/THIRD-PARTY-NOTICES.txt").read_text("utf-8")
    for text in (
        "PySide6",
        "pydantic",
        "GNU LESSER GENERAL PUBLIC LICENSE",
        "You may replace them",
    ):
        assert text in notices
    bill = json.loads((files / "usr/lib/shoal/sbom.cdx.json").read_text("utf-8"))
    names = {component["name"] for component in bill["components"]}
    assert {"torch", "hivemind", "uv", "PySide6-Essentials".lower()} <= {n.lower() for n in names}
    assert not list(files.rglob("libtorch*"))
    shutil.rmtree(files)


def test_the_same_sources_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = build(tmp_path, "deb", "run")
    sums = (built / "SHA256SUMS").read_text()
    assert (again / "SHA256SUMS").read_text() == sums
    assert {line.split()[1] for line in sums.splitlines()} == {DEB, RUN}
    checked = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=built, check=False
    )
    assert checked.returncode == 0


@dataclass
class Engine:
    """The engine that the installed app has started."""

    system: CleanSystem

    def file(self, name: str) -> Path:
        return self.system.folder / HOME / name

    def ready(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self.file(".local/state/shoal/engine.json").read_text()))
        except (OSError, ValueError):
            return None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        ready = self.ready()
        assert ready is not None
        token = self.file(".local/share/shoal/api-token").read_text().strip()
        request = urllib.request.Request(
            ready["url"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def can_chat(self) -> bool:
        return self.ready() is not None and bool(self.ask("/shoal/v1/status")["can_chat"])


def test_a_new_computer_installs_it_chats_and_is_as_before_when_it_is_purged(
    system: CleanSystem, package: Path, tmp_path: Path
) -> None:
    require_desktop_programs()
    before = system.files()
    system.root("apt-get", "install", "-y", "--no-install-recommends", f"/root/{package.name}")
    assert system.person("shoal", "setup", "check").stdout.startswith(
        "The engine is not set up yet"
    )

    entry = configparser.ConfigParser(interpolation=None)
    entry.read(system.folder / "usr/share/applications/shoal.desktop", "utf-8")
    assert "x-scheme-handler/shoal" in entry["Desktop Entry"]["MimeType"]
    words = shlex.split(entry["Desktop Entry"]["Exec"].replace("%u", ""))
    engine = Engine(system)
    with desktop(tmp_path, tray=True) as screen:
        shown = {name: screen.environment[name] for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
        shown |= {"SHOAL_MODELS": "/srv/models"}
        app = system.start(*words, log=tmp_path / "app.log", **shown)
        try:
            screen.wait_for_window("Shoal: setup", SHOWN_LIMIT_S)
            screen.wait_for_keyboard("Shoal: setup")
            screen.grab(tmp_path / "offered.png")
            screen.keys("alt+d")  # download and set up
            wait_until(engine.ready, SETUP_LIMIT_S, f"an engine: {log_of(engine, tmp_path)}")
            screen.wait_for_window("Welcome to Shoal", SHOWN_LIMIT_S)
            screen.grab(tmp_path / "first-steps.png")
            engine.ask("/shoal/v1/setup", {})
            wait_until(engine.can_chat, START_LIMIT_S, "an engine that can chat")
            question = [{"role": "user", "content": "Say hello."}]
            answer = engine.ask(
                "/v1/chat/completions", {"model": "default", "messages": question, "max_tokens": 8}
            )
            assert answer["choices"][0]["message"]["content"].strip()
        finally:
            app.send_signal(signal.SIGTERM)
            app.wait(timeout=30)

    # A second person of this computer starts from nothing, and the first one's files are theirs alone.
    system.root("useradd", "--create-home", "bob")
    asked = system.root("su", "bob", "-c", "shoal setup check")
    assert asked.startswith("The engine is not set up yet")
    assert "/home/bob" in asked
    told = system.person("shoal", "status", SHOAL_MODELS="/srv/models")
    assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr

    system.root("apt-get", "purge", "-y", "--autoremove", "shoal")
    left = {path for path in system.files() - before if re.search(r"(?i)shoal", path)}
    kept = re.compile(
        rf"(/root/{package.name}|{re.escape(PERSONS_HOME)}/\.(local|config|cache)/.*)$"
    )
    assert {path for path in left if not kept.match(path)} == set()
    assert f"{PERSONS_HOME}/.local/share/shoal/shoal.sqlite3" in left  # chats are the person's
    assert f"{PERSONS_HOME}/.local/share/shoal/environment" not in left
    assert PERSON in system.root("getent", "passwd", PERSON)


def log_of(engine: Engine, folder: Path) -> str:
    files = (folder / "app.log", engine.file(".local/share/shoal/environment/setup.log"))
    return "\n".join(
        file.read_text("utf-8", errors="replace")[-1500:] for file in files if file.exists()
    )


def test_the_run_file_installs_for_one_person_and_leaves_nothing_when_it_is_removed(
    built: Path, tmp_path: Path
) -> None:
    home = tmp_path / "Zoë Fisch"
    home.mkdir()
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

    def says(*command: str | Path) -> str:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    package = built / RUN
    assert f"Shoal {__version__} is installed" in says("sh", package)
    program = home / ".local" / "lib" / "shoal"
    asked = says(home / ".local" / "bin" / "shoal", "setup", "check")
    assert asked.startswith("The engine is not set up yet")
    assert str(program / "versions" / __version__ / "environment") in asked
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(home / ".local/share/applications/shoal.desktop", "utf-8")
    (word, place) = shlex.split(entry["Desktop Entry"]["Exec"])
    assert (word, place) == (entry["Desktop Entry"]["TryExec"], "%u")
    assert os.access(word, os.X_OK)
    unit = (home / ".local/share/systemd/user/shoal-engine.service").read_text("utf-8")
    assert f'ExecStart="{home}/.local/bin/shoal-engine"' in unit

    chats = home / ".local" / "share" / "shoal" / "shoal.sqlite3"
    chats.parent.mkdir(parents=True)
    chats.touch()
    says("sh", package)  # once more, as when somebody is not sure
    assert "chats, keys, settings and models stay" in says("sh", program / "uninstall.sh")
    files = {
        path for path in home.rglob("*") if not path.is_dir() and path.name != "mimeinfo.cache"
    }
    made = (home / ".local/share/mime").rglob("*")  # what update-mime-database makes of nothing
    assert files - set(made) == {chats}
    refused = subprocess.run(
        ["sh", package, "--", "--sideways"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert "there is no option --sideways" in refused.stderr
