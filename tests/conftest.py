"""Tests keep out of the user's own Shoal, but share the models that were fetched and converted."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest

from engine.core.loading import loading
from engine.localapi.running import Home

# A shell that starts us in the background lets us ignore Ctrl-C, and what tests start would do so too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Threads that wait for one another on cores that several tests share take six times as long, here
# and in the engines that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["SHOAL_MODELS"] = str(Home.from_environment().models_dir)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looking for garbage among libraries and tests would take as long as loading them."""
    with loading():
        return (yield)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own files."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path_factory.getbasetemp() / "home"))
