"""How good a draft is on answers that it has not seen: committed tokens per round, and agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from engine.speculation.shared_noise import agreement, overlap
from engine.speculation.training.student import Student, answer_places, padded
from engine.speculation.training.teacher import Answer
from engine.speculation.tree import ROOT, Draft, TokenTree

TEMPERATURES: Final = (0.3, 0.5, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Per drafted token, averaged over places of answers."""

    temperature: float
    shared_noise: float
    """How often draft and target pick the same with the same noise."""
    most: float
    """Σ min(p, q), what acceptance by probabilities reaches."""


def committed_per_round(
    make_draft: Callable[[Answer], Draft], answers: Sequence[Answer], num_tokens: int
) -> float:
    """A of [BB] §7: what a round commits when the target would give these greedy answers.

    Args:
        make_draft: For one sequence.
        answers: Greedy ones.
        num_tokens: N of each tree.

    Returns:
        Tokens after the first of each answer, which prefill gives, over rounds.
    """
    tokens = rounds = 0
    for answer in answers:
        draft = make_draft(answer)
        done = 1
        while done < len(answer.tokens):
            tree = draft.propose((*answer.prompt, *answer.tokens[:done]), num_tokens)
            committed = min(1 + count_right(tree, answer.tokens[done:]), len(answer.tokens) - done)
            done += committed
            tokens += committed
            rounds += 1
    return tokens / rounds if rounds else 1.0


def count_right(tree: TokenTree, following: Sequence[int]) -> int:
    """Nodes of the tree, from the root on, that say what follows."""
    children = {
        (parent, id_): node
        for node, (id_, parent) in enumerate(zip(tree.ids, tree.parents, strict=True))
    }
    node, right = ROOT, 0
    for id_ in following:
        found = children.get((node, id_))
        if found is None:
            break
        node, right = found, right + 1
    return right


@torch.no_grad()
def agreements(
    student: Student, answers: Sequence[Answer], vocabulary: Tensor, head: Tensor, places: int
) -> list[Agreement]:
    """Shared noise against the most that any rule can accept, by temperature.

    Args:
        student: The draft.
        answers: Of the target.
        vocabulary: The student's ids, [V'].
        head: The target's, [V, D].
        places: How many to look at, spread over the answers.
    """
    features, hidden = [], []
    for answer in answers:
        features.append(student.features(padded([answer]))[answer_places([answer])])
        hidden.append(answer.hidden.float())
    every = max(1, sum(map(len, hidden)) // places)
    log_q = student.log_probabilities(torch.cat(features)[::every])  # [n, V']
    logits = torch.cat(hidden)[::every] @ head.T  # [n, V]
    rows = []
    for temperature in TEMPERATURES:
        p = (logits / temperature).softmax(1).double().numpy()
        q = np.zeros_like(p)
        q[:, vocabulary.numpy()] = (log_q / temperature).softmax(1).double().numpy()
        pairs = list(zip(p, q, strict=True))
        rows.append(
            Agreement(
                temperature,
                float(np.mean([agreement(*pair) for pair in pairs])),
                float(np.mean([overlap(*pair) for pair in pairs])),
            )
        )
    return rows
