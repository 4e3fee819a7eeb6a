"""`shoal bench swarm` as a person runs it, on a tiny model."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.tiny_models import save_tiny

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

LIMIT_S = 300.0
BATCH, NEW_TOKENS, HIDDEN = 2, 48, 64
FRAME_BYTES = 36  # header; each row adds 24 and its id 4
ROW_BYTES = 24 + 4
KEYS = {
    "system",
    "tokens_per_s",
    "ttft_s",
    "step_ms",
    "link_bytes_per_step",
    "client_bytes_per_step",
    "bound_tokens_per_s",
    "bound_share",
    "ids_sha256",
    "kills",
    "recovery_s_median",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny("llama", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {**os.environ, "SHOAL_HOME": str(tmp_path / "home"), "TMPDIR": str(temporary)}


def command(model: Path, *words: str) -> list[str]:
    sizes = ["--batch", str(BATCH), "--prompt-tokens", "8", "--new-tokens", str(NEW_TOKENS)]
    swarm = ["bench", "swarm", "--model", str(model), "--threads", "1", "--dtype", "fp32"]
    return [sys.executable, "-m", "engine", *swarm, *sizes, *words]


def bench(model: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(model, *words), env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )


def test_two_stages_are_measured_against_local_generation(model, environment):
    words = ["--stages", "2", "--against", "local", "--repeat", "2", "--json"]
    done = bench(model, environment, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    shoal, local = report["runs"]
    assert shoal.keys() >= KEYS
    assert local.keys() >= KEYS
    assert (shoal["system"], local["system"]) == ("shoal", "local")
    assert shoal["ids_sha256"] == local["ids_sha256"]
    assert report["ids_equal"] is True
    assert report["ratio"] == pytest.approx(shoal["tokens_per_s"] / local["tokens_per_s"])
    step = shoal["step_ms"]
    assert step.keys() == {"compute", "encode", "wire", "wait"}
    assert step["compute"] > 0
    assert 0 < shoal["bound_share"] <= 1
    # Both rows in one frame, or each in its own: the prefill decides, so two sums are right.
    rows_bytes = BATCH * (ROW_BYTES + 4 * HIDDEN)
    hidden_bytes, ids_bytes = shoal["link_bytes_per_step"]
    assert FRAME_BYTES + rows_bytes <= hidden_bytes * 1.05
    assert hidden_bytes <= BATCH * FRAME_BYTES + rows_bytes
    assert BATCH * ROW_BYTES < ids_bytes < 200 * BATCH
    assert BATCH * ROW_BYTES < shoal["client_bytes_per_step"] < 200 * BATCH
    assert not list(Path(environment["TMPDIR"]).glob("shoal-bench-*"))


def test_a_slow_line_slows_the_swarm_and_bounds_it(model, environment):
    words = [
        "--stages",
        "2",
        "--link",
        "100kbit,5ms",
        "--repeat",
        "1",
        "--new-tokens",
        "16",
        "--json",
    ]
    done = bench(model, environment, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (run,) = report["runs"]
    assert "ratio" not in report
    assert run["bound_by"] == "links"
    busiest = max(*run["link_bytes_per_step"], run["client_bytes_per_step"])
    assert run["bound_tokens_per_s"] == pytest.approx(12_500 / (busiest / BATCH))
    # Two links of 5 ms each way round; and micro-batches overlap, but not on one line.
    line_ms = 1e3 * busiest / 12_500
    assert sum(run["step_ms"].values()) > max(10, 0.95 * line_ms)
    assert run["step_ms"]["wire"] > 0.5 * line_ms


def test_batches_are_measured_one_after_the_other_over_ideal_client_links(model, environment):
    words = ["--stages", "2", "--batch", "1,2", "--micro-batches", "2", "--env", "E2", "--json"]
    words += ["--client-link", "ideal", "--repeat", "1", "--new-tokens", "12"]
    done = bench(model, environment, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [run["batch_size"] for run in report["runs"]] == [1, 2]
    # One delayed link of 25 ms: no more than 40 rounds a second.
    assert [run["latency_bound_tokens_per_s"] for run in report["runs"]] == [40, 80]
    for run in report["runs"]:
        assert run["tokens_per_s"] < run["latency_bound_tokens_per_s"]
        hidden, back = run["links"]
        assert hidden["bytes_per_row"] == run["link_bytes_per_step"][0] / run["batch_size"]
        assert hidden["codec_ratio"] > 0
        assert back["codec_ratio"] is None
        assert run["client_activation_bytes"] == 0


def test_failing_transfers_and_killed_stages_change_no_token(model, environment):
    words = ["--stages", "2", "--fail-rate", "2%", "--kills", "1", "--generations", "2", "--json"]
    done = bench(model, environment, *words)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ids_equal"] is True
    assert report["disturbance"]["equal"] == report["disturbance"]["generations"] == 2
    assert report["disturbance"]["failed"] == 0
    (run,) = report["runs"]
    assert run["kills"] == 1
    assert run["recovery_s_median"] > 0
    assert run["client_activation_bytes"] == 0
    assert not list(Path(environment["TMPDIR"]).glob("shoal-bench-*"))


def test_placements_are_measured_and_predicted_on_the_machines_of_a_file(model, environment):
    def node(peer: str, mlp_s: float) -> dict:
        return {
            "peer": peer,
            "block": {
                "mlp": {"base_s": mlp_s, "unit_s": 0.0},
                "attention": {"base_s": 0.0, "unit_s": 0.0},
                "prefill_row_s": 0.0001,
            },
            "head": {"base_s": 0.0001, "unit_s": 0.0},
            "pass_overhead_s": 0.0,
            "memory_bytes": 60_000_000,
            "uplink_bytes_per_s": None,
            "downlink_bytes_per_s": None,
        }

    file = Path(environment["TMPDIR"]).parent / "nodes.json"
    nodes = {
        "model": {"name": str(model), "element_bytes": 4},
        "nodes": [node("slow", 0.03), node("fast", 0.01)],
        "network": {"delay_s": 0.0},
    }
    file.write_text(json.dumps(nodes))
    words = ["--nodes", str(file), "--new-tokens", "8", "--micro-batches", "2", "--repeat", "1"]
    done = bench(model, environment, *words, "--placements", "plan,even", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    ours, even = report["runs"]
    assert [ours["placement"], even["placement"]] == ["plan", "even"]
    # Two micro-batches: three blocks of 10 ms beside one of 30 ms, against 60 ms for two of them.
    assert min(zip(ours["hosts"], ours["spans"], strict=True))[1] in ([0, 1], [3, 4])
    assert even["spans"] == [[0, 2], [2, 4]]
    assert report["ratios"]["even"] == pytest.approx(ours["tokens_per_s"] / even["tokens_per_s"])
    assert ours["predicted_tokens_per_s"] > 1.5 * even["predicted_tokens_per_s"]
    assert ours["prediction_error"] == pytest.approx(
        ours["predicted_tokens_per_s"] / ours["tokens_per_s"] - 1
    )
    assert report["ids_equal"] is True


def test_an_interrupt_leaves_nothing_behind(model, environment):
    with subprocess.Popen(
        command(model, "--stages", "1"), env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "Warming up" not in process.stderr.readline():
            assert process.poll() is None
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) > 6  # two hosts, an engine with worker and p2pd, a client with p2pd
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 1
        assert "Interrupted." in process.stderr.read()
    _, alive = psutil.wait_procs(started, timeout=30)
    assert not alive
    assert not list(Path(environment["TMPDIR"]).glob("shoal-bench-*"))


def test_what_cannot_be_measured_is_said_in_one_line(model, environment):
    done = bench(model, environment, "--stages", "9")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("shoal: ")
    assert "cannot be spread over 9 stages" in done.stderr
    done = bench(model, environment, "--spans", "0-3,3-9")
    assert done.returncode == 1
    assert "--spans ends at 9; let its last span end at 4" in done.stderr
    done = bench(model, environment, "--spans", "0-3,2-4")
    assert done.returncode == 2
    assert "leaves blocks out or has some twice" in done.stderr
