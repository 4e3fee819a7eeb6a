from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.core.errors import ModelCorrupt, ModelNotFound
from engine.core.plans import Span
from engine.localapi.schema import Progress
from engine.models.prepare import prepare
from engine.models.sources import resolve
from engine.models.storage import FetchLimits
from tests.support.tiny_models import save_tiny


async def test_child_returns_what_resolve_returns(tmp_path: Path) -> None:
    directory = save_tiny("qwen3", tmp_path / "m")
    seen: list[Progress] = []
    files = await prepare(str(directory), tmp_path / "a", "bfloat16", Span(0, 4), seen.append)
    assert files == resolve(str(directory), tmp_path / "b", "bfloat16", lambda _: None)
    assert seen[-1].done == seen[-1].total > 0


async def test_errors_come_back_as_the_same_class_with_the_same_text(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no folder /no/such"):
        await prepare("/no/such", tmp_path, "float32", None, lambda _: None)
    directory = save_tiny("llama", tmp_path / "m")
    (directory / "config.json").write_text("[]")
    with pytest.raises(ModelCorrupt, match="no JSON object"):
        await prepare(str(directory), tmp_path, "float32", None, lambda _: None)


def test_command_prints_json_lines_alone(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    command = [sys.executable, "-m", "engine.models.prepare", "--dtype", "float32"]
    command += ["--models-dir", str(tmp_path / "models"), "--blocks", "1:3", "--source"]
    good = subprocess.run([*command, str(directory)], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in good.stdout.splitlines()]
    assert lines[-1]["ready"]["directory"] == str(directory)
    assert all("progress" in line for line in lines[:-1])
    bad = subprocess.run([*command, "/no/such"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["error"]["code"] == "model_not_found"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal")
def test_child_dies_with_its_parent(tmp_path: Path) -> None:
    # The parent starts a child that hangs on a lock which we hold, then is killed.
    from filelock import FileLock

    models_dir = tmp_path / "models"
    models_dir.mkdir()
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from engine.models.prepare import prepare\n"
        f"asyncio.run(prepare('starter', Path({str(models_dir)!r}), 'float32', None, print))\n"
    )
    with FileLock(models_dir / ".starter.lock"):
        parent = subprocess.Popen([sys.executable, "-c", program])
        try:
            child = _wait_for_child(parent.pid)
            time.sleep(1.0)
            assert _alive(child)
        finally:
            parent.send_signal(signal.SIGKILL)
            parent.wait()
        deadline = time.monotonic() + 5
        while _alive(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at")
async def test_password_of_a_proxy_is_nowhere_in_the_arguments(tmp_path: Path) -> None:
    from filelock import FileLock

    models_dir = tmp_path / "models"
    models_dir.mkdir()
    limits = FetchLimits(proxy="http://me:secret@proxy:3128")
    with FileLock(models_dir / ".starter.lock"):  # so that the child waits
        preparing = asyncio.create_task(
            prepare("starter", models_dir, "float32", None, lambda _: None, limits=limits)
        )
        try:
            child = await asyncio.to_thread(_wait_for_child, os.getpid())
            async with asyncio.timeout(30):
                while not (arguments := Path(f"/proc/{child}/cmdline").read_bytes()).count(
                    b"prepare"
                ):
                    await asyncio.sleep(0.05)  # not begun yet
        finally:
            preparing.cancel()
            await asyncio.wait({preparing})
    assert b"secret" not in arguments
    assert b"limits" in arguments


def _wait_for_child(parent: int) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError("no child was started")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
