"""The training data: answers in groups, each written whole, so that a killed run goes on."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from engine.core.errors import StorageError
from engine.core.whole_file import write_whole
from engine.speculation.training.teacher import Answer, Teacher

GROUP_SIZE: Final = 64
"""Answers made together: a CPU computes so many for little more than the time of a few."""


def group_file(directory: Path, group: int) -> Path:
    """Where one group is kept."""
    return directory / "answers" / f"{group:05d}.safetensors"


def make_answers(
    directory: Path,
    prompts: Sequence[Sequence[int]],
    load_teacher: Callable[[], Teacher],
    *,
    max_answer_tokens: int,
    temperature: float,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> None:
    """Let the target answer; groups that are there already are left as they are.

    Args:
        directory: Of the run.
        prompts: Ids.
        load_teacher: Called if something is missing.
        max_answer_tokens: Longest answer.
        temperature: Of every second answer.
        seed: Of the sampled ones.
        on_progress: Told (answers there are, answers wanted).
    """
    groups = _groups(prompts)
    missing = [g for g in range(len(groups)) if not group_file(directory, g).exists()]
    teacher = load_teacher() if missing else None
    for group in missing:
        on_progress(group * GROUP_SIZE, len(prompts))
        assert teacher is not None
        rows = groups[group]
        answers = teacher.answer(
            rows,
            max_answer_tokens,
            [temperature if row % 2 else 0.0 for row in range(len(rows))],
            seed * 1_000_003 + group,
        )
        _write(group_file(directory, group), answers)
    on_progress(len(prompts), len(prompts))


def read_answers(directory: Path, num_groups: int) -> list[Answer]:
    """All answers of the first groups.

    Raises:
        StorageError: A group is missing or damaged.
    """
    return [a for group in range(num_groups) for a in _read(group_file(directory, group))]


def count_groups(num_prompts: int) -> int:
    """Groups that so many prompts make."""
    return -(-num_prompts // GROUP_SIZE)


def made_groups(directory: Path) -> int:
    """How many of the first groups are there."""
    return next(g for g in itertools.count() if not group_file(directory, g).exists())


def commonest_ids(answers: Sequence[Answer], size: int, vocab_size: int) -> list[int]:
    """The ids that a draft shall be able to propose, ascending.

    Those of the answers by how often they come, then the lowest, which tokenizers give to what is
    common in all texts.
    """
    counts = Counter(token for answer in answers for token in answer.tokens)
    by_count = sorted(counts, key=lambda id_: (-counts[id_], id_))
    others = (id_ for id_ in range(vocab_size) if id_ not in counts)
    return sorted(itertools.islice(itertools.chain(by_count, others), size or vocab_size))


def _groups(prompts: Sequence[Sequence[int]]) -> list[Sequence[Sequence[int]]]:
    return [prompts[at : at + GROUP_SIZE] for at in range(0, len(prompts), GROUP_SIZE)]


def _write(path: Path, answers: Sequence[Answer]) -> None:
    ids = [id_ for answer in answers for id_ in (*answer.prompt, *answer.tokens)]
    tensors = {
        "ids": torch.tensor(ids, dtype=torch.int32),
        "prompt_lengths": torch.tensor([len(a.prompt) for a in answers], dtype=torch.int32),
        "answer_lengths": torch.tensor([len(a.tokens) for a in answers], dtype=torch.int32),
        "hidden": torch.cat([answer.hidden for answer in answers]),
    }
    write_whole(path, save(tensors))


def _read(path: Path) -> list[Answer]:
    try:
        tensors = load_file(path)
        ids = tensors["ids"].tolist()
        lengths = zip(
            tensors["prompt_lengths"].tolist(), tensors["answer_lengths"].tolist(), strict=True
        )
        hidden = tensors["hidden"]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise StorageError(
            f"The answers in {path} cannot be read ({error}); delete the file and run again."
        ) from error
    answers, at, at_hidden = [], 0, 0
    for prompt, answer in lengths:
        answers.append(
            Answer(
                tuple(ids[at : at + prompt]),
                tuple(ids[at + prompt : at + prompt + answer]),
                hidden[at_hidden : at_hidden + answer],
            )
        )
        at += prompt + answer
        at_hidden += answer
    return answers
