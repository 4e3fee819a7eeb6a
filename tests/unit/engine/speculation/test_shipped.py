"""What lies in `resources/drafts` and `resources/pruners` is what it says it is."""

from __future__ import annotations

import hashlib

import pytest
import torch

from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles, read_spec
from engine.models.starter import starter_model_id
from engine.models.tokenizer import ChatTokenizer
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_files import SHIPPED, WEIGHTS, find_draft, read_description
from engine.speculation.model_draft import ModelDraft
from engine.speculation.pruner_files import SHIPPED as SHIPPED_PRUNERS
from engine.speculation.pruner_files import find_pruners
from engine.speculation.training.evaluation import committed_per_round
from engine.speculation.training.recipe import prompts_sha256, read_prompts
from engine.speculation.training.teacher import Teacher
from tests.support.starter import starter_directory

MAX_BYTES = 25_000_000
MAX_PRUNER_BYTES = 12_000_000


def test_the_draft_of_the_starter_is_whole_and_says_where_it_comes_from() -> None:
    directory = find_draft(starter_model_id())
    assert directory is not None
    description = read_description(directory)
    content = (directory / WEIGHTS).read_bytes()
    assert len(content) <= MAX_BYTES
    assert hashlib.sha256(content).hexdigest() == description.sha256
    prompts = read_prompts(SHIPPED / "chat-prompts.txt")
    held_out = read_prompts(SHIPPED / "held-out-prompts.txt")
    assert not set(prompts) & set(held_out)
    assert description.recipe["prompts_sha256"] == prompts_sha256(prompts)
    assert description.data_origin


@pytest.mark.slow
def test_the_draft_of_the_starter_is_as_good_on_new_prompts_as_it_says() -> None:
    source = starter_directory()
    files = ModelFiles(read_spec(source, starter_model_id()), source, "starter")
    directory = find_draft(starter_model_id())
    assert directory is not None
    tokenizer = ChatTokenizer.load(source)
    prompts = [
        tokenizer.encode_chat([{"role": "user", "content": prompt}])
        for prompt in read_prompts(SHIPPED / "held-out-prompts.txt")[:8]
    ]
    answers = Teacher(files, torch.float32).answer(prompts, 48, [0.0] * len(prompts), seed=0)
    model = load_distilled(directory, files, dtype=torch.float32, device=torch.device("cpu"))

    def tokens(width: int, num_tokens: int) -> float:
        return committed_per_round(
            lambda answer: ModelDraft(
                model, SamplingParams(), len(answer.prompt), 400, width=width
            ),
            answers,
            num_tokens,
        )

    said = read_description(directory).held_out
    # Eight answers scatter around forty.
    assert tokens(1, 4) > said["chain_4"] - 0.2
    assert tokens(4, 13) > said["tree_13"] - 0.25


def test_the_pruners_of_the_starter_are_whole_and_say_what_they_leave() -> None:
    spec = read_spec(starter_directory(), starter_model_id())
    found = find_pruners(spec, spec.num_hidden_layers - 1, (SHIPPED_PRUNERS,))
    assert found.refused == ()
    assert found.pruners
    for pruner in found.pruners.values():
        left = [(row["surviving"], row["remaining"]) for row in pruner.measured]
        assert left == sorted(left, reverse=True)
        assert all(surviving <= remaining for surviving, remaining in left)
    assert sum(path.stat().st_size for path in SHIPPED_PRUNERS.glob("*/*")) <= MAX_PRUNER_BYTES
