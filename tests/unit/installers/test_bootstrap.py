"""The setup script as a person runs it, on a small project, with packages from a folder."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLOSED_PORT = "http://127.0.0.1:9/simple"  # the discard service, which nobody runs

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "shoal"
version = "0"
dependencies = ["pebble"]
optional-dependencies = { gui = [], test = [] }
scripts = { shoal = "program:main" }
[tool.setuptools]
py-modules = ["program"]
"""
PROGRAM = """\
import sys
import pebble
def main():
    print("shoal", pebble.VERSION, sys.argv[1:])
    return 7
"""


def _installed_as_wheel(name: str, folder: Path) -> str:
    """Pack an installed package into a wheel again; returns its requirement."""
    package = importlib.metadata.distribution(name)
    wheel = folder / f"{name}-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in package.files or ():
            source = Path(str(path.locate()))
            if ".." not in path.parts and path.suffix != ".pyc" and path.name != "INSTALLER":
                archive.write(source, str(path))
    return f"{name}=={package.version}"


def _pebble_wheel(version: str, folder: Path) -> None:
    info = f"pebble-{version}.dist-info"
    with zipfile.ZipFile(folder / f"pebble-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("pebble.py", f"VERSION = {version!r}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: pebble\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{info}/RECORD", f"pebble.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


@dataclass
class Checkout:
    """A copy of the setup script beside a project with one small dependency."""

    root: Path
    wheels: Path
    build_tools: list[str] = field(default_factory=list)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def site_packages(self) -> Path:
        return next((self.venv / "lib").glob("python3*/site-packages"))

    def pin(self, pebble_version: str) -> None:
        lines = [*self.build_tools, f"pebble=={pebble_version}"]
        (self.root / "resources" / "constraints.txt").write_text("\n".join(lines))

    def run(self, *arguments: str, online: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_RETRIES": "1",  # of its five, to be quick
        }
        if online:
            environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        else:
            environment |= {"PIP_INDEX_URL": CLOSED_PORT}
        return subprocess.run(
            [sys.executable, self.root / "installers" / "bootstrap.py", *arguments],
            cwd=self.root.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Not set up yet. The tests below go on from one another's state, in order, as a person does."""
    folder = tmp_path_factory.mktemp("checkout")
    made = Checkout(folder / "shoal", folder / "wheels")
    made.wheels.mkdir()
    made.build_tools = [_installed_as_wheel(name, made.wheels) for name in ("pip", "setuptools")]
    for version in ("1.0", "1.1"):
        _pebble_wheel(version, made.wheels)
    shutil.copytree(
        ROOT / "installers",
        made.root / "installers",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (made.root / "resources").mkdir()
    (made.root / "pyproject.toml").write_text(PROJECT)
    (made.root / "program.py").write_text(PROGRAM)
    made.pin("1.0")
    return made


@pytest.fixture(scope="module")
def first_run(checkout: Checkout) -> subprocess.CompletedProcess[str]:
    return checkout.run("run", "--once", "a b")


def test_wrong_usage_tells_both_commands(checkout: Checkout) -> None:
    answer = checkout.run("install")
    assert answer.returncode == 2
    assert "bootstrap.py run" in answer.stderr
    assert "bootstrap.py test" in answer.stderr


def test_first_run_sets_up_and_becomes_shoal_with_its_arguments_and_status(
    first_run: subprocess.CompletedProcess[str],
) -> None:
    assert first_run.stdout.splitlines()[-1] == "shoal 1.0 ['--once', 'a b']", first_run.stdout
    assert "Setting Shoal up" in first_run.stdout
    assert first_run.returncode == 7


@pytest.mark.usefixtures("first_run")
def test_second_run_needs_no_network_and_says_nothing_of_its_own(checkout: Checkout) -> None:
    answer = checkout.run("run", online=False)
    assert answer.stdout == "shoal 1.0 []\n"


@pytest.mark.usefixtures("first_run")
def test_package_cut_off_half_way_is_installed_again(checkout: Checkout) -> None:
    # As after a kill: pip has written the metadata, but neither every file nor the last record.
    (checkout.venv / "setup.json").unlink()
    (checkout.site_packages / "pebble.py").unlink()
    record = checkout.site_packages / "pebble-1.0.dist-info" / "RECORD"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if "INSTALLER" not in line))

    answer = checkout.run("run")

    assert answer.stdout.splitlines()[-1] == "shoal 1.0 []", answer.stdout


@pytest.mark.usefixtures("first_run")
def test_update_without_network_is_told_in_one_sentence_and_made_up_for_later(
    checkout: Checkout,
) -> None:
    checkout.pin("1.1")

    offline = checkout.run("run", online=False)
    assert offline.returncode == 1
    assert "cannot be reached; check the internet connection" in offline.stdout.splitlines()[-1]
    assert "Traceback" not in offline.stdout + offline.stderr

    online = checkout.run("run")
    assert online.stdout.splitlines()[-1] == "shoal 1.1 []", online.stdout


@pytest.mark.usefixtures("first_run")
def test_checkout_without_room_to_write_is_told_in_one_sentence(checkout: Checkout) -> None:
    checkout.pin("9.9")  # whatever was set up before, there is something to do
    stamp = checkout.venv / "setup.partial"
    stamp.mkdir()  # stands in the way of the file, for root as well
    try:
        answer = checkout.run("run")
    finally:
        stamp.rmdir()
        checkout.pin("1.1")
    assert answer.returncode == 1
    assert "Setup could not write to" in answer.stdout.splitlines()[-1]
    assert "Traceback" not in answer.stdout + answer.stderr


@pytest.mark.usefixtures("first_run")
def test_moved_checkout_is_set_up_anew_because_its_scripts_hold_the_old_path(
    checkout: Checkout,
) -> None:
    moved = Checkout(checkout.root.with_name("moved"), checkout.wheels)
    checkout.root.rename(moved.root)
    answer = moved.run("run", online=False)  # far enough to see it begin
    assert f"Setting Shoal up in {moved.venv}" in answer.stdout
    assert json.loads((moved.venv / "origin.json").read_text())["path"] == str(moved.venv)
