from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine.core.errors import ModelError, WorkerFailed
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.sample import SampleRequest, sample
from engine.speculation.draft_model import DraftModel
from engine.speculation.model_draft import ModelDraft
from engine.speculation.same_tokenizer import check_same_tokenizer
from engine.speculation.tree import EMPTY, ROOT, accept, check_tree
from engine.speculation.worker_process import DraftOrder, DraftProcess
from tests.support.tiny_models import save_tiny, save_tokenizer

CLOSE = 2e-4
"""Two ways to sum in float32; logits of the tiny models are around 10."""
PROMPT = [5, 99, 301, 7, 260, 44, 12]
CPU = torch.device("cpu")

NextLogits = Callable[[list[int]], Tensor]


@pytest.fixture(scope="module")
def reference(target: ModelFiles) -> NextLogits:
    """The target's logits after some tokens, by plain transformers."""
    model: Any = AutoModelForCausalLM.from_pretrained(target.directory, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logits(ids: list[int]) -> Tensor:
        out: Tensor = model(torch.tensor([ids])).logits[0, -1]
        return out

    return logits


@pytest.fixture(scope="module")
def itself(target: ModelFiles) -> DraftModel:
    """The target as its own draft, which must always be right."""
    return DraftModel.sibling(target, target, dtype=torch.float32, device=CPU)


def picks(reference: NextLogits, ids: list[int], params: SamplingParams, count: int) -> list[int]:
    """What the target says next, token by token."""
    ids = list(ids)
    for _ in range(count):
        request = SampleRequest(
            params,
            len(ids),
            np.array(ids[: len(PROMPT)], np.int32),
            np.array(ids[len(PROMPT) :], np.int32),
        )
        ids.append(sample(reference(ids)[None], [request])[0].id)
    return ids[-count:]


def test_nodes_of_a_tree_see_their_own_path_alone(
    itself: DraftModel, reference: NextLogits
) -> None:
    sequence = itself.sequence(64)
    first = sequence.extend(PROMPT, 0)
    torch.testing.assert_close(first[0], reference(PROMPT), atol=CLOSE, rtol=0)
    level = sequence.grow([10, 20], [ROOT, ROOT])
    deeper = sequence.grow([30, 40, 50], [0, 1, 1])
    single = sequence.grow([60], [3])
    paths = [[10], [20], [10, 30], [20, 40], [20, 50], [20, 40, 60]]
    for path, logits in zip(paths, torch.cat([level, deeper, single]), strict=True):
        torch.testing.assert_close(logits, reference([*PROMPT, *path]), atol=CLOSE, rtol=0)


def test_committed_tokens_take_the_place_of_the_tree(
    itself: DraftModel, reference: NextLogits
) -> None:
    sequence = itself.sequence(64)
    sequence.extend(PROMPT, 0)
    sequence.grow([10, 20], [ROOT, ROOT])
    sequence.grow([30], [1])
    logits = sequence.extend([20, 99], len(PROMPT))
    torch.testing.assert_close(logits[0], reference([*PROMPT, 20, 99]), atol=CLOSE, rtol=0)
    again = sequence.extend([21], len(PROMPT))
    torch.testing.assert_close(again[0], reference([*PROMPT, 21]), atol=CLOSE, rtol=0)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=1.0, seed=4),
        SamplingParams(temperature=0.8, top_p=0.9, top_k=30, seed=1, choice=2),
        SamplingParams(temperature=0.7, repetition_penalty=1.3, frequency_penalty=0.5, seed=9),
        SamplingParams(presence_penalty=1.5, logit_bias=((17, 4.0),)),
    ],
    ids=["greedy", "sampled", "filtered", "penalised", "greedy with penalties"],
)
def test_a_draft_that_equals_its_target_is_always_right(
    itself: DraftModel, reference: NextLogits, params: SamplingParams
) -> None:
    said = picks(reference, PROMPT, params, 10)
    draft = ModelDraft(itself, params, len(PROMPT), 128)
    chain = draft.propose(PROMPT, 4)
    assert chain.is_chain()
    assert list(chain.ids) == said[:4]
    draft.width = 3
    tree = draft.propose([*PROMPT, *said[:5]], 9)
    check_tree(tree, vocab_size=512, max_nodes=9)
    assert not tree.is_chain()
    targets = [
        picks(
            reference,
            [*PROMPT, *said[:5], *(tree.ids[place] for place in tree.path_to(node))],
            params,
            1,
        )[0]
        for node in range(ROOT, len(tree))
    ]
    accepted = accept(tree, targets)
    assert [tree.ids[node] for node in accepted] == said[5 : 5 + len(accepted)]
    assert len(accepted) >= 2


def test_a_tree_keeps_the_nodes_that_are_worth_most(itself: DraftModel) -> None:
    wide = ModelDraft(itself, SamplingParams(), len(PROMPT), 128, width=4).propose(PROMPT, 16)
    small = ModelDraft(itself, SamplingParams(), len(PROMPT), 128, width=4).propose(PROMPT, 6)

    def paths(tree: Any) -> set[tuple[int, ...]]:
        return {tuple(tree.ids[p] for p in tree.path_to(node)) for node in range(len(tree))}

    assert len(wide) == 16
    assert len(small) == 6
    assert paths(small) <= paths(wide)


def test_nothing_is_proposed_beyond_the_room_or_when_nothing_is_wanted(itself: DraftModel) -> None:
    draft = ModelDraft(itself, SamplingParams(), len(PROMPT), len(PROMPT) + 3)
    assert draft.propose(PROMPT, 4) == EMPTY
    assert draft.propose(PROMPT, 0) == EMPTY
    assert len(draft.propose(PROMPT, 3)) == 3


def test_guesses_that_are_worth_too_little_are_left_out(itself: DraftModel) -> None:
    params = SamplingParams()
    everything = ModelDraft(itself, params, len(PROMPT), 128, width=4).propose(PROMPT, 12)
    sure = ModelDraft(itself, params, len(PROMPT), 128, width=4, min_value=0.2).propose(PROMPT, 12)
    assert len(sure) < len(everything)


def test_a_sibling_with_another_tokenizer_is_refused(target: ModelFiles, tmp_path: Path) -> None:
    check_same_tokenizer(target.directory, target.directory)
    other = save_tiny("llama", tmp_path / "other", num_hidden_layers=1)
    path = other / "tokenizer.json"
    text = path.read_text(encoding="utf-8")
    check_same_tokenizer(other, target.directory)
    changes = {
        "the tokens they have": ('"Ġm": ', '"Ġmm": '),
        "their special tokens": ("<|im_end|>", "<|im_over|>"),
        "how text is split": ('"add_prefix_space": false', '"add_prefix_space": true'),
        "how text is normalised": ('"normalizer": null', '"normalizer": {"type": "Lowercase"}'),
    }
    for said, (old, new) in changes.items():
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(ModelError, match=said):
            check_same_tokenizer(other, target.directory)
    save_tokenizer(other)
    check_same_tokenizer(other, target.directory)


async def test_the_process_proposes_what_the_model_does(
    target: ModelFiles, itself: DraftModel
) -> None:
    process = await DraftProcess.start(DraftOrder(target, target, threads=1))
    try:
        params = SamplingParams(temperature=0.9, seed=3, logit_bias=((17, 1.0),))
        await process.open(1, params, len(PROMPT), 128)
        await process.open(2, SamplingParams(), len(PROMPT), 128)
        here = ModelDraft(itself, params, len(PROMPT), 128)
        (chain,) = (await process.propose([(1, PROMPT)], 4)).trees
        assert chain == here.propose(PROMPT, 4)
        here.width = 3
        longer = [*PROMPT, *chain.ids[:2], 77]
        both = await process.propose([(1, longer), (2, PROMPT)], 8, width=3)
        greedy = ModelDraft(itself, SamplingParams(), len(PROMPT), 128, width=3)
        assert both.trees == (here.propose(longer, 8), greedy.propose(PROMPT, 8))
        assumed = [*longer, *both.trees[0].ids[:2]]
        await process.propose([(1, assumed)], 4)
        back = [*longer, 9]  # what was assumed was wrong
        here.width = 1
        assert (await process.propose([(1, back)], 4)).trees == (here.propose(back, 4),)
        process.close(1)
    finally:
        await process.stop()
    with pytest.raises(WorkerFailed, match="nothing is drafted"):
        await process.open(3, SamplingParams(), len(PROMPT), 128)


async def test_a_draft_that_does_not_fit_is_refused_when_its_process_starts(
    target: ModelFiles, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"draft\.json is missing"):
        await DraftProcess.start(DraftOrder(target, tmp_path, threads=1))
