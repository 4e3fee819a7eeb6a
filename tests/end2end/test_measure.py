"""`shoal measure` as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.core.ids import PeerId
from engine.core.profiles import ModelSize
from engine.localapi.measurements import MeasuredProfile
from engine.localapi.running import Home
from engine.models.known import starter_spec
from engine.profiler.cache import cached
from engine.profiler.exchange import ExchangeOrder, measure_exchange
from tests.support.real_engine import eventually, gone

pytestmark = pytest.mark.end2end


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "engine", "measure", *words]


def environment(root: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "SHOAL_MODELS"}
    return {**kept, "SHOAL_HOME": str(root)}


def test_quick_json_is_one_whole_profile_that_is_kept_and_plans_can_use(tmp_path):
    done = subprocess.run(
        command("--quick", "--json"), env=environment(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    profile = MeasuredProfile.model_validate_json(done.stdout)
    assert profile == cached(Home.under(tmp_path))
    assert not list(tmp_path.rglob("*.safetensors")), "nothing is downloaded or converted"
    raw = json.loads(done.stdout)
    for value in (raw["block"]["mlp"]["base_s"], raw["head"]["unit_s"], raw["encode_bytes_per_s"]):
        assert set(value) == {"value", "spread", "unit"}
        assert value["value"] > 0
    assert profile.frame is None, "there is no time for it"
    assert {(row.batch, row.context) for row in profile.table} >= {(1, 128), (64, 1024)}
    node = profile.node_profile(PeerId("a"), ModelSize.of(starter_spec(), 4))
    assert 0 < node.block.mlp.of(1) < node.block.mlp.of(64) < 1
    assert "No engine runs" in profile.network.note

    again = subprocess.run(
        command("--cached", "--json", "--dtype", profile.dtype),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    # The machine may be busier by now; then it was right to measure again.
    assert "busy" in again.stderr or "busier" in again.stderr or again.stdout == done.stdout


def test_interrupting_ends_everything_and_keeps_nothing(tmp_path):
    with subprocess.Popen(
        command(), env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            children = eventually(psutil.Process(process.pid).children, bool, 30)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1
    assert errors.splitlines()[-1] == "shoal: Interrupted."
    assert "Traceback" not in errors
    assert gone(children, 30) == []
    assert not Home.under(tmp_path).profile_file.exists()


def test_what_cannot_be_kept_is_printed_nevertheless(tmp_path):
    Home.under(tmp_path).profile_file.parent.write_text("a file where the directory should be")
    done = subprocess.run(
        command("--quick", "--json", "--no-network"),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert MeasuredProfile.model_validate_json(done.stdout).quick
    assert "could not be kept" in done.stderr.splitlines()[-1]


async def test_frames_between_two_real_peers_cost_something_each_and_by_the_byte():
    found = await measure_exchange(ExchangeOrder(token_bytes=2304, exchange_s=0.5))
    assert 1e-5 < found.time.base_s.value < 0.1
    assert 0 <= found.time.unit_s.value < 1e-6
    assert found.stretch > 0.9
