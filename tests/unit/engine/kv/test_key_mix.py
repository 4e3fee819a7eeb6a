from __future__ import annotations

import pytest
import torch

from engine.kv.key_mix import KeyMix

CPU = torch.device("cpu")


@pytest.mark.parametrize("head_dim", [1, 8, 64, 80, 96, 128])
def test_turning_queries_and_keys_changes_no_score(head_dim: int) -> None:
    torch.manual_seed(0)
    queries, keys = torch.randn(2, 5, head_dim)
    mix = KeyMix(head_dim, dtype=torch.float32, device=CPU)
    assert torch.allclose(mix.turn(queries) @ mix.turn(keys).T, queries @ keys.T, atol=1e-4)


def test_one_large_channel_becomes_many_small_ones() -> None:
    key = torch.zeros(64)
    key[5] = 8.0
    turned = KeyMix(64, dtype=torch.float32, device=CPU).turn(key)
    assert torch.equal(turned.abs(), torch.ones(64))
