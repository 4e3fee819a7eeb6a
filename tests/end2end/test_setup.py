"""The first start: nothing is fetched or announced before a person has said how to begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.core.errors import EngineError
from tests.support.real_engine import RealEngine, real_engine
from tests.support.tiny_models import save_tiny, save_tokenizer

pytestmark = pytest.mark.end2end


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    save_tiny("llama", directory)
    save_tokenizer(directory)
    return directory


def preview(engine: RealEngine, **values: Any) -> dict[str, Any]:
    return engine.api.call("POST", "/shoal/v1/plan/preview", {"values": values})


def test_engine_begins_only_when_told_and_remembers_that(tmp_path: Path, model: Path) -> None:
    words = ("--await-setup", "--model", str(model))
    with real_engine(tmp_path, *words) as engine:
        assert engine.status()["awaits_setup"]
        assert preview(engine)["span"] == [0, 4]
        assert preview(engine, **{"stage.max_blocks": 2})["span"] == [0, 2]
        with pytest.raises(EngineError, match="There is no setting"):
            preview(engine, **{"stage.colour": 1})
        with pytest.raises(EngineError):
            engine.api.call("POST", "/shoal/v1/swarm/join", {"invite": "shoal://nonsense"})
        status = engine.status()
        assert status["awaits_setup"]
        assert status["peer_id"] is None
        assert not engine.home.identity_file.exists()
        engine.api.call("POST", "/shoal/v1/setup", {})
        assert engine.wait_state("idle")["can_chat"]
        assert engine.home.identity_file.exists()
    with real_engine(tmp_path, *words) as engine:
        engine.wait_state("idle")


def test_first_thing_may_be_to_found_a_swarm(tmp_path: Path, model: Path) -> None:
    with real_engine(tmp_path, "--await-setup", "--model", str(model)) as engine:
        made = engine.api.call(
            "POST", "/shoal/v1/swarm/create", {"name": "friends", "private": True}, timeout_s=60
        )
        assert made["invite"].startswith("shoal://")
        status = engine.wait_state("idle")
        assert (status["swarm"], status["awaits_setup"]) == ("friends", False)
