from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.bench.main import main
from engine.core.errors import ConfigError
from tests.support.tiny_models import save_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny("llama", tmp_path_factory.mktemp("tiny") / "model")


@pytest.mark.parametrize("kv_dtype", ["auto", "8bit"])
def test_every_share_and_batch_is_measured_with_its_room_in_both_tiers(
    tiny: Path, capsys: pytest.CaptureFixture[str], kv_dtype: str
) -> None:
    words = ["--model", str(tiny), "--device", "cpu", "--kv-dtype", kv_dtype, "--json"]
    assert main(["kv", *words, "--context", "50", "--batch", "1,3", "--steps", "2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["both_tiers_in_ram"]
    assert report["copies"] is None
    assert [timed["batch_size"] for timed in report["attention"]] == [1, 3]
    token_bytes = 4 * 4 * (16 * 4 if kv_dtype == "auto" else 16 + 2)  # blocks, heads
    capacity = 50 + 2 + 2
    for row in report["rows"]:
        ram_tokens = row["batch_size"] * int(row["kv_offload"] * capacity)
        assert row["kv_ram_bytes"] == ram_tokens * token_bytes
        assert row["kv_device_bytes"] == (row["batch_size"] * capacity - ram_tokens) * token_bytes
        assert row["tokens_per_s"] == pytest.approx(1000 * row["batch_size"] / row["step_ms"])
    assert [(row["batch_size"], row["kv_offload"]) for row in report["rows"]] == [
        (batch, share) for batch in (1, 3) for share in (0, 0.25, 0.5, 0.75, 1)
    ]


def test_people_are_told_that_both_tiers_are_ram(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", str(tiny), "--device", "cpu", "--context", "20", "--batch", "2"]
    assert main(["kv", *words, "--steps", "1"]) == 0
    assert "both tiers are in RAM" in capsys.readouterr().out


def test_context_beyond_the_models_is_refused(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="context of 512 tokens"):
        main(["kv", "--model", str(tiny), "--device", "cpu", "--context", "600"])
