from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.models import packed_linear
from engine.models.packed_linear import PackedLinear, can_pack, pack_linears

ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""Sums of 48 products in another order."""

pytestmark = pytest.mark.skipif(
    not can_pack(torch.empty(1)), reason="this processor does not multiply through oneDNN"
)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tokens", [1, 3, 32, 300])
@torch.inference_mode()
def test_packed_layers_compute_what_plain_ones_do(
    dtype: torch.dtype, bias: bool, tokens: int
) -> None:
    plain = nn.Linear(48, 80, bias=bias, dtype=dtype)
    x = torch.randn(1, tokens, 48, dtype=dtype)
    expected = plain(x)
    result = PackedLinear(plain)(x)
    assert result.shape == expected.shape
    torch.testing.assert_close(result, expected, atol=ROUNDING[dtype], rtol=ROUNDING[dtype])
    unpacked = packed_linear.linear(x, plain.weight, plain.bias)
    torch.testing.assert_close(unpacked, expected, atol=ROUNDING[dtype], rtol=ROUNDING[dtype])


def test_every_linear_layer_is_replaced_and_nothing_else() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.SiLU()))
    pack_linears(module)
    kinds = [type(part).__name__ for part in module.modules()]
    assert kinds == ["Sequential", "PackedLinear", "Sequential", "PackedLinear", "SiLU"]


def test_layers_on_other_devices_stay_as_they_are() -> None:
    module = nn.Sequential(nn.Linear(4, 4, device="meta"))
    pack_linears(module)
    assert isinstance(module[0], nn.Linear)
