"""`shoal bench prefix` as a person runs it, on a tiny model."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.tiny_models import save_tiny

pytestmark = [pytest.mark.end2end, pytest.mark.slow]


def test_reuse_computes_and_sends_less_for_the_same_tokens(tmp_path):
    model = save_tiny("llama", tmp_path / "tiny")
    words = (
        "--threads 1 --repeat 1 --json --chat-tokens 150 --rows 6 --common-tokens 100 "
        "--own-tokens 10 --new-tokens 6"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "engine", "bench", "prefix", "--model", str(model), *words.split()],
        env={**os.environ, "SHOAL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    turn, rows = json.loads(ended.stdout)["cases"]
    assert turn["ids_equal"]
    assert turn["prompt_tokens"] == 150 + 6 + 10
    assert turn["without"]["computed_tokens"] == [166 + 5] * 2
    assert turn["reused"]["computed_tokens"] == [166 - 128 + 5] * 2
    assert rows["ids_equal"]
    assert rows["without"]["computed_tokens"] == [6 * (110 + 5)] * 2
    # The common tokens once, and whatever else two rows happen to share.
    assert 100 + 6 * 10 <= rows["reused"]["computed_tokens"][0] <= 100 + 6 * (10 + 5)
    for case in (turn, rows):
        assert case["reused"]["link_bytes"][0] < 0.5 * case["without"]["link_bytes"][0]
        assert case["reused"]["client_bytes"] < case["without"]["client_bytes"]
