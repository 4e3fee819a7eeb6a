"""What the engine remembers: statistics over restarts, and an archive that tells on nobody."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.real_engine import RealEngine, real_engine
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end


def statistics(engine: RealEngine) -> dict[str, object]:
    return engine.api.call("GET", "/shoal/v1/statistics?range=day")


def test_the_past_outlives_the_engine_and_the_archive_is_what_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = tmp_path / "tiny"
    tiny.mkdir()
    save_tiny("llama", tiny, max_position_embeddings=512)
    home = tmp_path / "home"
    with real_engine(home, "--model", str(tiny)) as engine:
        engine.wait_state("idle")
        answer = engine.complete("Hello", max_tokens=20, ignore_eos=True)
        used = answer["usage"]["completion_tokens"]
        today = statistics(engine)["today"]
        assert today["tokens_used"] == used
        assert today["tokens_served"] >= used
    with real_engine(home, "--model", str(tiny)) as engine:
        engine.wait_state("idle")
        past = statistics(engine)
        assert past["all"]["tokens_used"] == used
        assert sum(step["tokens_used"] for step in past["samples"]) == used
        assert past["samples"][-1]["ram_bytes"] > 100 << 20

        assert engine.api.call("GET", "/shoal/v1/log?lines=1")["lines"] != []
        shown = engine.api.call("GET", "/shoal/v1/diagnostics")["entries"]
        monkeypatch.setenv("SHOAL_HOME", str(home))
        file = tmp_path / "shown.zip"
        done = subprocess.run(
            [sys.executable, "-m", "engine", "doctor", "--json", "--archive", str(file)],
            capture_output=True,
            text=True,
        )
        checks = json.loads(done.stdout)["checks"]
    with zipfile.ZipFile(file) as packed:
        names = {name.removeprefix("shoal-diagnostics/") for name in packed.namelist()}
        held = "".join(packed.read(name).decode() for name in packed.namelist())
    assert names == {*(entry["name"] for entry in shown), "checks.json"}
    assert len(checks) > 5
    assert engine.token not in held
    assert str(home) not in held
