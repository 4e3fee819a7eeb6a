"""What of the app can be seen here of how it does on Windows, where no Python could be had for tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
UNIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
IMPORT_ALL = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({UNIX_ONLY}))  # None: the import fails
sys.path.insert(0, {str(ROOT)!r})
import app
for module in pkgutil.walk_packages(app.__path__, "app."):
    if not module.name.startswith("app.bench"):
        importlib.import_module(module.name)
found = {{name.partition(".")[0] for name, module in sys.modules.items() if module is not None}}
print(*sorted(found - set(sys.stdlib_module_names)))
"""
PARTS_OF_OTHERS = {
    "pydantic_core",
    "shiboken6",
    "shibokensupport",
    "signature_bootstrap",
    "_cython",
}


def test_every_module_of_the_app_loads_without_unix_and_with_the_packages_of_its_list() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", IMPORT_ALL], capture_output=True, text=True, check=True
    )
    lock = (ROOT / "installers/locks/gui.txt").read_text("utf-8")
    listed = {name.replace("-", "_").lower() for name in re.findall(r"(?m)^([\w-]+)==", lock)}
    own = {"app", "engine", "__main__", "_distutils_hack", "PySide6", *PARTS_OF_OTHERS}
    assert {name for name in done.stdout.split() if not name.startswith("_")} - listed <= own


def test_start_of_the_engine_runs_the_one_beside_it_and_prints_the_ready_line_alone(
    tmp_path: Path,
) -> None:
    shoal = tmp_path / "environment" / "bin" / "shoal"
    shoal.parent.mkdir(parents=True)
    shoal.write_text('#!/bin/sh\necho chatter\necho "$@" >&2\necho ready >&3\n')
    shoal.chmod(0o755)
    start = shutil.copy(ROOT / "installers/windows/linux/start-engine", tmp_path)
    done = subprocess.run(
        ["sh", start, "engine", "--model", "a b"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "ready\n"
    assert done.stderr == "engine --model a b --ready-fd 3\n"


def test_scripts_for_linux_are_written_as_its_shell_understands_them() -> None:
    for script in ("prepare.sh", "provision.sh", "start-engine"):
        file = ROOT / "installers/windows/linux" / script
        assert b"\r" not in file.read_bytes()
        subprocess.run(["sh", "-n", str(file)], check=True)
