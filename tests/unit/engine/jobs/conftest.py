from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.jobs import runner, settling
from tests.support.job_answerer import BackwardsAnswerer
from tests.support.job_bench import Bench, working


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TICK_S", 0.02)
    monkeypatch.setattr(runner, "MAX_HOLD_S", 0.02)
    monkeypatch.setattr(settling, "RETRY_S", 0.02)


@pytest.fixture
def answerer() -> BackwardsAnswerer:
    return BackwardsAnswerer()


@pytest.fixture
async def bench(tmp_path: Path, answerer: BackwardsAnswerer) -> AsyncIterator[Bench]:
    async with working(tmp_path, answerer) as bench:
        yield bench
