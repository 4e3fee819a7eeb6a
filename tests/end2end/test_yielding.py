"""A guest gives way within seconds, comes back when it is quiet, and forgets no pause."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from engine.localapi.client import ApiFailed, EventLines
from tests.support.private_bus import private_bus
from tests.support.real_engine import RealEngine, eventually, real_engine, sockets
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end


QUIET_S = 3
GAME = "shoal-test-game"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=4096)
    return str(directory)


@pytest.fixture(scope="module")
def running(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """One engine for all tests that leave it as they found it."""
    rules = ["--set", f'guest.exclusive_programs=["{GAME}"]', "--set", f"guest.quiet_s={QUIET_S}"]
    with real_engine(tmp_path_factory.mktemp("running"), "--model", tiny, *rules) as engine:
        yield engine


def pause(engine: RealEngine, **fields: object) -> dict[str, object]:
    return engine.api.call("POST", "/shoal/v1/pause", fields)


def resume(engine: RealEngine) -> dict[str, object]:
    return engine.api.call("POST", "/shoal/v1/resume")


def test_an_exclusive_program_gets_the_machine_within_five_seconds(
    running: RealEngine, tmp_path: Path
) -> None:
    engine, game = running, tmp_path / GAME
    shutil.copy(str(shutil.which("sleep")), game)
    worker = engine.wait_state("idle")["worker_pid"]
    with subprocess.Popen([game, "60"]) as program:
        began_s = time.monotonic()
        status = engine.wait_state("yielding", timeout_s=10)
        assert time.monotonic() - began_s < 5
        assert status["reason"] == f"Yielding to {GAME}, which is running."
        assert (status["until"], status["yielding_to"]) == (None, "program")
        engine.wait(lambda s: s["worker_pid"] is None, timeout_s=5)
        assert not psutil.pid_exists(worker)
        with pytest.raises(ApiFailed, match=GAME):
            engine.complete("Hello")
        # The person's pause is on top of it, and stays when the program has ended.
        assert pause(engine)["state"] == "paused"
        assert resume(engine)["state"] == "yielding"
        program.kill()
    assert engine.wait(lambda s: s["until"] is not None, timeout_s=10)["state"] == "yielding"
    engine.wait_state("idle")
    assert engine.complete("Hello")["choices"]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_computer_may_sleep_whenever_it_wants(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with private_bus(monkeypatch) as bus:
        for service in (
            "com.feralinteractive.GameMode",
            "org.freedesktop.login1",
            "org.freedesktop.PowerManagement",
            "org.freedesktop.ScreenSaver",
            "org.freedesktop.UPower",
            "org.gnome.SessionManager",
        ):
            bus.own(service)
        with real_engine(tmp_path, "--model", tiny) as engine:
            engine.wait_state("idle")
            engine.complete("Hello")
            pause(engine)
            eventually(lambda: bus.asked, bool, 20)
        assert [method for _, method in bus.asked if "Inhibit" in method] == []


def test_a_pause_outlives_the_engine_until_the_person_resumes(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny) as engine:
        engine.wait_state("idle")
        status = pause(engine, scope="everything", until_tomorrow=True)
        assert (status["state"], status["paused"]) == ("paused", "everything")
        assert status["until"] is not None
        assert len(engine.family()) == 1  # neither libp2p nor a worker
        assert {port for _, port in sockets(engine)} == {urlsplit(engine.url).port}
        with pytest.raises(ApiFailed, match="Everything is paused"):
            engine.complete("Hello")
        with pytest.raises(ApiFailed, match="Everything is paused"):
            engine.api.call("POST", "/shoal/v1/swarm/leave")
    with real_engine(tmp_path, "--model", tiny) as engine:
        assert engine.status()["paused"] == "everything"
        assert len(engine.family()) == 1
        assert pause(engine)["paused"] == "stage"  # back in the swarm, the stage alone rests
        assert engine.wait(lambda s: s["model"] is not None)["state"] == "paused"
    with real_engine(tmp_path, "--model", tiny) as engine:
        status = engine.wait(lambda s: s["model"] is not None)
        assert (status["state"], status["paused"], status["until"]) == ("paused", "stage", None)
        assert status["worker_pid"] is None
        assert resume(engine)["paused"] is None
        engine.wait_state("idle")
        pause(engine, finish_first=True)
        engine.wait_state("paused")
        resume(engine)
    with real_engine(tmp_path, "--model", tiny) as engine:
        engine.wait_state("idle")


def answering(engine: RealEngine) -> EventLines:
    """An answer that has begun, and is long."""
    body = {"prompt": "Hello", "max_tokens": 3500, "temperature": 1.5, "stream": True, "seed": 1}
    events = engine.api.stream("POST", "/v1/completions", body)
    next(iter(events))
    return events


def test_everything_is_paused_and_comes_back_though_settings_changed_while_it_drained(
    running: RealEngine,
) -> None:
    engine = running
    engine.wait_state("idle")
    with answering(engine):
        assert pause(engine, scope="everything", finish_first=True)["state"] == "draining"
        engine.api.call(
            "PATCH", "/shoal/v1/settings", {"values": {"stage.kv_budget_bytes": 64 << 20}}
        )
    engine.wait(lambda _: len(engine.family()) == 1, timeout_s=30)
    assert engine.status()["paused"] == "everything"
    resume(engine)
    engine.wait_state("idle")
    assert engine.complete("Hello")["choices"]
