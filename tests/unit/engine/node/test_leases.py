"""A leased engine lives as long as its owner, in whatever order the two get going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.config import Config, StageConfig
from engine.core.clock import SystemClock
from engine.localapi.running import Home
from engine.node import leases
from engine.node.compute import Compute
from engine.node.node import Node


@pytest.fixture
async def leased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.setattr(leases, "FIRST_S", 0.2)
    monkeypatch.setattr(leases, "GRACE_S", 0.1)
    node = Node(
        Home.under(tmp_path),
        Config(stage=StageConfig(enabled=False)),
        Compute("cpu", "float32", 1 << 30),
        None,
        SystemClock(),
        leased=True,
    )
    yield node
    await node.stop()


async def ends(node: Node) -> bool:
    try:
        await asyncio.wait_for(node.ended.wait(), 0.6)
    except TimeoutError:
        return False
    return True


async def test_owner_that_never_comes_is_not_waited_for_for_ever(leased: Node) -> None:
    leased.start()
    assert await ends(leased)


async def test_owner_that_came_before_the_start_keeps_the_engine(leased: Node) -> None:
    leased.lease_opened()
    leased.start()
    assert not await ends(leased)
    leased.lease_closed()
    assert await ends(leased)


async def test_owner_that_came_and_went_before_the_start_ends_the_engine(leased: Node) -> None:
    leased.lease_opened()
    leased.lease_closed()
    leased.start()
    assert await ends(leased)
