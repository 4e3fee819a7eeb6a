"""Tests keep out of the user's own Shoal, but share the models that were fetched and converted."""

from __future__ import annotations

import os

import pytest

from engine.localapi.running import Home

os.environ["SHOAL_MODELS"] = str(Home.from_environment().models_dir)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own files."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path_factory.getbasetemp() / "home"))
