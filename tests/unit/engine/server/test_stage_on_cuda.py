"""The same promises on a GPU. Shows the share of equal bfloat16 tokens with `pytest -rP`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.core.sampling_params import SamplingParams
from tests.support.drafting import Prophet, plain_answer, speculative_answer
from tests.support.stages import Chain, Reference, agreement, edit_config, prompts
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
    tmp_path: Path, family: Family, cuts: tuple[int, ...]
) -> None:
    directory = save_tiny(family, tmp_path / "model")
    chain = Chain(directory, cuts, device=torch.device("cuda"))
    assert chain.generate(MIXED, NEW_TOKENS) == Reference(directory).generate(MIXED, NEW_TOKENS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_a_share_of_the_cache_in_ram_changes_no_float32_answer(
    tmp_path: Path, family: Family, share: float
) -> None:
    directory = save_tiny(family, tmp_path / "model")
    chain = Chain(directory, (2,), device=torch.device("cuda"), kv_offload=share)
    assert chain.generate(MIXED, NEW_TOKENS) == Reference(directory).generate(MIXED, NEW_TOKENS)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("window", [None, 7])
def test_replays_and_windows_change_no_float32_answer(
    tmp_path: Path, share: float, window: int | None
) -> None:
    directory = edit_config(save_tiny("mistral", tmp_path / "model"), sliding_window=window)
    chain = Chain(directory, device=torch.device("cuda"), kv_offload=share)
    reference = Reference(directory)
    (prompt,) = prompts(60)
    chain.open(1, 10, 64)
    chain.step((1, 0, prompt))
    for back in (50, 12, 0):
        (sampled,) = chain.step((1, back, prompt[back:]))
        assert sampled.id == int(reference.logits(prompt)[-1].argmax())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_eight_bit_tokens_mostly_agree_with_float32(tmp_path: Path, share: float) -> None:
    directory = save_tiny("llama", tmp_path / "model")
    chain = Chain(directory, device=torch.device("cuda"), kv_dtype="8bit", kv_offload=share)
    reference = Reference(directory)
    assert agreement(chain, reference, prompts(*[24] * 20)) >= 0.8


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_bfloat16_batches_mostly_agree_with_single_rows(tmp_path: Path, share: float) -> None:
    directory = save_tiny("llama", tmp_path / "model")
    several = prompts(*[24] * 20)
    options = {"device": torch.device("cuda"), "dtype": torch.bfloat16, "kv_offload": share}
    chain = Chain(directory, **options)
    together = chain.generate(several, 2)
    alone = [chain.generate([prompt], 2)[0] for prompt in several]
    agreed = sum(a == b for a, b in zip(together, alone, strict=True))
    assert agreed >= 0.6 * len(several)


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


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_drafts_change_no_float32_answer(
    tmp_path: Path, family: Family, width: int, share: float
) -> None:
    directory = save_tiny(family, tmp_path / "model")
    chain = Chain(directory, (2,), device=torch.device("cuda"), kv_offload=share)
    (prompt,), sampling = prompts(40), SamplingParams(max_new_tokens=40, temperature=0.9, seed=3)
    plain = [token.id for token in plain_answer(chain, prompt, sampling)]
    draft = Prophet([*prompt, *plain], width=width)
    answer, rounds = speculative_answer(chain, prompt, sampling, draft)
    assert [id_ for id_, _, _ in answer] == plain
    assert rounds < len(plain)
