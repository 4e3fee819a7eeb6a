"""The setup's own program for Windows, with stand-ins of Windows, `wsl.exe` and uv."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from installers.package.windows import own_program
from installers.setup_steps.installed import Parts
from installers.setup_steps.report import SetupFailed
from installers.setup_steps.torch_build import Driver
from installers.windows import download, networking, provision
from installers.windows.provision import Exit
from tests.support.windows.computer import (
    ROOT,
    Mirror,
    StandInMachine,
    mirror,
    small_linux,
    uv_command,
    wsl_command,
)
from tests.support.windows.wsl_stand_in import Windows

OLD_DRIVER = Driver(cuda=(12, 4), capabilities=((8, 6),))
GOOD_DRIVER = Driver(cuda=(13, 0), capabilities=((8, 6),))


@dataclass
class Pc:
    """One computer, and what its setup left."""

    root: Path
    state: Path
    exchange: Path
    windows: Windows
    machine: StandInMachine
    mirror: Mirror
    said: str = ""

    def run(self, task: str, *options: str) -> Exit:
        self.exchange.mkdir(exist_ok=True)
        code = provision.main(
            [task, "--root", str(self.root), "--state", str(self.state),
             "--exchange", str(self.exchange), *options],
            machine=self.machine,
            wsl_command=wsl_command(self.windows.folder),
            uv=uv_command(self.windows.folder),
        )  # fmt: skip
        self.said = (self.exchange / "result.txt").read_text("utf-16")
        return code

    def uv_calls(self) -> list[list[str]]:
        file = self.windows.folder / "uv.txt"
        return (
            [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            if file.exists()
            else []
        )

    def shown(self) -> str:
        return (self.exchange / "progress.txt").read_text("utf-16")

    def log(self) -> str:
        return (self.state / "logs" / "setup.log").read_text("utf-8")


@pytest.fixture
def pc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pc]:
    monkeypatch.setattr(download, "WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "Jörg Müller & Söhne" / "魚群"
    own_program(ROOT, root / "setup")
    (root / "setup" / "gui.txt").write_text("pydantic==2 --hash=sha256:0\n", "utf-8")
    (root / "setup" / "shoal-1-py3-none-any.whl").write_bytes(b"wheel")
    windows = Windows(tmp_path)
    windows.put()
    with mirror(small_linux()) as one:
        (root / "setup" / "root-file-system.json").write_text(
            json.dumps({"urls": [one.url], "sha256": one.sha256, "size_bytes": len(one.content)})
        )
        yield Pc(
            root, tmp_path / "state", tmp_path / "exchange", windows, StandInMachine(windows), one
        )


def test_everything_is_installed_in_order_and_nothing_twice(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE, pc.said
    assert pc.said == "Shoal is installed."
    assert [call[0] for call in pc.uv_calls()] == ["venv", "pip", "pip"]
    assert "--require-hashes" in pc.uv_calls()[1]
    kinds = (
        "--status",
        "--list",
        "--import",
        "tar -xf",
        "prepare.sh",
        "--terminate",
        "provision.sh",
    )
    said = pc.windows.said()
    assert [next(kind for kind in kinds if kind in call) for call in said] == list(kinds)
    assert (pc.windows.linux / "opt/shoal/setup/start-engine").exists()
    assert "Fetching PyTorch" in pc.log()
    assert pc.machine.elevated == []
    assert not (pc.root / "downloads").exists()
    before = len(pc.windows.calls()), len(pc.uv_calls()), len(pc.mirror.ranges)
    assert pc.run("install") is Exit.DONE
    assert (len(pc.uv_calls()), len(pc.mirror.ranges)) == before[1:]
    assert pc.windows.said()[before[0] :] == ["--status", "--list --verbose"]


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
    assert len(pc.uv_calls()) == 6


def test_wsl_is_turned_on_only_on_the_persons_word_and_the_setup_goes_on_after_a_restart(
    pc: Pc,
) -> None:
    pc.windows.put(wsl="absent")
    assert pc.run("install") is Exit.WORD_NEEDED
    assert pc.said.startswith("enable-wsl|")
    assert "administrator" in pc.said
    assert pc.machine.elevated == []
    assert pc.run("install", "--agreed", "enable-wsl") is Exit.RESTART_NEEDED
    (elevated,) = pc.machine.elevated
    assert elevated[-2:] == ["--install", "--no-distribution"]
    pc.machine.restart_pending = True
    assert pc.run("install") is Exit.RESTART_NEEDED  # not restarted yet: no second question
    assert "restart, not shut down" in pc.said
    pc.machine.restart_pending = False
    pc.windows.put(wsl="works")
    assert pc.run("install") is Exit.DONE
    assert len(pc.machine.elevated) == 1


def test_windows_that_needs_no_restart_gets_none(pc: Pc) -> None:
    pc.windows.put(wsl="absent", after_install="works")
    assert pc.run("install", "--agreed", "enable-wsl") is Exit.DONE


def test_no_administrator_means_a_sentence_and_no_change(pc: Pc) -> None:
    pc.windows.put(wsl="absent")
    pc.machine.declines = True
    assert pc.run("install", "--agreed", "enable-wsl") is Exit.FAILED
    assert "administrator's rights" in pc.said
    assert not pc.uv_calls()


def test_virtualisation_that_is_off_is_found_before_anything_is_changed(pc: Pc) -> None:
    pc.windows.put(wsl="absent")
    pc.machine.virtualises = False
    assert pc.run("install", "--agreed", "enable-wsl") is Exit.FAILED
    assert "firmware settings" in pc.said
    assert pc.machine.elevated == []
    assert not pc.uv_calls()


def test_virtualisation_that_only_the_import_misses_is_told_too(pc: Pc) -> None:
    pc.windows.put(wsl="no virtualisation")
    assert pc.run("install") is Exit.FAILED
    assert "VT-x or AMD-V" in pc.said


def test_missing_kernel_is_fetched_when_the_person_agreed(pc: Pc) -> None:
    pc.windows.put(wsl="no kernel")
    assert pc.run("install") is Exit.FAILED
    assert "wsl --update" in pc.said
    assert pc.run("install", "--agreed", "enable-wsl") is Exit.DONE


def test_linux_under_wsl_1_is_changed_to_wsl_2(pc: Pc) -> None:
    pc.run("install")
    pc.windows.put(distributions={"Shoal": 1})
    assert pc.run("install") is Exit.DONE
    assert pc.windows.state["distributions"] == {"Shoal": 2}


def test_import_that_was_cut_off_is_begun_anew(pc: Pc) -> None:
    pc.windows.put(cut=True)
    assert pc.run("install") is Exit.FAILED
    assert pc.windows.state["distributions"] == {"Shoal": 2}  # half of one
    assert pc.run("install") is Exit.DONE
    said = pc.windows.said()
    assert said.index("--unregister Shoal") < len(said) - 1
    assert sum("--import" in call for call in said) == 2


def test_distribution_of_somebody_else_is_left_alone(pc: Pc) -> None:
    pc.windows.put(distributions={"Shoal": 2})
    assert pc.run("install") is Exit.FAILED
    assert "which this setup did not make" in pc.said
    assert pc.run("remove") is Exit.DONE
    assert not any("--unregister" in call for call in pc.windows.said())


def test_linux_that_was_removed_by_hand_comes_back_with_its_engine(pc: Pc) -> None:
    pc.run("install")
    pc.windows.put(distributions={})
    shutil.rmtree(pc.windows.linux)
    assert pc.run("install") is Exit.DONE
    assert (pc.windows.linux / "opt/shoal/setup/provision.sh").exists()


def test_cut_connection_goes_on_where_it_stopped(pc: Pc) -> None:
    pc.mirror.cut_after_bytes = 200_000
    assert pc.run("install") is Exit.DONE, pc.said
    assert pc.mirror.ranges[0] == 0
    assert pc.mirror.ranges[1:] == sorted(set(pc.mirror.ranges[1:]))
    assert len(pc.mirror.ranges) > 2


def test_no_connection_ends_in_a_sentence_and_keeps_what_came(pc: Pc) -> None:
    pc.mirror.cut_after_bytes = 0
    assert pc.run("install") is Exit.FAILED
    assert "check the internet connection" in pc.said
    pc.mirror.cut_after_bytes = None
    assert pc.run("install") is Exit.DONE


def test_linux_with_another_hash_is_refused_and_deleted(pc: Pc) -> None:
    pc.mirror.content = pc.mirror.content[:-1] + b"!"
    assert pc.run("install") is Exit.FAILED
    assert "damaged" in pc.said
    assert not any("--import" in call for call in pc.windows.said())
    assert not list((pc.root / "downloads").glob("root*"))


def test_small_disk_is_told_before_anything_is_fetched(pc: Pc) -> None:
    pc.machine.free_bytes = 4 << 30
    assert pc.run("install") is Exit.FAILED
    assert "needs about 6 GB" in pc.said
    assert "4.0 GB are free" in pc.said
    assert not pc.mirror.ranges
    pc.machine.driver = GOOD_DRIVER
    pc.run("install")
    assert "needs about 14 GB" in pc.said


def test_old_windows_is_told_what_it_lacks(pc: Pc) -> None:
    pc.machine.build = 17763
    assert pc.run("install") is Exit.FAILED
    assert "version 2004" in pc.said


def test_old_driver_is_told_before_the_download_and_the_person_decides(pc: Pc) -> None:
    pc.machine.driver = OLD_DRIVER
    assert pc.run("install") is Exit.WORD_NEEDED
    assert pc.said.startswith("without-card|The NVIDIA driver is too old")
    assert not pc.mirror.ranges
    assert pc.run("install", "--agreed", "without-card") is Exit.DONE


def test_stop_ends_in_order_and_the_next_run_goes_on(pc: Pc) -> None:
    pc.exchange.mkdir()
    (pc.exchange / "stop").touch()
    assert pc.run("install") is Exit.STOPPED
    assert "what was fetched is kept" in pc.said
    (pc.exchange / "stop").unlink()
    assert pc.run("install") is Exit.DONE


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            "error: Failed to fetch\n  Caused by: error sending request for url",
            "internet connection",
        ),
        ("error: failed to write (os error 112)", "the disk is full"),
        ("error: Hash mismatch for `pydantic`", "get a newer setup"),
        ("error: invalid peer certificate: UnknownIssuer", "clock and proxy"),
        ("error: Access is denied. (os error 5)", "quit Shoal"),
        ("error: something new", "something new"),
    ],
)
def test_failure_of_uv_becomes_one_sentence(pc: Pc, said: str, advice: str) -> None:
    (pc.windows.folder / "uv-fails.txt").write_text(said, "utf-8")
    assert pc.run("install") is Exit.FAILED
    assert advice in pc.said
    assert "\n" not in pc.said
    assert said.splitlines()[0] in pc.log()


def test_failure_inside_linux_says_why_and_is_done_again(pc: Pc) -> None:
    pc.windows.put(provision_fails="Setup could not install PyTorch; try again.")
    assert pc.run("install") is Exit.FAILED
    assert pc.said == "Setup could not install PyTorch; try again."
    pc.windows.put(provision_fails="")
    assert pc.run("install") is Exit.DONE
    assert sum("--import" in call for call in pc.windows.said()) == 1


def test_folder_that_cannot_be_written_is_told(pc: Pc) -> None:
    (pc.root / "installed.part").mkdir()
    assert pc.run("install") is Exit.FAILED
    assert "correct the folder's rights" in pc.said


def test_removal_keeps_chats_and_the_next_installation_has_them(pc: Pc) -> None:
    pc.run("install")
    store = pc.windows.linux / "home/shoal/.local/share/shoal"
    (store / "shoal.sqlite3").write_text("chats")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert pc.windows.state["distributions"] == {}
    with tarfile.open(pc.state / "kept" / "engine.tar") as kept:
        assert ".local/share/shoal/shoal.sqlite3" in kept.getnames()
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "chats"
    assert not (pc.state / "kept" / "engine.tar").exists()


def test_engine_is_ended_before_its_chats_are_saved(pc: Pc) -> None:
    pc.run("install")
    before = len(pc.windows.calls())
    assert pc.run("remove", "--keep-data") is Exit.DONE
    said = pc.windows.said()[before:]
    saved = next(i for i, call in enumerate(said) if "tar -cf" in call)
    assert "--terminate Shoal" in said[:saved]


def kept_chats(pc: Pc) -> tuple[Path, Path]:
    """A computer whose chats wait to be put back: the archive, and where the chats will be."""
    pc.run("install")
    store = pc.windows.linux / "home/shoal/.local/share/shoal"
    (store / "shoal.sqlite3").write_text("chats")
    (store / "node.key").write_text("key")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    return pc.state / "kept" / "engine.tar", store


def test_chats_whose_way_back_is_cut_are_neither_lost_nor_half_there(pc: Pc) -> None:
    archive, store = kept_chats(pc)
    aside = archive.rename(archive.with_suffix(".aside"))
    assert pc.run("install") is Exit.DONE
    aside.rename(archive)
    for cut in (1500, 1536):  # inside a file, and between two
        pc.windows.put(cut_input_bytes=cut)
        assert pc.run("install") is Exit.FAILED
        assert f"are safe in {archive}" in pc.said
        assert not (store / "shoal.sqlite3").exists()
    pc.windows.put(cut_input_bytes=None)
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "chats"
    assert (store / "node.key").read_text() == "key"
    assert not (store.parents[2] / ".restore").exists()
    assert [kept.name for kept in archive.parent.iterdir()] == ["restored.tar"]


def test_kept_chats_stay_when_the_engine_has_chats_of_its_own_also_after_the_next_removal(
    pc: Pc,
) -> None:
    archive, store = kept_chats(pc)
    aside = archive.with_suffix(".aside")
    archive.rename(aside)
    assert pc.run("install") is Exit.DONE
    (store / "shoal.sqlite3").write_text("newer chats")
    whole = aside.rename(archive).read_bytes()
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "newer chats"
    assert archive.with_name("engine-1.tar").read_bytes() == whole
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert archive.with_name("engine-1.tar").read_bytes() == whole
    assert archive.exists()


def test_engine_that_never_ran_has_nothing_to_keep(pc: Pc) -> None:
    pc.run("install")
    shutil.rmtree(pc.windows.linux / "home/shoal/.local")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert not list((pc.state / "kept").iterdir())
    assert pc.windows.state["distributions"] == {}


def test_removal_without_keeping_leaves_nothing(pc: Pc) -> None:
    pc.run("install")
    assert pc.run("remove") is Exit.DONE
    assert not (pc.state / "kept").exists()
    assert not (pc.root / "linux").exists()
    assert pc.windows.said()[-2:] == ["--terminate Shoal", "--unregister Shoal"]


def test_nothing_is_opened_to_others_unless_asked_and_all_is_taken_back(
    pc: Pc, tmp_path: Path
) -> None:
    config = tmp_path / ".wslconfig"
    config.write_bytes(b"[wsl2]\r\nmemory=8GB\r\n")
    before = config.read_bytes()
    pc.run("install", "--reachable", "no")
    assert (config.read_bytes(), pc.machine.elevated) == (before, [])
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "New-NetFirewallHyperVRule" in pc.machine.elevated[0][-1]
    assert "-LocalPorts 31330" in pc.machine.elevated[0][-1]
    assert config.read_bytes().count(b"networkingMode=mirrored\r\n") == 1
    assert any("swarm.listen=" in call for call in pc.windows.said())
    assert pc.run("remove") is Exit.DONE
    assert config.read_bytes() == before
    assert "Remove-NetFirewallHyperVRule" in pc.machine.elevated[-1][-1]
    assert "New-NetFirewallHyperVRule" not in pc.machine.elevated[-1][-1]


@pytest.mark.parametrize(
    ("machine", "windows", "reason"),
    [
        ({"exit_code": 1}, {}, "Windows could not open a port (exit code 1)"),
        ({"declines": True}, {}, "Windows was not allowed to open a port"),
        ({}, {"settings_fail": 1}, "engine could not be told"),
    ],
)
def test_nobody_is_told_that_a_computer_is_open_which_is_not(
    pc: Pc, tmp_path: Path, machine: dict[str, object], windows: dict[str, object], reason: str
) -> None:
    config = tmp_path / ".wslconfig"
    config.write_bytes(b"[wsl2]\r\nmemory=8GB\r\n")
    before = config.read_bytes()
    for name, value in machine.items():
        setattr(pc.machine, name, value)
    pc.windows.put(**windows)
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "Others cannot connect to this computer directly" in pc.said
    assert reason in pc.said
    assert config.read_bytes() == before
    assert pc.windows.said()[-1].endswith("swarm.listen=[]")
    asked = len(pc.machine.elevated)
    assert pc.run("remove") is Exit.DONE
    assert len(pc.machine.elevated) == asked  # nothing was open


def test_persons_own_kind_of_network_stays_and_is_named(pc: Pc, tmp_path: Path) -> None:
    config = tmp_path / ".wslconfig"
    config.write_text("[wsl2]\nnetworkingMode=nat\n")
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "sets another networkingMode" in pc.said
    assert not any("swarm.listen" in call for call in pc.windows.said())
    assert config.read_text() == "[wsl2]\nnetworkingMode=nat\n"
    assert pc.machine.elevated == []


def test_port_that_cannot_be_opened_again_or_closed_is_told(pc: Pc, tmp_path: Path) -> None:
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    pc.machine.declines = True
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "Others may no longer be able to connect" in pc.said
    assert "networkingMode=mirrored" in (tmp_path / ".wslconfig").read_text()
    pc.machine.declines = False
    pc.machine.exit_code = 1
    assert pc.run("remove") is Exit.FAILED
    assert "could not be removed (exit code 1)" in pc.said


def test_only_windows_own_powershell_gets_an_administrators_rights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SYSTEMROOT", r"D:\Windows")
    program, *_ = networking.firewall_command(is_open=True)
    assert program == r"D:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"


def test_what_was_agreed_is_understood_as_a_list(pc: Pc) -> None:
    pc.windows.put(wsl="absent", after_install="works")
    pc.machine.driver = OLD_DRIVER
    assert pc.run("install", "--agreed", "without-card,enable-wsl,") is Exit.DONE


def test_newer_version_leaves_none_of_the_older_ones_wheels_in_linux(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    (pc.root / "setup" / "shoal-1-py3-none-any.whl").unlink()
    (pc.root / "setup" / "shoal-2-py3-none-any.whl").write_bytes(b"newer wheel")
    beside = pc.windows.linux / "opt/shoal/environment"
    beside.mkdir()
    assert pc.run("install") is Exit.DONE
    parts = Parts(pc.windows.linux / "opt/shoal/setup")
    assert parts.wheel.name == "shoal-2-py3-none-any.whl"
    assert beside.is_dir()
    (parts.folder / "shoal-1-py3-none-any.whl").touch()
    with pytest.raises(SetupFailed, match=r"shoal-1-.*, shoal-2-"):
        _ = parts.wheel


def test_windows_10_stays_closed_and_says_so(pc: Pc, tmp_path: Path) -> None:
    pc.machine.build = 19045
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "needs Windows 11 22H2" in pc.said
    assert not (tmp_path / ".wslconfig").exists()
