"""Nothing is left behind, and pausing really gives the machine back."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.localapi.client import ApiFailed
from tests.support.real_engine import RealEngine, eventually, gone, real_engine, sockets
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=4096)
    return str(directory)


@pytest.fixture(scope="module")
def running(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """One engine for all tests that leave it as they found it; the last one ends it."""
    with real_engine(tmp_path_factory.mktemp("running"), "--model", tiny) as engine:
        yield engine


@pytest.fixture
def engine(running: RealEngine) -> RealEngine:
    """It, ready to answer."""
    running.api.call("POST", "/shoal/v1/resume")
    running.wait(lambda status: status["state"] == "idle" and status["sessions"] == 0)
    return running


@pytest.fixture(scope="module")
def spread(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """One engine in two local stages; the last test with it ends it."""
    words = ("--model", tiny, "--stages", "2")
    with real_engine(tmp_path_factory.mktemp("spread"), *words) as engine:
        engine.wait(lambda status: len(status["plan"]) == 2)
        yield engine


SURVIVAL_S = 5.0
"""Nothing of ours may be there for longer, however the engine ended."""
PAUSE_S = 2.0
"""The longest that a pause takes to give back what the stage held."""
BASELINE_SLACK_BYTES = 16 << 20
"""The agent's own memory breathes."""


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_killed_engine_leaves_no_process_behind(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny, "--stages", "2") as engine:
        engine.wait(lambda status: len(status["plan"]) == 2)
        family = engine.family()
        # Two engines, each with a worker and a libp2p daemon.
        assert len(family) >= 6
        kill(engine.process.pid)
        assert gone(family, SURVIVAL_S) == []


def test_killed_daemon_is_started_again_and_serves(spread: RealEngine) -> None:
    text = spread.complete("Hello")
    (daemon,) = [p for p in psutil.Process(spread.process.pid).children() if "p2pd" in p.name()]
    kill(daemon.pid)

    def answer() -> object:
        try:
            return spread.complete("Hello")["choices"]
        except ApiFailed as error:
            return str(error)

    eventually(answer, lambda got: got == text["choices"], 60)


def test_engine_whose_local_stage_was_killed_says_so_and_ends(spread: RealEngine) -> None:
    family = spread.family()
    (stage,) = [p for p in family[0].children() if "--parent-pid" in p.cmdline()]
    kill(stage.pid)
    assert gone(family, 30) == []
    assert "One of the local stages has ended" in spread.process.failure()


def test_engine_ends_when_the_last_lease_is_gone(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny, leased=True) as engine:
        with engine.api.stream("GET", "/shoal/v1/events?lease=1"):
            engine.wait_state("idle")
            family = engine.family()
        assert gone(family, 30) == []


def test_killed_worker_is_started_again_and_serves(engine: RealEngine) -> None:
    before = engine.wait_state("idle")
    text = engine.complete("Hello")
    kill(before["worker_pid"])
    after = engine.wait(
        lambda s: s["state"] == "idle" and s["worker_pid"] not in (None, before["worker_pid"])
    )
    assert not psutil.pid_exists(before["worker_pid"])
    assert after["worker_rss_bytes"] > 0
    assert engine.complete("Hello")["choices"] == text["choices"]


def test_answer_goes_on_when_the_only_worker_is_killed(engine: RealEngine) -> None:
    worker_pid = engine.wait_state("idle")["worker_pid"]
    body = {
        "prompt": "Hello",
        "max_tokens": 1200,
        "temperature": 1.2,
        "seed": 3,
        "stream": True,
    }

    def answer(*, disturb: bool) -> str:
        with engine.api.stream("POST", "/v1/completions", body) as events:
            text = ""
            for line in events:
                if line == "[DONE]":
                    break
                text += json.loads(line)["choices"][0]["text"]
                if disturb and len(text) > 50:
                    kill(worker_pid)
                    disturb = False
        return text

    undisturbed = answer(disturb=False)
    assert answer(disturb=True) == undisturbed
    assert not psutil.pid_exists(worker_pid)


def pause(engine: RealEngine, **fields: object) -> dict[str, object]:
    return engine.api.call("POST", "/shoal/v1/pause", fields)


def held_bytes(processes: list[psutil.Process]) -> int:
    """RAM that nobody else can have."""
    return sum(process.memory_info().rss - process.memory_info().shared for process in processes)


def test_pause_gives_the_memory_back_and_resume_serves_again(engine: RealEngine) -> None:
    worker_pid = engine.wait_state("idle")["worker_pid"]
    text = engine.complete("Hello")
    family = engine.family()
    worker = next(process for process in family if process.pid == worker_pid)
    baseline_bytes = held_bytes([process for process in family if process is not worker])
    pausing = threading.Thread(target=pause, args=(engine,))
    pausing.start()
    assert gone([worker], PAUSE_S) == []
    pausing.join()
    assert held_bytes(engine.family()) < baseline_bytes + BASELINE_SLACK_BYTES
    assert engine.family() == [process for process in family if process is not worker]
    status = engine.status()
    assert (status["state"], status["worker_rss_bytes"], status["until"]) == ("paused", 0, None)
    assert status["reason"] == "Paused until you resume."
    with pytest.raises(ApiFailed, match="Paused until you resume"):
        engine.complete("Hello")
    engine.api.call("POST", "/shoal/v1/resume")
    engine.wait_state("idle")
    assert engine.complete("Hello")["choices"] == text["choices"]


def test_pause_before_the_model_is_ready_holds(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny) as engine:
        assert pause(engine)["state"] == "paused"
        assert engine.status()["model"] is None
        ready = engine.wait(lambda status: status["model"] is not None)
        assert (ready["state"], ready["reason"]) == ("paused", "Paused until you resume.")
        assert engine.status()["worker_pid"] is None
        engine.api.call("POST", "/shoal/v1/resume")
        engine.wait_state("idle")
        assert engine.complete("Hello")["choices"]


def test_resume_right_after_pause_is_not_lost(engine: RealEngine) -> None:
    engine.wait_state("idle")
    for _ in range(3):
        pausing = threading.Thread(target=pause, args=(engine,))
        pausing.start()
        time.sleep(0.005)
        engine.api.call("POST", "/shoal/v1/resume")
        pausing.join()
        engine.wait_state("idle", timeout_s=30)


def test_timed_pause_says_its_end_and_ends_by_itself(engine: RealEngine) -> None:
    engine.wait_state("idle")
    asked_s = time.time()  # noqa: TID251 - the person's clock
    status = pause(engine, seconds=2.0)
    told_s = time.time()  # noqa: TID251 - the person's clock
    assert asked_s + 2 <= float(str(status["until"])) <= told_s + 2
    engine.wait_state("idle")


def test_finish_then_pause_lets_the_answer_end(engine: RealEngine) -> None:
    engine.wait_state("idle")
    body = {
        "prompt": "Hello",
        "max_tokens": 1500,
        "temperature": 1.5,
        "stream": True,
        "seed": 1,
    }
    with engine.api.stream("POST", "/v1/completions", body) as events:
        lines = iter(events)
        next(lines)
        assert pause(engine, finish_first=True)["state"] == "draining"
        rest = list(lines)
    assert any('"finish_reason":"' in line.replace(": ", ":") for line in rest)
    engine.wait_state("paused", timeout_s=30)


def test_client_that_hangs_up_frees_its_session_at_once(engine: RealEngine) -> None:
    engine.wait_state("idle")
    body = {
        "prompt": "Hello",
        "max_tokens": 3000,
        "temperature": 1.5,
        "stream": True,
        "seed": 1,
    }
    with engine.api.stream("POST", "/v1/completions", body) as events:
        next(iter(events))
        assert engine.status()["sessions"] == 1
        events.hang_up()
    engine.wait(lambda status: status["sessions"] == 0, timeout_s=15)


def test_nothing_is_left_of_an_engine_that_has_quit(engine: RealEngine) -> None:
    engine.wait_state("idle")
    assert engine.token not in engine.home.running_file.read_text("utf-8")
    family = engine.family()
    ports = {port for _, port in sockets(engine)}
    files = [Path(c.laddr) for p in family for c in p.net_connections("unix") if c.laddr]
    assert ports
    assert any("p2pd" in file.name for file in files)
    engine.api.call("POST", "/shoal/v1/quit")
    assert gone(family, SURVIVAL_S) == []
    listening = {c.laddr.port for c in psutil.net_connections("tcp") if c.status == "LISTEN"}
    assert not ports & listening
    assert [file for file in files if file.exists()] == []
    assert not engine.home.running_file.exists()
