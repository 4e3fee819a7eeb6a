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
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import __version__
from installers.setup_steps import pip_runs, torch_build
from installers.setup_steps.installed import Parts
from tests.support.clean_system import (
    PERSON,
    PERSONS_HOME,
    CleanSystem,
    package_folders,
    require_clean_systems,
    skip_if_the_network_is_lost,
)
from tests.support.desktop.screen import Desktop, desktop, require_desktop_programs, wait_until
from tests.support.installed_app import Engine, Watch, build
from tests.support.starter import starter_directory
from tests.support.tiny_models import save_tiny

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

DEB, RUN = f"shoal_{__version__}_amd64.deb", f"shoal-{__version__}-x86_64.run"
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
"""Debian 12 and 13 → the Python that each has."""
BEFORE = "0.0.9"
LARGEST_BYTES = 90_000_000
HOME = PERSONS_HOME.lstrip("/")
SETUP_LIMIT_S = 240.0
START_LIMIT_S = 120.0
SHOWN_LIMIT_S = 40.0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the packages are."""
    require_clean_systems()
    if shutil.which("makeself") is None:
        pytest.skip("needs makeself")
    if shutil.which("zstd") is None:
        pytest.skip("needs zstd")
    return build(tmp_path_factory.mktemp("out"), "deb", "run")


@pytest.fixture(scope="module")
def package(built: Path) -> Path:
    return built / DEB


@pytest.fixture(params=PYTHONS)
def system(
    request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CleanSystem]:
    folder = tmp_path_factory.mktemp("debian")
    shared = {"/srv/models": starter_directory().parent}
    try:
        made = CleanSystem.unpack(folder / "root", request.param, shared)
        shutil.copy(package, made.folder / "root" / package.name)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_small_torch_at_hand(python: str) -> bool:
    """Whether PyTorch can be had without gigabytes of libraries for cards."""
    tag = f"cp{python.replace('.', '')}"
    if any(any(folder.glob(f"torch-*{tag}-*.whl")) for folder in package_folders()):
        return True
    return pip_runs.is_reachable(f"{torch_build.CPU_INDEX}/torch/", Path(sys.executable))


def test_the_package_keeps_to_the_rules_of_debian_and_of_desktops(
    package: Path, tmp_path: Path
) -> None:
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
    unit = (files / "usr/lib/systemd/user/shoal-engine.service").read_text("utf-8")
    if shutil.which("systemd-analyze"):
        file = tmp_path / "shoal-engine.service"
        file.write_text(unit.replace("/usr/bin/shoal-engine", "/bin/true"))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", file], env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    for page in ("shoal", "shoal-engine"):
        file = (share / "man" / "man1" / f"{page}.1.gz").resolve(strict=True)
        done = subprocess.run(
            ["man", "--warnings", "--local-file", file], env={"PATH": os.environ["PATH"], "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert "shoal batch" in done.stdout
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


def test_what_is_published_is_under_90_megabytes(built: Path) -> None:
    # The quickest that xz can do, and what is published is packed as well as it can.
    pack = 'dpkg-deb --fsys-tarfile "$1" | xz --x86 --lzma2=preset=0 | wc --bytes'
    done = subprocess.run(
        ["sh", "-c", pack, "sh", built / DEB], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < LARGEST_BYTES
    # The .run carries the same and no more: it is not measured again.
    said = subprocess.run(
        ["dpkg-deb", "--field", built / DEB, "Installed-Size"],
        capture_output=True,
        text=True,
        check=True,
    )
    needed = re.search(
        rb"(?m)^needed_kb=(\d+)",
        subprocess.run(
            ["sh", built / RUN, "--tar", "xO", "./install.sh"], capture_output=True, check=True
        ).stdout,
    )
    assert needed is not None
    assert int(needed[1]) <= int(said.stdout)


def test_a_new_computer_installs_it_chats_and_is_as_before_when_it_is_purged(
    system: CleanSystem, package: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require_desktop_programs()
    release = request.node.callspec.params["system"]
    chats = is_small_torch_at_hand(PYTHONS[release]) or "SHOAL_TEST_LARGE_TORCH" in os.environ
    watch = Watch()
    before = system.files()
    install = ("apt-get", "install", "-y", "--no-install-recommends", f"/root/{package.name}")
    with watch.step("apt-get install, with what it depends on"):
        system.root(*install)
    assert system.person("shoal", "setup", "check").stdout.startswith(
        "The engine is not set up yet"
    )

    entry = configparser.ConfigParser(interpolation=None)
    entry.read(system.folder / "usr/share/applications/shoal.desktop", "utf-8")
    assert "x-scheme-handler/shoal" in entry["Desktop Entry"]["MimeType"]
    words = shlex.split(entry["Desktop Entry"]["Exec"].replace("%u", ""))
    engine = Engine(system.folder / HOME)
    environment = engine.home / ".local/share/shoal/environment"
    with desktop(tmp_path, tray=True) as screen:
        shown = {name: screen.environment[name] for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
        shown |= {"SHOAL_MODELS": "/srv/models"}
        app = system.start(*words, log=tmp_path / "app.log", **shown)
        try:
            with watch.step("start, until the window of setup is there"):
                screen.wait_for_window("Shoal: setup", SHOWN_LIMIT_S)
                screen.wait_for_keyboard("Shoal: setup")
            screen.grab(tmp_path / "offered.png")
            if chats:
                _set_up_and_chat(engine, screen, watch, tmp_path)
        finally:
            app.send_signal(signal.SIGTERM)
            app.wait(timeout=30)
    if chats:
        took_s = json.loads((environment / "setup.json").read_text())["took_s"]
        watch.took_s |= {f"of that, {step}": seconds for step, seconds in took_s.items()}
    watch.tell(f"Debian {release}, Python {PYTHONS[release]}:")

    # A second person of this computer starts from nothing, and the first one's files are theirs alone.
    system.root("useradd", "--create-home", "bob")
    asked = system.root("su", "bob", "-c", "shoal setup check")
    assert asked.startswith("The engine is not set up yet")
    assert "/home/bob" in asked
    if chats:
        told = system.person("shoal", "status", SHOAL_MODELS="/srv/models")
        assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr

    def left() -> set[str]:
        """What is there of Shoal that was not, besides the person's own files and the package itself."""
        own = re.compile(
            rf"(/root/{package.name}|{re.escape(PERSONS_HOME)}/\.(local|config|cache)/.*)$"
        )
        new = system.files() - before
        return {path for path in new if re.search(r"(?i)shoal", path) and not own.match(path)}

    # Removed, the program is gone, but not what it has downloaded: who comes back need not fetch it again.
    system.root("apt-get", "remove", "-y", "shoal")
    assert left() == {"/var/lib/dpkg/info/shoal.list", "/var/lib/dpkg/info/shoal.postrm"}
    if chats:
        assert (environment / "setup.json").exists()
        system.root(*install)
        asked = system.person("shoal", "setup", "check").stdout
        assert asked.startswith("The engine is set up in ")
    system.root("apt-get", "purge", "-y", "shoal")
    assert left() == set()
    assert not environment.exists()
    if chats:
        assert (engine.home / ".local/share/shoal/shoal.sqlite3").exists()  # the person's
    assert PERSON in system.root("getent", "passwd", PERSON)


def _set_up_and_chat(engine: Engine, screen: Desktop, watch: Watch, folder: Path) -> None:
    files = (folder / "app.log", engine.home / ".local/share/shoal/environment/setup.log")

    def log() -> str:
        texts = (file.read_text("utf-8", errors="replace") for file in files if file.exists())
        return "\n".join(text[-1500:] for text in texts)

    with watch.step("from the click to the engine, set up"):
        screen.keys("alt+d")  # download and set up
        try:
            wait_until(engine.ready, SETUP_LIMIT_S, "an engine")
        except AssertionError as error:
            skip_if_the_network_is_lost(log())
            raise AssertionError(f"{error}: {log()}") from error
    screen.wait_for_window("Welcome to Shoal", SHOWN_LIMIT_S)
    screen.grab(folder / "first-steps.png")
    with watch.step("from the end of the first steps to the first answer"):
        engine.ask("/shoal/v1/setup", {})
        wait_until(engine.can_chat, START_LIMIT_S, "an engine that can chat")
        question = [{"role": "user", "content": "Say hello."}]
        answer = engine.ask(
            "/v1/chat/completions", {"model": "default", "messages": question, "max_tokens": 8}
        )
    assert answer["choices"][0]["message"]["content"].strip()


@dataclass
class Person:
    """Somebody with a home of their own and programs in it."""

    home: Path

    @property
    def program(self) -> Path:
        return self.home / ".local" / "lib" / "shoal"

    @property
    def variables(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

    def runs(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.variables, cwd=self.home,  # else Python would find this source first
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def says(self, *command: str | Path) -> str:
        done = self.runs(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def engine(self, version: str) -> Iterator[Engine]:
        """The engine of a version, which need not fetch its libraries, as this Python has them."""
        place = self.program / "versions" / version
        if not (place / "environment").exists():
            lend_libraries(place)
        process = subprocess.Popen(
            [self.home / ".local" / "bin" / "shoal-engine"], env=self.variables, cwd=self.home
        )
        try:
            engine = Engine(self.home)
            wait_until(engine.can_chat, START_LIMIT_S, "an engine that can chat")
            yield engine
        finally:
            process.terminate()
            process.wait(30)


def lend_libraries(version: Path) -> None:
    """What setup does with uv and pip, but with the libraries that are there already."""
    environment = version / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = (environment / "lib").glob("python3*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    parts = Parts(version / "engine")
    with zipfile.ZipFile(parts.wheel) as wheel:
        wheel.extractall(packages)
    for name, words in (("shoal", ""), ("shoal-engine", " engine")):
        program = environment / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "$(dirname "$0")/python" -m engine{words} "$@"\n')
        program.chmod(0o755)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    made_from = {"fingerprint": parts.fingerprint(), "torch": "cpu", "python": python}
    (environment / "setup.json").write_text(json.dumps(made_from))


def version_before(package: Path, folder: Path) -> Path:
    """The same package under an earlier number, unpacked; returns what installs it.

    Only what the window says of itself is still of today.
    """
    subprocess.run(["sh", package, "--noexec", "--target", folder], check=True, capture_output=True)
    install = folder / "install.sh"
    install.write_text(
        install.read_text().replace(f"version={__version__}\n", f"version={BEFORE}\n")
    )
    (wheel,) = (folder / "payload" / "engine").glob("shoal-*.whl")
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(wheel.with_name(wheel.name.replace(__version__, BEFORE)), "w") as target,
    ):
        for name in source.namelist():
            content = source.read(name)
            if name == "engine/__init__.py":
                content = content.replace(__version__.encode(), BEFORE.encode())
            target.writestr(name, content)
    wheel.unlink()
    return install


def test_the_run_file_installs_updates_keeps_chats_refuses_an_older_one_and_leaves_nothing(
    built: Path, tmp_path: Path
) -> None:
    person = Person(tmp_path / "Zoë Fisch")
    person.home.mkdir()
    shoal = person.home / ".local" / "bin" / "shoal"
    package, before = built / RUN, version_before(built / RUN, tmp_path / "before")

    assert f"Shoal {BEFORE} is installed" in person.says("sh", before)
    asked = person.says(shoal, "setup", "check")
    assert asked.startswith("The engine is not set up yet")
    assert str(person.program / "versions" / BEFORE / "environment") in asked
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(person.home / ".local/share/applications/shoal.desktop", "utf-8")
    (word, place) = shlex.split(entry["Desktop Entry"]["Exec"])
    assert (word, place) == (entry["Desktop Entry"]["TryExec"], "%u")
    assert os.access(word, os.X_OK)
    unit = (person.home / ".local/share/systemd/user/shoal-engine.service").read_text("utf-8")
    assert f'ExecStart="{person.home}/.local/bin/shoal-engine"' in unit

    lend_libraries(person.program / "versions" / BEFORE)
    person.says(shoal, "settings", "set", f"model.source={save_tiny('llama', tmp_path / 'tiny')}")
    with person.engine(BEFORE) as engine:
        assert engine.ask("/shoal/v1/status")["version"] == BEFORE
        chat = engine.ask("/shoal/v1/chats", {"title": "Herrings"})["id"]

    assert f"Shoal {__version__} is installed" in person.says("sh", package)
    with person.engine(__version__) as engine:
        assert engine.ask("/shoal/v1/status")["version"] == __version__
        assert engine.ask(f"/shoal/v1/chats/{chat}")["title"] == "Herrings"
    assert str(tmp_path / "tiny") in person.says(shoal, "settings", "get", "model")

    refused = person.runs("sh", before)
    assert refused.returncode != 0
    assert f"Shoal {__version__} is installed, and this is the older {BEFORE}" in refused.stderr
    assert person.says(shoal, "--version").strip() == f"shoal {__version__}"
    person.says("sh", package)  # once more, as when somebody is not sure: its engine stays
    assert person.says(shoal, "setup", "check").startswith("The engine is set up in ")
    refused = person.runs("sh", package, "--", "--sideways")
    assert refused.returncode != 0
    assert "there is no option --sideways" in refused.stderr

    assert "chats, keys, settings and models stay" in person.says(
        "sh", person.program / "uninstall.sh"
    )
    made = {"mimeinfo.cache", *(p.name for p in (person.home / ".local/share/mime").rglob("*"))}
    left = {
        path.relative_to(person.home)
        for path in person.home.rglob("*")
        if not path.is_dir() and path.name not in made  # what desktops make of nothing
    }
    assert Path(".local/share/shoal/shoal.sqlite3") in left
    assert {path for path in left if "shoal" not in path.parts[:3]} == set()
    assert {path.parts[:-1][-1] for path in left} & {"lib", "bin", "applications"} == set()
