"""One run of `shoal draft train`: answers, training, evaluation, and the draft's files."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from engine.core.errors import ConfigError
from engine.core.sampling_params import SamplingParams
from engine.models.families import read_config
from engine.models.layout import LM_HEAD, ModelFiles
from engine.models.tokenizer import ChatTokenizer
from engine.models.weights import load_tensors
from engine.speculation.distilled import (
    NORM,
    OUTPUT,
    VOCABULARY,
    load_distilled,
    write_draft,
)
from engine.speculation.draft_files import Description
from engine.speculation.model_draft import ModelDraft
from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.training.answers import (
    commonest_ids,
    count_groups,
    make_answers,
    read_answers,
)
from engine.speculation.training.distilling import TrainingProgress, train
from engine.speculation.training.evaluation import Agreement, agreements, committed_per_round
from engine.speculation.training.recipe import Recipe
from engine.speculation.training.student import Student
from engine.speculation.training.teacher import Answer, Teacher
from engine.speculation.tree import Draft

DRAFT: Final = "draft"
"""Folder of the result within that of the run."""
HELD_OUT: Final = "held-out"
"""Folder of the answers to evaluate with."""
JUDGED: Final = "judged"
"""Folder of the answers by which a pruner learns to judge."""
CHAIN_TOKENS: Final = 4
TREE_TOKENS: Final = 13
TREE_WIDTH: Final = 4
_LOOKUP_TOKENS: Final = 8
_HELD_OUT_ANSWER_TOKENS: Final = 64
_AGREEMENT_PLACES: Final = 300

Show = Callable[[str, float, float, str], None]
"""What is going on, how much of it is done, how much there is, and a remark."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave."""

    directory: Path
    description: Description
    agreements: tuple[Agreement, ...]

    def as_json(self) -> Mapping[str, object]:
        """For `--json`."""
        return {
            "directory": str(self.directory),
            **self.description.model_dump(),
            "agreements": [asdict(row) for row in self.agreements],
        }


def train_draft(
    files: ModelFiles,
    recipe: Recipe,
    prompts: Sequence[str],
    held_out: Sequence[str],
    directory: Path,
    *,
    num_answers: int,
    steps: int,
    data_origin: str,
    show: Show,
) -> Outcome:
    """Make a draft, or go on making it.

    Args:
        files: The target's, in float32 where there is a choice.
        recipe: Kept in the folder; a run that goes on must have the same.
        prompts: To learn from.
        held_out: To evaluate with; not among `prompts`.
        directory: Of the run; the draft comes into its folder `draft`.
        num_answers: How many prompts are answered; more can be asked for when a run goes on.
        steps: Training steps in all; likewise.
        data_origin: Kept in the draft.
        show: Told how far it is.

    Raises:
        EngineError: The target cannot be run, or what the folder holds does not fit.
    """
    recipe.keep(directory)
    tokenizer = ChatTokenizer.load(files.directory)
    shuffled = random.Random(recipe.seed).sample(prompts, len(prompts))[:num_answers]  # noqa: S311
    _answer(files, tokenizer, shuffled, directory, recipe, torch.bfloat16, show)
    exam = directory / HELD_OUT
    _answer(files, tokenizer, held_out, exam, _greedy(recipe), torch.float32, show)
    answers = read_answers(directory, count_groups(len(shuffled)))
    ids = commonest_ids(answers, recipe.vocabulary_size, files.spec.vocab_size)
    vocabulary = torch.tensor(ids)
    torch.manual_seed(recipe.seed)
    config = read_config(files.directory, files.spec)
    student = Student(config, recipe.num_blocks, files, vocabulary)

    def on_progress(progress: TrainingProgress) -> None:
        show("Training", progress.step, progress.steps, f"divergence {progress.loss:.3f}")

    train(
        student,
        answers,
        directory,
        steps=steps,
        batch_tokens=recipe.batch_tokens,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        on_progress=on_progress,
    )
    examples = read_answers(exam, count_groups(len(held_out)))
    about = {
        "target": files.spec.model_id,
        "num_blocks": recipe.num_blocks,
        "recipe": recipe.model_dump(),
        "data_origin": data_origin,
        "trained_steps": steps,
    }
    write_draft(directory / DRAFT, _tensors(student, vocabulary), about)
    show("Evaluating on prompts that were held out", 0, 0, "")
    measured = evaluate(directory / DRAFT, files, examples)
    description = write_draft(
        directory / DRAFT, _tensors(student, vocabulary), {**about, "held_out": measured}
    )
    head = load_tensors(files.directory, (LM_HEAD,), dtype=torch.float32)[LM_HEAD]
    table = agreements(student, examples, vocabulary, head, _AGREEMENT_PLACES)
    return Outcome(directory / DRAFT, description, tuple(table))


def answer_new_prompts(
    files: ModelFiles,
    directory: Path,
    prompts: Sequence[str],
    known: Sequence[Answer],
    num_answers: int,
    show: Show,
) -> list[Answer]:
    """Let the target answer prompts that a draft was not trained with, greedily.

    Args:
        files: The target's.
        directory: Of the draft's run, where the answers are kept.
        prompts: Some of them new.
        known: What the draft was trained and evaluated with.
        num_answers: How many, if there are so many new ones.
        show: Told how far it is.

    Raises:
        ConfigError: There is no run, or none of the prompts is new.
    """
    recipe = Recipe.kept_in(directory)
    tokenizer = ChatTokenizer.load(files.directory)
    seen = {answer.prompt for answer in known}
    new = [p for p in prompts if tuple(_encoded(tokenizer, p)) not in seen]
    if not new:
        raise ConfigError(f"The draft in {directory} has learned from all of these prompts.")
    some = random.Random(recipe.seed).sample(new, min(num_answers, len(new)))  # noqa: S311
    place = directory / JUDGED
    _answer(files, tokenizer, some, place, _greedy(recipe), torch.bfloat16, show)
    return read_answers(place, count_groups(len(some)))


def _encoded(tokenizer: ChatTokenizer, prompt: str) -> list[int]:
    return tokenizer.encode_chat([{"role": "user", "content": prompt}])


def _greedy(recipe: Recipe) -> Recipe:
    return recipe.model_copy(
        update={"temperature": 0.0, "max_answer_tokens": _HELD_OUT_ANSWER_TOKENS}
    )


def evaluate(draft: Path, files: ModelFiles, examples: Sequence[Answer]) -> dict[str, float]:
    """Committed tokens per round on greedy answers, for chains, trees and look-up."""
    model = load_distilled(draft, files, dtype=torch.float32, device=torch.device("cpu"))

    def with_width(width: int) -> Callable[[Answer], Draft]:
        return lambda answer: ModelDraft(
            model,
            SamplingParams(),
            len(answer.prompt),
            len(answer.prompt) + len(answer.tokens) + (TREE_WIDTH + 1) * TREE_TOKENS,
            width=width,
        )

    measured = {
        f"chain_{CHAIN_TOKENS}": committed_per_round(with_width(1), examples, CHAIN_TOKENS),
        f"tree_{TREE_TOKENS}": committed_per_round(with_width(TREE_WIDTH), examples, TREE_TOKENS),
        f"lookup_{_LOOKUP_TOKENS}": committed_per_round(
            lambda _: PromptLookup(), examples, _LOOKUP_TOKENS
        ),
    }
    return {name: round(value, 3) for name, value in measured.items()}


def _answer(
    files: ModelFiles,
    tokenizer: ChatTokenizer,
    prompts: Sequence[str],
    directory: Path,
    recipe: Recipe,
    dtype: torch.dtype,
    show: Show,
) -> None:
    ids = [_encoded(tokenizer, prompt) for prompt in prompts]
    make_answers(
        directory,
        ids,
        lambda: Teacher(files, dtype),
        max_answer_tokens=recipe.max_answer_tokens,
        temperature=recipe.temperature,
        seed=recipe.seed,
        on_progress=lambda done, total: show("The target answers prompts", done, total, ""),
    )


def _tensors(student: Student, vocabulary: torch.Tensor) -> dict[str, torch.Tensor]:
    """As the file holds them."""
    tensors = {
        f"model.layers.{name.removeprefix('layers.')}": tensor.half()
        for name, tensor in student.state_dict().items()
        if name.startswith("layers.")
    }
    tensors[NORM] = student.norm.get_parameter("weight").detach().half()
    tensors[OUTPUT] = student.output.weight.detach().half()
    tensors[VOCABULARY] = vocabulary.int()
    return tensors
