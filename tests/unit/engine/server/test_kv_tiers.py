"""Stages whose sequences have a part in RAM against the same stages without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.protocol.rows import Row
from tests.support.stages import ENDLESS, Chain, prompts, save_families, stage
from tests.support.tiny_models import FAMILIES

NEW_TOKENS = 16
MIXED = prompts(1, 5, 17, 33)
TOLERANCE = 1e-5  # float32: another order of sums
KINDS = [*FAMILIES, "mistral, window", "qwen2, window", "qwen3, window"]
SHARES = [0.0, 0.3, 0.7, 1.0]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return save_families(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_answers_are_the_same_whatever_share_lies_in_ram(
    models: dict[str, Path], kind: str
) -> None:
    answers = [
        Chain(models[kind], (2,), kv_offload=share).generate(MIXED, NEW_TOKENS) for share in SHARES
    ]
    assert answers[1:] == answers[:1] * (len(SHARES) - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_the_same_through_chunks_decoding_and_replays(
    models: dict[str, Path], kind: str
) -> None:
    rng = np.random.default_rng(3)
    whole = stage(models[kind], 0, 4)
    split = {1: 0.3, 2: 0.7, 3: 1.0, 4: 0.5, 5: 0.0}
    for session, share in split.items():
        whole.open(SessionId(session), Span(0, 3), 64, 10, ENDLESS, kv_offload=share)
        whole.open(SessionId(100 + session), Span(0, 3), 64, 10, ENDLESS)
    held = dict.fromkeys(split, 0)
    for _ in range(20):
        rows: list[Row] = []
        for session in rng.permutation(list(split)).tolist():
            back = int(rng.integers(0, held[session] + 1)) if rng.random() < 0.15 else 0
            position = held[session] - back
            count = min(int(rng.choice([1, 1, 1, 1, 5, 20])), 64 - position)
            if count and rng.random() < 0.8:
                rows.append(Row(SessionId(session), position, count))
                held[session] = position + count
        if not rows:
            continue
        ids = np.array(rng.integers(3, 512, sum(row.count for row in rows)), np.int32)
        plain = [Row(SessionId(100 + row.session), row.position, row.count) for row in rows]
        expected, got = (whole.forward(table, ids, None).hidden for table in (plain, rows))
        assert expected is not None
        assert got is not None
        scale = expected.abs().amax(-1, keepdim=True)
        assert ((got - expected).abs() <= TOLERANCE * scale).all()


def test_room_of_both_tiers_is_counted_and_given_back(models: dict[str, Path]) -> None:
    whole = stage(models["llama"])
    token_bytes = 2 * 4 * 2 * 16 * 4  # k and v, blocks, heads, d, float32
    whole.open(SessionId(1), Span(0, 4), 100, 5, ENDLESS, kv_offload=0.35)
    assert whole.kv_bytes == (65 * token_bytes, 35 * token_bytes)
    whole.open(SessionId(1), Span(0, 4), 10, 5, ENDLESS, kv_offload=1)
    assert whole.kv_bytes == (0, 10 * token_bytes)
    whole.close(SessionId(1))
    assert whole.kv_bytes == (0, 0)


def test_bfloat16_picks_the_same_tokens_mostly(models: dict[str, Path]) -> None:
    several = prompts(*[24] * 20)
    plain, split = (
        Chain(models["llama"], (2,), dtype=torch.bfloat16, kv_offload=chosen).generate(several, 2)
        for chosen in (0.0, 0.5)
    )
    agreed = sum(a[1] == b[1] for a, b in zip(plain, split, strict=True) if a[0] == b[0])
    assert agreed >= 0.6 * len(several)
