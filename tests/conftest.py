"""Tests keep out of the user's own Shoal, but share the models that were fetched and converted."""

from __future__ import annotations

import gc
import os
import signal

import pytest

from engine.localapi.running import Home

# A shell that starts us in the background lets us ignore Ctrl-C, and what tests start would do so too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Threads that wait for one another on cores that several tests share take six times as long, here
# and in the engines that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
# Looking for garbage in libraries and tests while they are loaded takes half of that time.
gc.disable()
os.environ["SHOAL_MODELS"] = str(Home.from_environment().models_dir)


def pytest_collection_finish() -> None:
    """All is loaded, and stays."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own files."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path_factory.getbasetemp() / "home"))
