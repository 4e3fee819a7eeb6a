"""Rounds as they would be: what a draft proposes after each, and what a first stage sees of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from engine.core.sampling_params import SamplingParams
from engine.speculation.draft_model import DraftModel
from engine.speculation.model_draft import ModelDraft
from engine.speculation.training.evaluation import count_right
from engine.speculation.training.teacher import Answer
from engine.speculation.tree import ROOT, TokenTree

TREE_TOKENS: Final = 13
TREE_WIDTH: Final = 4


@dataclass(frozen=True, slots=True)
class Round:
    """One tree, and what became of it."""

    tree: TokenTree
    hidden: Tensor
    """After the first stage's blocks, of the last committed token and of each node, [1 + N, D]."""
    following: tuple[int, ...]
    """What the target says next, as far as the answer goes."""

    def right(self) -> list[bool]:
        """For each node whether the target comes to it."""
        found: list[bool] = []
        for id_, parent, depth in zip(
            self.tree.ids, self.tree.parents, self.tree.depths(), strict=True
        ):
            on_the_way = parent == ROOT or found[parent]
            says = self.following[depth - 1] if depth <= len(self.following) else None
            found.append(on_the_way and says == id_)
        return found


@torch.inference_mode()
def rounds(first: DraftModel, drafting: DraftModel, answer: Answer) -> Iterator[Round]:
    """The rounds in which a greedy answer comes.

    Args:
        first: The target's first blocks.
        drafting: The draft.
        answer: Of the target.
    """
    room = len(answer.prompt) + len(answer.tokens) + (TREE_WIDTH + 1) * TREE_TOKENS
    draft = ModelDraft(drafting, SamplingParams(), len(answer.prompt), room, width=TREE_WIDTH)
    stage = first.sequence(room)
    done = 1
    while done < len(answer.tokens):
        ids = (*answer.prompt, *answer.tokens[:done])
        tree = draft.propose(ids, TREE_TOKENS)
        last = stage.extend(ids[stage.length :], stage.length)
        following = answer.tokens[done:]
        if len(tree):
            hidden = torch.cat([last, stage.grow(tree.ids, tree.parents)])
            yield Round(tree, hidden, following)
        done += 1 + count_right(tree, following)


def left(
    played: Sequence[Round], log_scores: Sequence[Tensor], thresholds: Sequence[float]
) -> list[dict[str, float]]:
    """By τ, the share of nodes and of accepted tokens that pruning leaves.

    Args:
        played: Rounds.
        log_scores: Of the nodes of each, [N].
        thresholds: τ.
    """
    right = [torch.tensor(one.right()) for one in played]
    nodes, accepted = sum(map(len, right)), sum(int(one.sum()) for one in right)
    rows = []
    for threshold in thresholds:
        kept = [scores.exp() >= threshold for scores in log_scores]
        remaining = sum(int((k & r).sum()) for k, r in zip(kept, right, strict=True))
        rows.append(
            {
                "prune_threshold": threshold,
                "surviving": round(sum(int(k.sum()) for k in kept) / max(1, nodes), 3),
                "remaining": round(remaining / max(1, accepted), 3),
            }
        )
    return rows
