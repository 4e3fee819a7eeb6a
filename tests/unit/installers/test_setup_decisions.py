"""What setup decides and says, given what it finds."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installers.setup_steps import checks, pip_runs, system_packages
from installers.setup_steps.torch_build import Driver, choose, has_nvidia_card

BOOTSTRAP = Path(__file__).parents[3] / "installers" / "bootstrap.py"
LOG = Path("setup.log")

MODERN_CARD = (8, 6)


def test_old_pythons_can_read_the_file_that_refuses_them() -> None:
    ast.parse(BOOTSTRAP.read_text(encoding="utf-8"), feature_version=(3, 4))


def test_a_modern_card_and_driver_get_the_cuda_build() -> None:
    assert choose(Driver((13, 0), (MODERN_CARD,)), has_card=True).kind == "cuda"


def test_one_modern_card_beside_an_old_one_is_enough_for_the_cuda_build() -> None:
    assert choose(Driver((13, 1), ((6, 1), MODERN_CARD)), has_card=True).kind == "cuda"


@pytest.mark.parametrize(
    ("driver", "has_card", "told"),
    [
        (None, False, "No NVIDIA card was found"),
        (None, True, "no working driver"),
        (Driver((13, 0), ()), False, "No NVIDIA card was found"),
        (Driver((12, 9), (MODERN_CARD,)), True, "driver is too old (it runs CUDA 12.9, 13.0 is"),
        (Driver((13, 0), ((6, 1),)), True, "card is too old (compute capability 6.1, 7.5 is"),
    ],
)
def test_everything_else_gets_the_cpu_build_and_a_reason(
    driver: Driver | None, has_card: bool, told: str
) -> None:
    build = choose(driver, has_card=has_card)
    assert build.kind == "cpu"
    assert told in build.reason


DRIVER = """
int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int *v) { *v = %(version)d; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGetAttribute(int *v, int what, int device) { *v = what == 75 ? 8 : 6; return 0; }
"""


@pytest.mark.parametrize(
    ("cuda", "told"),
    [
        (12080, "cpu: The NVIDIA driver is too old (it runs CUDA 12.8, 13.0 is needed)"),
        (13000, "cuda: An NVIDIA card was found"),
    ],
)
def test_the_driver_that_is_there_is_asked(cuda: int, told: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None or sys.platform != "linux":
        pytest.skip("needs a compiler to make a driver")
    (tmp_path / "driver.c").write_text(DRIVER % {"version": cuda})
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-o", library, tmp_path / "driver.c"], check=True)
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            "from installers.setup_steps.torch_build import for_this_machine\n"
            "build = for_this_machine()\nprint(f'{build.kind}: {build.reason}')",
        ],
        env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(BOOTSTRAP.parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.startswith(told)


@pytest.mark.parametrize(
    ("vendor", "device_class", "is_card"),
    [
        ("0x10de", "0x030000", True),  # display controller
        ("0x10de", "0x030200", True),  # 3D controller, as in laptops and servers
        ("0x10de", "0x040300", False),  # the sound device on a card
        ("0x1002", "0x030000", False),  # AMD
    ],
)
def test_cards_are_known_by_vendor_and_class(
    tmp_path: Path, vendor: str, device_class: str, is_card: bool
) -> None:
    device = tmp_path / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{device_class}\n")
    assert has_nvidia_card(tmp_path) is is_card


@pytest.mark.parametrize(
    ("output", "told"),
    [
        # A dead network also makes pip claim that no version exists; the network must win.
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
            "ERROR: No matching distribution found for torch==2.13.0\n",
            "because the package index cannot be reached; check the internet connection",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on "
            "device\n",
            "because the disk is full; free some space",
        ),
        (
            "ERROR: No matching distribution found for torch==2.13.0\n",
            "because no build of torch==2.13.0 fits this machine (Python 3.",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. …\n",
            "because a file is not the one that this version of Shoal was tested with; get the newest",
        ),
        ("ERROR: Something new.\n", "because pip said “Something new”"),
        ("", "because pip ended without saying why"),
    ],
)
def test_a_failure_of_pip_becomes_one_sentence(output: str, told: str) -> None:
    text = pip_runs.explain(output, purpose="install Shoal", log=LOG)
    assert text.startswith("Setup could not install Shoal, " + told)
    assert "\n" not in text
    assert str(LOG) in text


def test_a_library_that_cannot_be_loaded_names_its_package() -> None:
    libraries = {"libc.so.6": "libc6", "libshoal-has-no-such.so.1": "libshoal-none"}
    assert system_packages.missing_packages(libraries) == ["libshoal-none"]


def test_a_package_list_may_hold_comments_and_is_compared_with_what_is_installed(
    tmp_path: Path,
) -> None:
    if not Path("/usr/bin/dpkg-query").exists():
        pytest.skip("needs dpkg")
    names = tmp_path / "packages.txt"
    names.write_text("# for the screen\nlibc6  # always there\nshoal-has-no-such-package\n")
    assert system_packages.missing_programs(names) == ["shoal-has-no-such-package"]


def _program(folder: Path, name: str, body: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A `bin` folder in which every check passes and writes down its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for _, command in checks.CHECKS:
        _program(folder, command[0], 'echo "$(basename "$0") $*" >> called')
    return folder


def _called(root: Path) -> list[str]:
    return (root / "called").read_text().splitlines()


def test_all_checks_run_even_after_one_has_failed(
    tmp_path: Path, programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _program(programs, "mypy", "exit 2")
    assert checks.run(tmp_path, programs, []) == 1
    assert [line.split()[0] for line in _called(tmp_path)] == [
        "ruff",
        "ruff",
        "lint-imports",
        "pytest",
    ]
    summary = capfd.readouterr().out.splitlines()[-1]
    assert "types FAILED" in summary
    assert "tests ok" in summary


def test_checks_succeed_when_every_one_does(tmp_path: Path, programs: Path) -> None:
    assert checks.run(tmp_path, programs, []) == 0


@pytest.mark.parametrize(("again", "status"), [("exit 0", 0), ("exit 1", 1)])
def test_failed_tests_are_run_once_more_alone_and_that_counts(
    again: str, status: int, tmp_path: Path, programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _program(programs, "pytest", f'case "$*" in *--last-failed*) {again};; *) exit 1;; esac')
    assert checks.run(tmp_path, programs, []) == status
    summary = capfd.readouterr().out.splitlines()[-1]
    assert ("tests ok when run alone" if status == 0 else "tests FAILED") in summary


def test_arguments_choose_tests_and_leave_the_other_checks_out(
    tmp_path: Path, programs: Path
) -> None:
    assert checks.run(tmp_path, programs, ["-k", "planner"]) == 0
    assert _called(tmp_path) == ["pytest -k planner"]
