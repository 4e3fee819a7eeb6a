"""Training: steps over batches, with a checkpoint that a killed run goes on from."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from engine.core.errors import StorageError
from engine.core.whole_file import write_whole
from engine.speculation.training.student import Student, answer_places, divergence, padded
from engine.speculation.training.teacher import Answer

CHECKPOINT: Final = "checkpoint.safetensors"
_WARM_UP_STEPS: Final = 40
_COOL_DOWN_SHARE: Final = 0.4
"""Of all steps: the last ones, in which the learning rate falls to 0."""
_RIDGE_BATCHES: Final = 24
_MIXED_ROWS: Final = 64
"""Answers among which those of a batch are chosen to be of similar length."""


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far it is."""

    step: int
    steps: int
    loss: float
    """KL in nats, averaged over the last steps."""


def train(
    student: Student,
    answers: Sequence[Answer],
    directory: Path,
    *,
    steps: int,
    batch_tokens: int,
    learning_rate: float,
    seed: int,
    on_progress: Callable[[TrainingProgress], None],
    checkpoint_every_s: float = 60.0,
) -> None:
    """Let the student learn what the target thinks of each place in its answers.

    A run that was ended at any moment goes on from its last checkpoint, also with another number
    of steps: the learning rate rises, stays, and falls over the last of them.

    Args:
        student: Changed in place.
        answers: To learn from.
        directory: Of the run.
        steps: In all.
        batch_tokens: Of a batch, prompts and padding included.
        learning_rate: The highest.
        seed: Of the order.
        on_progress: Told after each step.
        checkpoint_every_s: The most that an end by force can lose.

    Raises:
        StorageError: The checkpoint is damaged.
    """
    parameters = dict(student.named_parameters())
    optimiser = torch.optim.AdamW(
        parameters.values(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    path = directory / CHECKPOINT
    done = _restore(path, parameters, optimiser) if path.exists() else 0
    batches = _batches(answers, batch_tokens, seed)
    if done == 0:
        student.fit_output([next(batches) for _ in range(_RIDGE_BATCHES)])
        batches = _batches(answers, batch_tokens, seed)
    for _ in range(done):
        next(batches)
    mean_loss = 0.0
    saved_s = time.monotonic()
    precision = torch.get_float32_matmul_precision()
    # Products in bfloat16 where the processor has it: half the time, and no worse a draft.
    torch.set_float32_matmul_precision("medium")
    try:
        for step in range(done, steps):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * _rate(step, steps)
            loss = _step(student, next(batches), optimiser)
            share = max(0.02, 1 / (step - done + 1))
            mean_loss += share * (loss - mean_loss)
            if time.monotonic() - saved_s >= checkpoint_every_s:
                _save(path, parameters, optimiser, step + 1)
                saved_s = time.monotonic()
            on_progress(TrainingProgress(step + 1, steps, mean_loss))
    finally:
        torch.set_float32_matmul_precision(precision)
    if done < steps:
        _save(path, parameters, optimiser, steps)


def _step(student: Student, batch: Sequence[Answer], optimiser: torch.optim.Optimizer) -> float:
    features = student.features(padded(batch))[answer_places(batch)]
    log_q = student.log_probabilities(features)
    log_p = student.target_log_probabilities(torch.cat([answer.hidden for answer in batch]))
    loss = divergence(log_p, log_q)
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimiser.step()
    return loss.item()


def _rate(step: int, steps: int) -> float:
    left = (steps - step) / (_COOL_DOWN_SHARE * steps)
    return min(1.0, (step + 1) / _WARM_UP_STEPS, left)


def _batches(answers: Sequence[Answer], batch_tokens: int, seed: int) -> Iterator[list[Answer]]:
    """Endless batches; every answer comes once before any comes again."""
    order = random.Random(seed)  # noqa: S311 - nothing secret about it
    while True:
        shuffled = order.sample(answers, len(answers))
        for at in range(0, len(shuffled), _MIXED_ROWS):
            mixed = sorted(shuffled[at : at + _MIXED_ROWS], key=_length)
            filled = list(_filled(mixed, batch_tokens))
            yield from order.sample(filled, len(filled))


def _filled(answers: Sequence[Answer], batch_tokens: int) -> Iterator[list[Answer]]:
    batch: list[Answer] = []
    for answer in answers:  # ascending in length, so the newest decides on the padding
        if batch and _length(answer) * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(answer)
    if batch:
        yield batch


def _length(answer: Answer) -> int:
    return len(answer.prompt) + len(answer.tokens)


def _save(
    path: Path, parameters: Mapping[str, Tensor], optimiser: torch.optim.Optimizer, step: int
) -> None:
    tensors = {"step": torch.tensor(step)}
    for name, parameter in parameters.items():
        tensors[f"weights.{name}"] = parameter.detach()
        state = optimiser.state[parameter]
        tensors[f"mean.{name}"], tensors[f"square.{name}"] = state["exp_avg"], state["exp_avg_sq"]
    write_whole(path, save(tensors))


def _restore(path: Path, parameters: Mapping[str, Tensor], optimiser: torch.optim.Optimizer) -> int:
    try:
        tensors = load_file(path)
        step = int(tensors["step"])
        for name, parameter in parameters.items():
            with torch.no_grad():
                parameter.copy_(tensors[f"weights.{name}"])
            optimiser.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": tensors[f"mean.{name}"],
                "exp_avg_sq": tensors[f"square.{name}"],
            }
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise StorageError(
            f"The checkpoint {path} cannot be read ({error}); delete it to train from the beginning."
        ) from error
    return step
