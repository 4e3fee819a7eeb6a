from __future__ import annotations

import pytest
import torch

from engine.models.linear import OneDnnLinear, PlainLinear, can_use_onednn, fast_linear

ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 3e-2}
"""Sums of 48 products in another order, and in bfloat16 fewer roundings on the way."""


@pytest.mark.skipif(
    not can_use_onednn(torch.empty(1)), reason="this processor does not multiply through oneDNN"
)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tokens", [1, 3, 32, 300])
@pytest.mark.parametrize("keep_layout", [True, False])
@torch.inference_mode()
def test_onednn_computes_what_plain_steps_do(
    dtype: torch.dtype, bias: bool, tokens: int, keep_layout: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = (torch.randn(80, 48, generator=generator) / 7).to(dtype)
    offset = torch.randn(80, generator=generator).to(dtype) if bias else None
    x = torch.randn(tokens, 48, generator=generator).to(dtype)
    other = torch.randn(tokens, 80, generator=generator).to(dtype)
    plain = PlainLinear(weight, offset)
    fused = OneDnnLinear(weight, offset, keep_layout=keep_layout)
    for result, expected in (
        (fused(x), plain(x)),
        (fused.silu(x), plain.silu(x)),
        (fused.times(x, other), plain.times(x, other)),
        (fused.plus(x, other), plain.plus(x, other)),
    ):
        assert result.dtype == dtype
        torch.testing.assert_close(result, expected, atol=ROUNDING[dtype], rtol=ROUNDING[dtype])


@torch.inference_mode()
def test_plain_steps_are_the_reference() -> None:
    weight, bias, x, other = (torch.randn(*shape) for shape in ((8, 4), (8,), (3, 4), (3, 8)))
    plain = PlainLinear(weight, bias)
    y = x @ weight.T + bias
    torch.testing.assert_close(plain(x), y)
    torch.testing.assert_close(plain.silu(x), y * y.sigmoid())
    torch.testing.assert_close(plain.times(x, other), y * other)
    torch.testing.assert_close(plain.plus(x, other), y + other)


@torch.inference_mode()
def test_the_inputs_of_a_fused_step_stay_as_they_are() -> None:
    x, other = torch.randn(3, 4), torch.randn(3, 8)
    before = x.clone(), other.clone()
    linear = fast_linear(torch.randn(8, 4))
    linear.plus(x, other)
    linear.times(x, other)
    assert torch.equal(x, before[0])
    assert torch.equal(other, before[1])


def test_other_devices_and_types_take_the_plain_way() -> None:
    assert isinstance(fast_linear(torch.empty(8, 4, device="meta")), PlainLinear)
    assert isinstance(fast_linear(torch.empty(8, 4, dtype=torch.float16)), PlainLinear)
