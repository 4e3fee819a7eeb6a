"""Calls of `wsl.exe`, answered by a program that speaks German, in old and new Windows' letters."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from app import wsl
from app.wsl import CallStopped, Look, Wsl, WslFailed
from app.wsl_troubles import Trouble, sentence
from tests.support.windows.computer import small_linux, wsl_command
from tests.support.windows.wsl_stand_in import Windows


@pytest.fixture(params=["utf-8", "utf-16"])
def windows(tmp_path: Path, request: pytest.FixtureRequest) -> Windows:
    one = Windows(tmp_path)
    one.put(output=request.param)
    return one


@pytest.fixture
def program(windows: Windows) -> Wsl:
    return Wsl(wsl_command(windows.folder))


@pytest.mark.parametrize(
    ("state", "look"),
    [
        ({"wsl": "absent"}, Look(Trouble.ABSENT, None)),
        ({"wsl": "needs restart"}, Look(Trouble.ABSENT, None)),
        ({"wsl": "works"}, Look(None, None)),
        ({"distributions": {"Ubuntu": 1}}, Look(None, None)),
        ({"distributions": {"Ubuntu": 2, "Shoal": 2}}, Look(None, 2)),
        ({"distributions": {"Shoal": 1}}, Look(Trouble.VERSION_1, 1)),
    ],
)
def test_look_tells_what_there_is_in_any_language(
    windows: Windows, program: Wsl, state: dict[str, object], look: Look
) -> None:
    windows.put(**state)
    assert program.look() == look


def test_without_wsl_exe_there_is_no_wsl(tmp_path: Path) -> None:
    assert Wsl((str(tmp_path / "wsl.exe"),)).look() == Look(Trouble.ABSENT, None)


@pytest.mark.parametrize(
    ("state", "trouble", "advice"),
    [
        ({"wsl": "absent"}, Trouble.ABSENT, "setup again"),
        ({"wsl": "no virtualisation"}, Trouble.NO_VIRTUALISATION, "firmware settings"),
        ({"wsl": "no kernel"}, Trouble.KERNEL_MISSING, "wsl --update"),
        ({"wsl": "disk full"}, Trouble.DISK_FULL, "free some space"),
        ({"distributions": {"Shoal": 2}}, Trouble.NAME_TAKEN, "rename or remove"),
    ],
)
def test_failed_import_says_in_one_sentence_what_to_do(
    windows: Windows,
    program: Wsl,
    state: dict[str, object],
    trouble: Trouble,
    advice: str,
    tmp_path: Path,
) -> None:
    windows.put(**state)
    archive = tmp_path / "linux.tar"
    archive.write_bytes(small_linux())
    with pytest.raises(WslFailed, match=advice) as failed:
        program.import_from(archive, tmp_path)
    assert failed.value.trouble is trouble


def test_paths_with_blanks_and_foreign_letters_arrive_whole(
    windows: Windows, program: Wsl, tmp_path: Path
) -> None:
    folder = tmp_path / "Jörg Müller" / "魚群 & co"
    folder.mkdir(parents=True)
    (archive := folder / "wurzel dateien.tar").write_bytes(small_linux())
    program.import_from(archive, folder)
    assert windows.calls() == [
        ["--import", "Shoal", str(folder), str(archive), "--version", "2"]
    ]  # fmt: skip
    assert program.look() == Look(None, 2)


def test_words_that_we_do_not_know_are_passed_on(windows: Windows, program: Wsl) -> None:
    answer = program.call("--was-ist-das")
    assert answer.trouble is Trouble.UNKNOWN
    assert "“Ungültiges Befehlszeilenargument”" in sentence(Trouble.UNKNOWN, detail=answer.text)


def test_removing_what_is_not_there_is_no_failure(windows: Windows, program: Wsl) -> None:
    program.unregister()
    windows.put(distributions={"Shoal": 2})
    program.unregister()
    assert program.look() == Look(None, None)


def test_call_that_takes_too_long_is_ended_and_said(tmp_path: Path) -> None:
    slow = Wsl((sys.executable, "-c", "import time; time.sleep(60)"))
    assert slow.call("--status", limit_s=0.1).trouble is Trouble.TIMED_OUT


def test_person_need_not_wait_for_the_end_of_a_call() -> None:
    wanted = threading.Event()
    slow = Wsl(
        (sys.executable, "-c", "import time; print('half', flush=True); time.sleep(60)"),
        say=lambda line: wanted.set(),
        stopped=wanted.is_set,
    )
    with pytest.raises(CallStopped):
        slow.call("--import")


def test_proxy_is_handed_on_into_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("WSLENV", "MINE/p")
    assert wsl.environment(("HTTPS_PROXY", "NO_PROXY"))["WSLENV"] == "MINE/p:HTTPS_PROXY"


def test_engine_is_started_by_windows_own_program_and_without_a_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SYSTEMROOT", r"D:\Windows")
    program, *arguments = wsl.engine_command("1.2.3", "--model", "a b")
    assert program == r"D:\Windows\System32\wsl.exe"
    assert arguments[-4:] == [
        "/opt/shoal/versions/1.2.3/start-engine",
        *("engine", "--model", "a b"),
    ]
    assert arguments[: arguments.index("--exec")].count("Shoal") == 1


def test_files_of_the_engine_are_found_from_windows() -> None:
    found = wsl.windows_path("/home/shoal/.local/share/shoal/api-token")
    assert found == r"\\wsl.localhost\Shoal\home\shoal\.local\share\shoal\api-token"
