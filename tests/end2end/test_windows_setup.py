"""The setup for Windows under Wine: installed, resumed after a restart, repaired and removed.

What stands in: uv.exe, which lets this system's Python run the installed setup program, and wsl.exe.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from installers.package import windows as windows_package
from installers.package.plan import Build
from tests.support.windows import wine as wine_support
from tests.support.windows.computer import ROOT, Mirror, mirror, small_linux
from tests.support.windows.wine import Wine
from tests.support.windows.wsl_stand_in import Windows

pytestmark = [
    pytest.mark.end2end,
    pytest.mark.skipif(bool(wine_support.what_is_missing()), reason=wine_support.what_is_missing()),
]

PROGRAM_FOLDER = r"C:\Jörg Müller & Söhne\魚群"
KEYS = r"Software\Microsoft\Windows\CurrentVersion"
VERSION = "1.2.3"
LARGEST_BYTES = 90_000_000


@dataclass
class Pc:
    """A small Windows, and what its setup was asked."""

    wine: Wine
    windows: Windows
    setup: Path

    @property
    def root(self) -> Path:
        return self.wine.path(PROGRAM_FOLDER)

    @property
    def person(self) -> Path:
        (home,) = (p for p in (self.wine.prefix / "drive_c/users").iterdir() if p.name != "Public")
        return home

    @property
    def state(self) -> Path:
        return self.person / "AppData/Local/shoal"

    def shortcuts(self) -> list[str]:
        return sorted(file.parent.name for file in self._links())

    def targets(self) -> list[bool]:
        """Whether each of the shortcuts runs what starts the right version."""
        words = [word.encode("utf-16-le") for word in ("launcher", "pythonw.exe", "start.py")]
        return [all(word in file.read_bytes() for word in words) for file in self._links()]

    def _links(self) -> list[Path]:
        return [
            file for folder in (self.person, self.wine.home) for file in folder.rglob("Shoal.lnk")
        ]

    def asked(self) -> list[str]:
        """The last order to provision.py."""
        line = (self.windows.folder / "uv-for-python.txt").read_text("utf-8").splitlines()[-1]
        words: list[str] = json.loads(line)
        return words[next(i for i, word in enumerate(words) if word.endswith("provision.py")) :]


def _wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / f"shoal-{VERSION}-py3-none-any.whl", "w") as archive:
        for name in (
            *("app/__init__.py", "app/wsl.py", "app/wsl_troubles.py"),
            *("engine/__init__.py", "engine/localapi/__init__.py", "engine/localapi/versions.py"),
        ):
            archive.write(ROOT / name, name)


@pytest.fixture(scope="module")
def pc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pc]:
    base = tmp_path_factory.mktemp("windows")
    folder, prefix = base / "pc", base / "prefix"
    folder.mkdir()
    wine = Wine(prefix)
    with wine.running() as booting, mirror(small_linux()) as one:
        made = _setup(base, one)
        booting.wait(wine_support.LIMIT_S)
        windows = Windows(folder)
        windows.put(wsl="absent")
        yield Pc(wine, windows, made)


def _setup(base: Path, one: Mirror) -> Path:
    """A setup whose uv is a stand-in, and that fetches a small Linux."""
    folder, prefix = base / "pc", base / "prefix"
    script = base / "bridge.sh"
    bridge = ROOT / "tests/support/windows/bridge.py"
    script.write_text(
        f"cd '{ROOT}'\n"
        f"'{sys.executable}' '{bridge}' '{folder}' '{prefix}' > '{base}/bridge.log' 2>&1\n"
        f"echo $? > '{folder}/done.part'; mv '{folder}/done.part' '{folder}/done.txt'\n"
    )
    payload = base / "payload"
    setup = payload / "setup"
    setup.mkdir(parents=True)
    subprocess.run(
        ["makensis", "-V1", f"-DHERE=Z:{folder}".replace("/", "\\"), f"-DSCRIPT={script}",
         f"-DOUT={setup / 'uv.exe'}", str(ROOT / "tests/support/windows/uv_for_wine.nsi")],
        check=True,
    )  # fmt: skip
    windows_package.own_program(ROOT, setup)
    (setup / "gui.txt").write_text("pydantic==2 --hash=sha256:0\n")
    (payload / "LICENSE").write_text("Apache-2.0")
    _wheel(setup)
    told = {"urls": [one.url], "sha256": one.sha256, "size_bytes": len(one.content)}
    (setup / "root-file-system.json").write_text(json.dumps(told))
    build = Build(ROOT, base / "work", base / "out", VERSION, 1_000_000_000, is_fast=True)
    build.out.mkdir()
    return windows_package.make_setup(build, payload)


def test_silent_setup_asks_for_the_word_resumes_repairs_and_leaves_nothing_but_what_was_kept(
    pc: Pc,
) -> None:
    # No Python comes through the proxy of Windows' settings: what uv said is kept.
    pc.wine.set_values(
        rf"{KEYS}\Internet Settings",
        ProxyEnable="dword:00000001",
        ProxyServer='"http=other:80;https=proxy.example:3128"',
    )
    no_python = pc.windows.folder / "no-python.txt"
    no_python.write_text("error: error sending request for url (https://…)", "utf-8")
    folder = f"/D={PROGRAM_FOLDER}".split(" ")  # without quotes, as NSIS wants it
    assert pc.wine.run(str(pc.setup), "/S", *folder) == 2
    assert "error sending request" in (pc.state / "logs/uv.txt").read_text("utf-8")
    assert (pc.windows.folder / "proxy.txt").read_text("utf-8") == "http://proxy.example:3128"
    no_python.unlink()
    (pc.state / "logs/uv.txt").unlink()

    # Without the person's word nothing of Windows is changed, and there is a way back.
    assert pc.wine.run(str(pc.setup), "/S", *folder) == 2
    log = (pc.state / "logs/setup.log").read_text("utf-8")
    assert "enable-wsl|" in log, log
    assert pc.shortcuts() == []
    assert (pc.root / "uninstall.exe").exists()

    # With it WSL is turned on, and the setup goes on by itself after a restart.
    assert pc.wine.run(str(pc.setup), "/S", "/AGREE=enable-wsl", *folder) == 3010 % 256
    resume = pc.wine.values(rf"{KEYS}\RunOnce")["ShoalSetup"]
    program, _, words = resume.rpartition('" ')
    assert program == rf'"{PROGRAM_FOLDER}\shoal-setup.exe'
    assert words.split() == [
        "/RESUME", "/AGREE=without-card,enable-wsl,", "/REACHABLE=no", "/DESKTOP=yes"
    ]  # fmt: skip
    pc.windows.put(wsl="works")
    assert pc.wine.run(rf"{PROGRAM_FOLDER}\shoal-setup.exe", *words.split(), "/S") == 0
    assert "without-card,enable-wsl" in pc.asked()[pc.asked().index("--agreed") + 1]
    assert "ShoalSetup" not in pc.wine.values(rf"{KEYS}\RunOnce")
    assert pc.shortcuts() == ["Desktop", "Programs"]
    assert pc.targets() == [True, True]
    entry = pc.wine.values(rf"{KEYS}\Uninstall\Shoal")
    assert entry["DisplayVersion"] == VERSION
    assert entry["QuietUninstallString"] == rf'"{PROGRAM_FOLDER}\uninstall.exe" /S'
    assert "Shoal" not in pc.wine.values(rf"{KEYS}\Run")
    said = pc.windows.said()
    (imported,) = [call for call in said if "--import" in call]
    assert "Jörg Müller & Söhne/魚群/linux" in imported
    assert "provision.sh" in said[-1]
    assert json.loads((pc.root / "versions.json").read_text("utf-8"))["current"] == VERSION
    assert (pc.root / "versions" / VERSION / "app/Scripts/pythonw.exe").exists()

    # Started again it repairs, and what the person chose stays.
    assert pc.wine.run(rf"{PROGRAM_FOLDER}\shoal-setup.exe", "/S") == 0
    assert "--repair" in pc.asked()
    assert sum("--import" in call for call in pc.windows.said()) == 1
    chats = pc.windows.linux / "home/shoal/.local/share/shoal/shoal.sqlite3"
    chats.write_text("chats")

    # Removed, it leaves the chats, its log, and nothing else.
    assert pc.wine.run(rf"{PROGRAM_FOLDER}\uninstall.exe", "/S", "/KEEPDATA=yes") == 0
    wine_support.until(lambda: not pc.root.exists())
    assert "--unregister Shoal" in pc.windows.said()
    assert pc.shortcuts() == []
    assert pc.wine.values(rf"{KEYS}\Uninstall\Shoal") == {}
    assert pc.wine.values(r"Software\Shoal") == {}
    kept = sorted(p.relative_to(pc.state).as_posix() for p in pc.state.rglob("*") if p.is_file())
    assert kept == ["kept/engine.tar", "logs/setup.log"]

    # Installed again it has them; removed with all of it, it leaves nothing.
    assert pc.wine.run(str(pc.setup), "/S", "/DESKTOP=no", *folder) == 0
    assert pc.shortcuts() == ["Programs"]
    assert chats.read_text() == "chats"
    assert pc.wine.run(rf"{PROGRAM_FOLDER}\uninstall.exe", "/S", "/KEEPDATA=no") == 0
    wine_support.until(lambda: not pc.state.exists())
    assert not pc.root.exists()
    assert pc.shortcuts() == []
    assert pc.windows.state["distributions"] == {}
    assert pc.wine.values(r"Software\Shoal") == {}


def test_same_files_make_the_same_setup_and_makensis_has_nothing_to_say(
    pc: Pc, tmp_path: Path
) -> None:
    payload = tmp_path / "elsewhere"
    shutil.copytree(pc.setup.parents[1] / "payload", payload, copy_function=shutil.copyfile)
    build = Build(ROOT, tmp_path / "work", tmp_path / "out", VERSION, 1_000_000_000, is_fast=True)
    build.out.mkdir()
    assert windows_package.make_setup(build, payload).read_bytes() == pc.setup.read_bytes()


def test_one_command_builds_the_setup_with_all_that_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "installers/build.py", "windows", "--fast", "--out", tmp_path],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (setup,) = tmp_path.glob("shoal-*-setup.exe")
    assert setup.stat().st_size < LARGEST_BYTES
    assert setup.name in (tmp_path / "SHA256SUMS").read_text("utf-8")
    payload = ROOT / "build/installers/windows/payload"
    carried = {
        path.relative_to(payload).as_posix() for path in payload.rglob("*") if path.is_file()
    }
    assert {
        "LICENSE", "THIRD-PARTY-NOTICES.txt", "sbom.cdx.json", "shoal.ico",
        "setup/uv.exe", "setup/gui.txt", "setup/root-file-system.json",
        "setup/installers/windows/provision.py", "setup/installers/setup_steps/torch_build.py",
        "setup/linux/uv", "setup/linux/engine.txt", "setup/linux/torch.txt",
        "setup/linux/torch-cpu.txt",
        "setup/linux/provision.py", "setup/linux/provision.sh", "setup/linux/start-engine",
    } <= carried  # fmt: skip
    assert (payload / "setup/uv.exe").read_bytes()[:2] == b"MZ"
    (wheel,) = payload.glob("setup/shoal-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {"app/wsl.py", "app/__main__.py", "engine/localapi/schema.py"} <= set(
            archive.namelist()
        )
