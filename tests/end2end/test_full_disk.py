"""A full disk costs what cannot be kept, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.localapi.client import ApiFailed
from tests.support.real_engine import RealEngine, eventually, real_engine
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end

DISK_BYTES = 32 << 20
LIMIT_S = 60.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={DISK_BYTES},mode=700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "shoal-test", folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"only root may mount a small disk ({mounted.stderr.strip()})")
    yield folder
    subprocess.run(["umount", folder], check=True)


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """No byte is left on the disk."""
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    yield
    filling.unlink()


def post(engine: RealEngine, path: str, **body: object) -> dict[str, object]:
    return engine.api.call("POST", path, body)


class Answer:
    """An answer in a conversation, followed to its end."""

    def __init__(self, engine: RealEngine, chat: int, question: str) -> None:
        self._lines: list[dict[str, object]] = []
        events = engine.api.stream(
            "POST", f"/shoal/v1/chats/{chat}/answer", {"say": {"text": question}}
        )
        self._thread = threading.Thread(target=self._follow, args=(events,))
        self._thread.start()

    def _follow(self, events: object) -> None:
        with events:
            for line in events:
                self._lines.append(json.loads(line))

    @property
    def text(self) -> str:
        return "".join(str(line.get("text", "")) for line in list(self._lines))

    def ended(self) -> dict[str, object]:
        self._thread.join(LIMIT_S)
        return self._lines[-1]["answer"]


def test_stage_serves_on_and_pauses_while_nothing_can_be_kept(disk: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    save_tiny("llama", model, max_position_embeddings=4096)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"How deep is sea number {number}?" for number in range(300)))
    results = tmp_path / "results.jsonl"  # on another disk
    with real_engine(disk, "--model", str(model)) as engine:
        engine.wait_state("idle")
        expected = engine.complete("Hello")["choices"]
        sampling = {"temperature": 1.5, "max_tokens": 1500, "seed": 1}
        chat = post(engine, "/shoal/v1/chats", sampling=sampling)["id"]
        job = post(
            engine, "/shoal/v1/jobs", input_path=str(prompts), output_path=str(results),
            parameters={"max_tokens": 64, "temperature": 1.5, "seed": 1},
        )["id"]  # fmt: skip
        job_path = f"/shoal/v1/jobs/{job}"
        eventually(
            lambda: engine.api.call("GET", job_path), lambda got: got["done_rows"] > 0, LIMIT_S
        )
        answer = Answer(engine, chat, "Hello")
        eventually(lambda: answer.text, bool, LIMIT_S)

        with full(disk):
            # Whoever tries to keep something learns why that is not possible, at once.
            for ask in (
                lambda: post(engine, "/shoal/v1/chats"),
                lambda: post(engine, "/shoal/v1/jobs", input_path=str(prompts)),
                lambda: engine.api.call(
                    "PATCH", "/shoal/v1/settings", {"values": {"guest.quiet_s": 7}}
                ),
            ):
                with pytest.raises(ApiFailed, match=r"The disk that holds .* is full") as refused:
                    ask()
                assert refused.value.status == 507
            (notice,) = engine.status()["notices"]
            assert "is full, so nothing more can be kept; free some space." in notice
            # What runs goes on: requests, the answer to its end, and the batch as soon as it can.
            assert engine.complete("Hello")["choices"] == expected
            ended = answer.ended()
            assert "The answer is not kept yet" in str(ended["failure"])
            assert str(ended["text"]) == answer.text
            eventually(
                lambda: engine.api.call("GET", job_path),
                lambda got: got["state"] == "running" and "is full" in got["reason"],
                LIMIT_S,
            )
            # What was kept can be seen.
            assert engine.api.call("GET", "/shoal/v1/chats")["chats"]
            assert engine.api.call("GET", "/shoal/v1/statistics?range=hour")
            assert engine.api.call("GET", "/shoal/v1/settings")["settings"]
            # The person's word holds, whether it can be kept or not.
            worker = engine.status()["worker_pid"]
            status = post(engine, "/shoal/v1/pause")
            assert (status["state"], status["worker_pid"]) == ("paused", None)
            assert not psutil.pid_exists(worker)
            assert any("The pause cannot be kept" in notice for notice in status["notices"])
            assert post(engine, "/shoal/v1/resume")["paused"] is None
            engine.wait(lambda status: status["worker_pid"] is not None, LIMIT_S)
            assert engine.complete("Hello")["choices"] == expected
            # A worker that dies is started again.
            worker = engine.status()["worker_pid"]
            os.kill(worker, signal.SIGKILL)
            engine.wait(lambda s: s["worker_pid"] not in (None, worker), LIMIT_S)

        post(engine, "/shoal/v1/chats")
        messages = f"/shoal/v1/chats/{chat}/messages"
        eventually(
            lambda: engine.api.call("GET", messages)["messages"][-1]["text"],
            lambda text: text == answer.text,
            LIMIT_S,
        )
        done = eventually(
            lambda: engine.api.call("GET", job_path),
            lambda got: got["state"] == "completed",
            LIMIT_S,
        )
        assert (done["done_rows"], done["failed_rows"]) == (300, 0)
        assert len(results.read_text().splitlines()) == 300
        assert engine.status()["notices"] == []


def test_engine_that_finds_a_full_disk_says_so(disk: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    save_tiny("llama", model)
    with real_engine(disk, "--model", str(model)) as engine:
        engine.wait_state("idle")
    with full(disk), pytest.raises(Exception, match=r"full|No space") as refused:
        with real_engine(disk, "--model", str(model)):
            pass
    assert "Traceback" not in str(refused.value)
