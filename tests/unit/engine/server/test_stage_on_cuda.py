"""The same promises on a GPU. Shows the share of equal bfloat16 tokens with `pytest -rP`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.stages import Chain, Reference, prompts
from tests.support.tiny_models import FAMILIES, Family, save_tiny

NEW_TOKENS = 32
MIXED = prompts(1, 5, 17, 33, 64)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cuts", [(), (2,), (1, 3)])
def test_float32_answers_on_cuda_equal_the_reference(
    tmp_path: Path, family: Family, cuts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    directory = save_tiny(family, tmp_path / "model")
    chain = Chain(directory, cuts, device=torch.device("cuda"))
    assert chain.generate(MIXED, NEW_TOKENS) == Reference(directory).generate(MIXED, NEW_TOKENS)


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_tokens_on_cuda_mostly_agree_with_float32(tmp_path: Path, family: Family) -> None:
    directory = save_tiny(family, tmp_path / "model")
    chain = Chain(directory, (2,), device=torch.device("cuda"), dtype=torch.bfloat16)
    reference = Reference(directory)
    agreed = total = 0
    for session, prompt in enumerate(prompts(*[24] * 40), 1):
        # One token each after a prompt that both were given: one flip must not count many times.
        chain.open(session, len(prompt))
        agreed += chain.step((session, 0, prompt))[0].id == int(
            reference.logits(prompt)[-1].argmax()
        )
        total += 1
    print(f"{family}: {agreed} of {total} bfloat16 tokens equal float32's")
    assert agreed > total / 2
