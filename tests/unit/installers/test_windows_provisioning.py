"""The setup's own program for Windows, with stand-ins of Windows, `wsl.exe` and uv."""

from __future__ import annotations

import shutil

import pytest

from installers.setup_steps.torch_build import Driver
from installers.windows.provision import Exit
from tests.support.windows.installation import Pc

OLD_DRIVER = Driver(cuda=(12, 4), capabilities=((8, 6),))
GOOD_DRIVER = Driver(cuda=(13, 0), capabilities=((8, 6),))


def test_everything_is_installed_in_order_and_nothing_twice(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE, pc.said
    assert pc.said == "Shoal is installed."
    assert [call[0] for call in pc.uv_calls()] == ["venv", "pip", "pip", "venv"]
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


def test_card_without_a_driver_is_told_before_the_download(pc: Pc) -> None:
    pc.machine.has_card = True
    assert pc.run("install") is Exit.WORD_NEEDED
    assert pc.said.startswith("without-card|There is an NVIDIA card here but no working driver")
    assert not pc.mirror.ranges


def test_computer_without_a_card_is_asked_nothing_and_the_reason_is_in_the_log(pc: Pc) -> None:
    assert pc.run("install") is Exit.DONE
    assert "No NVIDIA card was found, so PyTorch for CPUs is used." in pc.log()


def test_proxy_of_windows_holds_for_all_that_is_fetched(
    pc: Pc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # our own downloads are from here
    monkeypatch.setenv("HTTPS_PROXY", "")  # is put back afterwards
    pc.machine.proxy = "http://proxy:3128"
    assert pc.run("install") is Exit.DONE, pc.said
    assert (pc.windows.folder / "uv-proxy.txt").read_text() == "http://proxy:3128"
    assert pc.windows.state["proxy"] == "http://proxy:3128"


def test_full_disk_is_told_wherever_it_is_met_and_the_next_run_goes_on(pc: Pc) -> None:
    pc.windows.put(wsl="disk full")
    assert pc.run("install") is Exit.FAILED
    assert pc.said == "The disk that Shoal's Linux is on is full; free some space, then try again."
    pc.windows.put(wsl="works", provision_fails="tar: write error: No space left on device")
    assert pc.run("install") is Exit.FAILED
    assert "is full; free some space" in pc.said
    pc.windows.put(provision_fails="")
    assert pc.run("install") is Exit.DONE


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


def test_what_nobody_expected_is_told_in_a_sentence_too_with_the_details_in_the_log(pc: Pc) -> None:
    (pc.root / "setup" / "root-file-system.json").write_text("{}")
    assert pc.run("install") is Exit.FAILED
    assert "met something that it did not expect (KeyError), so it stopped" in pc.said
    assert "Traceback" in pc.log()


def test_folder_that_cannot_be_written_is_told(pc: Pc) -> None:
    (pc.root / "installed.part").mkdir()
    assert pc.run("install") is Exit.FAILED
    assert "correct the folder's rights" in pc.said


def test_what_was_agreed_is_understood_as_a_list(pc: Pc) -> None:
    pc.windows.put(wsl="absent", after_install="works")
    pc.machine.driver = OLD_DRIVER
    assert pc.run("install", "--agreed", "without-card,enable-wsl,") is Exit.DONE
