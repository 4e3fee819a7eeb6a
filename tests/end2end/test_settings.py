"""Settings that a person changes while the engine runs: followed at once, and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.localapi.client import ApiFailed
from tests.support.real_engine import RealEngine, real_engine
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=512)
    return str(directory)


def change(engine: RealEngine, **values: object) -> dict[str, object]:
    named = {name.replace("__", "."): value for name, value in values.items()}
    return engine.api.call("PATCH", "/shoal/v1/settings", {"values": named}, timeout_s=60)


def test_settings_are_followed_at_once_and_hold_after_a_restart(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config" / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text("# Mine.\n[model]\n" + f"source = {json.dumps(tiny)}\n")
    with real_engine(tmp_path) as engine:
        peer = engine.wait_state("idle")["peer_id"]
        with pytest.raises(ApiFailed, match=r"guest.quiet_s is wrong"):
            change(engine, guest__quiet_s=-3)
        program = Path(sys.executable).name
        change(engine, guest__exclusive_programs=[program])
        assert engine.wait_state("yielding", timeout_s=15)["yielding_to"] == "program"
        change(engine, guest__exclusive_programs=None, guest__quiet_s=0)
        engine.wait_state("idle")
        worker = engine.status()["worker_pid"]
        # What needs the stage to begin again begins it again.
        shown = change(engine, stage__kv_budget_bytes=64 << 20, api__max_concurrent=7)
        assert shown["needs_restart"] == ["api.max_concurrent"]
        after = engine.wait(lambda s: s["state"] == "idle" and s["worker_pid"] != worker)
        assert after["peer_id"] == peer
        with pytest.raises(ApiFailed, match="no NVIDIA driver answers"):
            change(engine, model__device="GPU-00000000-0000-0000-0000-000000000000")
        assert engine.complete("Hello")["choices"]

        kept = engine.api.call("GET", "/shoal/v1/models/kept")
        assert kept["free_bytes"] > 0
        secret = {"passphrase": "correct horse"}
        backup = engine.api.call("POST", "/shoal/v1/identity/backup", secret)
        assert backup["peer_id"] == peer

        monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
        with pytest.raises(ApiFailed, match="only the settings file and `shoal settings set`"):
            change(engine, updates__url="https://elsewhere.example/shoal.json")
        command = [sys.executable, "-m", "engine", "settings", "set", "guest.user_idle_s=120"]
        command.append("updates.url=https://mine.example/shoal.json")
        subprocess.run(command, check=True, capture_output=True)
        shown = engine.api.call("GET", "/shoal/v1/settings")["settings"]
        (url,) = (one["value"] for one in shown if one["name"] == "updates.url")
        assert url == "https://mine.example/shoal.json"
    assert file.read_text().startswith("# Mine.")
    with real_engine(tmp_path) as engine:
        engine.wait_state("idle")
        shown = engine.api.call("GET", "/shoal/v1/settings")
        values = {one["name"]: one["value"] for one in shown["settings"]}
        assert values["guest.user_idle_s"] == 120
        assert values["stage.kv_budget_bytes"] == 64 << 20
        assert shown["needs_restart"] == []
        restored = {"backup": backup["backup"], **secret}
        engine.api.call("POST", "/shoal/v1/identity/restore", restored, timeout_s=60)
        assert engine.wait_state("idle")["peer_id"] == peer


def peak_bytes(process: psutil.Process) -> int:
    """The most that it has ever held in RAM."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps peaks there")
def test_a_memory_cap_holds_or_the_model_is_refused_with_numbers(tmp_path: Path) -> None:
    file = tmp_path / "config" / "settings.toml"
    file.parent.mkdir(parents=True)
    cap_bytes = 2 << 30
    file.write_text(f"limits.ram_bytes = {cap_bytes}\n")
    with real_engine(tmp_path, "--model", "starter") as engine:
        assert engine.wait_state("idle")["span"] == [0, 30]
        assert engine.complete("The quick brown fox " * 60, max_tokens=16, n=4)["choices"]
        assert sum(map(peak_bytes, engine.family())) <= cap_bytes
        change(engine, limits__ram_bytes=700 << 20)
        status = engine.wait_state("error")
        assert "allow more memory, or choose a smaller model" in status["reason"]
        assert status["worker_pid"] is None
