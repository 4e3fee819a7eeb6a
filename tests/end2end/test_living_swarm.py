"""Volunteers come and go: real engines find their places, and mend the swarm when others are gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.client.client import Client
from engine.core.sampling_params import SamplingParams
from engine.localapi.running import Home
from tests.support.real_engine import RealEngine, eventually, real_engine, swarm_client
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end

HALF = (
    *("--set", "stage.max_blocks=2", "--set", "stage.kv_budget_bytes=67108864"),
    *("--set", "stage.threads=1", "--set", "swarm.shape={rate_bytes_per_s=200000}"),
    *("--set", "swarm.snapshot_refresh_s=1"),
    *("--set", "swarm.announce_refresh_s=2", "--set", "swarm.announce_expiry_s=6"),
)
"""Two of the four blocks of the tiny model, a slow line, and news that spreads fast."""
FRONT, BACK = [0, 2], [2, 4]
BOTH = [list(range(20, 60)), [5, 6, 7]]
PARAMS = [
    SamplingParams(max_new_tokens=500),
    SamplingParams(max_new_tokens=500, temperature=1.0, seed=11),
]


async def write(client: Client) -> list[list[int]]:
    """Two long answers."""
    ids: list[list[int]] = [[], []]
    async for index, event in client.generate(BOTH, PARAMS):
        ids[index].append(event.id)
    return ids


async def write_many(client: Client) -> None:
    """A batch that is worth several chains: one line does not carry it as fast as two."""
    prompts = [[5 + index, 6, 7] for index in range(64)]
    async for _ in client.generate(prompts, [SamplingParams(max_new_tokens=10)] * len(prompts)):
        pass


def spans(engines: list[RealEngine]) -> list[list[int]]:
    """What they serve; those that do not yet are left out."""
    known = [engine.status() for engine in engines]
    return [status["span"] for status in known if status["state"] in ("idle", "serving")]


def shoal_status(engine: RealEngine, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "engine", "status", *arguments],
        env={**os.environ, "SHOAL_HOME": str(engine.home.data_dir.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


async def test_volunteers_form_two_pipelines_and_take_over_what_others_leave(
    tmp_path: Path,
) -> None:
    tiny = tmp_path / "tiny"
    save_tiny("llama", tiny, max_position_embeddings=1024)
    with contextlib.ExitStack() as running:

        def start(name: str, *arguments: str) -> RealEngine:
            return running.enter_context(real_engine(tmp_path / name, *HALF, *arguments))

        founder = start("founder", "--model", str(tiny))
        founder.wait_state("idle")
        founder.api.call("POST", "/shoal/v1/swarm/create", {"name": "reef"})
        invite = str(founder.api.call("GET", "/shoal/v1/swarm")["invite"])
        # It is one machine: the others need not measure it again.
        eventually(founder.home.profile_file.exists, bool, 60)
        for name in ("b", "c", "d"):
            measured = Home.under(tmp_path / name).profile_file
            measured.parent.mkdir(parents=True)
            shutil.copy(founder.home.profile_file, measured)
        engines = [founder, *(start(name, "--invite", invite) for name in ("b", "c", "d"))]
        eventually(lambda: sorted(spans(engines)), [FRONT, FRONT, BACK, BACK].__eq__, 60)
        status = founder.wait(lambda status: len(status["plan"]) == len(status["spares"]) == 2)
        assert status["can_chat"]

        async with swarm_client(tmp_path / "client", invite) as (client, _):
            for _ in range(20):  # until it is known what the lines carry
                await write_many(client)
                if all(engine.status()["tokens_served"] for engine in engines):
                    break
            assert all(engine.status()["tokens_served"] for engine in engines)

            expected = await write(client)
            place = founder.status()["span"]
            leaving = [engine for engine in engines if engine.status()["span"] != place]
            (other,) = (e for e in engines if e is not founder and e not in leaving)
            before = [founder.status()["worker_pid"], other.status()["worker_pid"]]
            answer = asyncio.create_task(write(client))
            await asyncio.sleep(0.2)
            os.kill(leaving[0].process.pid, signal.SIGKILL)
            for _ in range(2):  # the second time it does not wait for the answer to end
                os.kill(leaving[1].process.pid, signal.SIGTERM)
                await asyncio.sleep(0.1)
            assert await answer == expected
            assert client.recoveries.stages_replaced
        eventually(lambda: sorted(spans([founder, other])), [FRONT, BACK].__eq__, 30)
        (moved,) = (
            engine
            for engine, pid in zip((founder, other), before, strict=True)
            if engine.status()["worker_pid"] != pid
        )
        # Whoever decides before the lost one's announcement expires sees a faster swarm, not a gap.
        why = ("served by nobody", "fastest pipeline of all 2")
        moved.wait(lambda status: any(words in status["span_reason"] for words in why), 30)
        shown: dict[str, Any] = json.loads(shoal_status(moved, "--json"))
        assert sorted([stage["start"], stage["end"]] for stage in shown["plan"]) == [FRONT, BACK]
        assert f"Why these  {shown['span_reason']}" in shoal_status(moved)
