"""Other settings, or the look at what they would mean, while this node holds its blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from engine.config import Config, ModelConfig, StageConfig, SwarmConfig
from engine.core.clock import SystemClock
from engine.localapi.running import Home
from engine.localapi.settings import SettingsChange
from engine.localapi.setup import PreviewRequest
from engine.node import compute
from engine.node.compute import MEMORY_SHARE
from engine.node.household import Household
from engine.node.node import Node
from engine.node.setting_up import SettingUp
from engine.node.settings import SettingsFile
from tests.support.swarm import eventually

FREE_BYTES = 1 << 30
KV_BYTES = 64 << 20
LEAST_HELD_BYTES = 48 << 20
"""torch alone takes more."""


@pytest.fixture
async def node(tiny: Path, tmp_path: Path) -> AsyncIterator[Node]:
    config = Config(
        model=ModelConfig(source=str(tiny)),
        stage=StageConfig(kv_budget_bytes=KV_BYTES),
        swarm=SwarmConfig(listen=("/ip4/127.0.0.1/tcp/0",)),
    )
    machine = await asyncio.to_thread(compute.choose, config.model)
    node = Node(Home.under(tmp_path), config, machine, None, SystemClock(), leased=False)
    node.start()
    await eventually(lambda: node.status().worker_pid, 90)
    yield node
    await node.stop()


async def test_memory_that_our_worker_holds_is_there_for_the_next_one(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.under(tmp_path)
    memory = psutil.virtual_memory()._replace(available=FREE_BYTES)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    shown = await SettingUp(home, node).preview(PreviewRequest())
    assert shown.memory_free_bytes > FREE_BYTES + LEAST_HELD_BYTES

    overrides = {
        "model": {"source": node.config.model.source},
        "swarm": {"listen": ("/ip4/127.0.0.1/tcp/0",)},
    }
    household = Household(home, SettingsFile(home.settings_file, overrides), node)
    await household.change_settings(SettingsChange(values={"stage.kv_budget_bytes": KV_BYTES // 2}))
    room_bytes = node.rooms().rooms_bytes[0] + KV_BYTES // 2
    assert room_bytes > MEMORY_SHARE * (FREE_BYTES + LEAST_HELD_BYTES)
