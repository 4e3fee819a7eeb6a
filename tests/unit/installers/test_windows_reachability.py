"""A Windows computer is opened to others on request alone, as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from installers.windows import networking
from installers.windows.provision import Exit
from tests.support.windows.installation import Pc


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


def test_windows_10_stays_closed_and_says_so(pc: Pc, tmp_path: Path) -> None:
    pc.machine.build = 19045
    assert pc.run("install", "--reachable", "yes") is Exit.DONE
    assert "needs Windows 11 22H2" in pc.said
    assert not (tmp_path / ".wslconfig").exists()
