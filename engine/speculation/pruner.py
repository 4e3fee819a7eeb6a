"""Pruning a draft at the first stage, before it crosses a link ([BB] §7.2).

A small head guesses from a token's hidden state after some blocks what the whole model will say next.
How likely a drafted token that follows is right is then judged from that guess (how sure it is, what it
gives the token, its entropy) and from the token's place in the tree, which shows what the draft thinks
of it. A token's score is the product along its path: the chance that the target comes to it. So a token
that goes takes along what follows it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import linear, logsigmoid, silu

from engine.speculation.tree import ROOT, TokenTree

GUESS_FEATURES: Final = 3
SHAPE_FEATURES: Final = 5
FEATURES: Final = GUESS_FEATURES + SHAPE_FEATURES
_LEAST_LOG: Final = -12.0
"""Log of the chance of what the head does not know."""
_TRIAL_TREE: Final = TokenTree(
    (0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 1, 0), (-1, -1, -1, -1, 0, 0, 0, 1, 4, 4, 8, 8, 10)
)
"""A tree of usual shape."""


class Pruner:
    """Judges drafted tokens for one target.

    Args:
        tensors: `down` [r, D], `inner` [k, D] and `outer` [r, k] bring hidden states down to r numbers
            that `up` [V', r] reads as a guess over `vocabulary` [V'] int64; `mlp.0` [h, 8] and `mlp.1`
            [1, h] with their biases judge.
        vocab_size: V.
        measured: By τ, what was left on held-out prompts.
    """

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        vocab_size: int,
        measured: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.measured = tuple(measured)
        self._tensors = tensors
        vocabulary = tensors["vocabulary"]
        self._place_of = torch.full((vocab_size,), -1)
        self._place_of[vocabulary] = torch.arange(len(vocabulary))

    def guesses(self, hidden: Tensor) -> Tensor:
        """[n, D] hidden states after the pruner's blocks to log p̂ over the vocabulary, [n, V']."""
        t = self._tensors
        hidden = hidden.float()
        x = hidden * hidden.square().mean(1, keepdim=True).rsqrt()
        low = linear(x, t["down"]) + linear(silu(linear(x, t["inner"])), t["outer"])
        return linear(low, t["up"]).log_softmax(1)

    def seen(self, log_p: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
        """What guesses say of candidates, [n, 3].

        Args:
            log_p: Guesses, [m, V'].
            rows: Of each candidate the guess it is judged by, [n].
            ids: The candidates, [n].
        """
        peak = log_p.max(1).values
        entropy = -(log_p.exp() * log_p).sum(1)
        places = self._place_of[ids]
        own = torch.where(places >= 0, log_p[rows, places.clamp_min(0)], _LEAST_LOG)
        return torch.stack((peak[rows], own.clamp_min(_LEAST_LOG), entropy[rows]), dim=1)

    def logits(self, features: Tensor) -> Tensor:
        """[n, 8] to the log-odds that a token is right where the one before it is, [n]."""
        t = self._tensors
        inner = silu(linear(features, t["mlp.0"], t["mlp.0.bias"]))
        return linear(inner, t["mlp.1"], t["mlp.1.bias"])[:, 0]

    @torch.inference_mode()
    def kept(
        self, trees: Sequence[TokenTree], hidden: Tensor, thresholds: Sequence[float]
    ) -> list[list[bool]]:
        """Which nodes of some trees may stay, for `TokenTree.pruned`.

        Args:
            trees: With N nodes in all, R of them; none is empty.
            hidden: After the pruner's blocks, of each tree's last committed token and of its nodes,
                [R + N, D], on the CPU.
            thresholds: τ of each: what a node's score must reach.
        """
        log_scores = self.log_scores(trees, hidden)
        kept, at = [], 0
        for tree, threshold in zip(trees, thresholds, strict=True):
            scores = log_scores[at : at + len(tree)].exp().tolist()
            kept.append([score >= threshold for score in scores])
            at += len(tree)
        return kept

    def log_scores(self, trees: Sequence[TokenTree], hidden: Tensor) -> Tensor:
        """Log of the chance that the target comes to each node, [N]; arguments as for `kept`."""
        before: list[int] = []  # of each node the row of the token that it follows
        first = 0
        for tree in trees:
            before += [first + 1 + parent for parent in tree.parents]
            first += 1 + len(tree)
        rows, row_of = torch.unique(torch.tensor(before), return_inverse=True)  # leaves need none
        ids = torch.tensor([id_ for tree in trees for id_ in tree.ids])
        shapes = torch.tensor([shape for tree in trees for shape in node_shapes(tree)])
        seen = self.seen(self.guesses(hidden[rows]), row_of, ids)
        chances = logsigmoid(self.logits(torch.cat((seen, shapes), dim=1))).tolist()
        scores: list[float] = []
        for tree in trees:
            first = len(scores)
            for parent in tree.parents:
                above = 0.0 if parent == ROOT else scores[first + parent]
                scores.append(above + chances[len(scores)])
        return torch.tensor(scores)

    def measure_tree_s(self) -> float:
        """What judging a usual tree takes here, the best of a few."""
        hidden = torch.ones(1 + len(_TRIAL_TREE), self._tensors["down"].shape[1])
        taken_s = []
        for _ in range(4):
            started_s = time.perf_counter()
            self.kept([_TRIAL_TREE], hidden, [0.5])
            taken_s.append(time.perf_counter() - started_s)
        return min(taken_s)


def node_shapes(tree: TokenTree) -> list[tuple[float, ...]]:
    """What the tree's shape says of each node: a draft looks further where it is surer.

    Returns:
        Per node: alternatives before it, all that follow its parent, its depth, tokens that follow
        it, and the size of the tree.
    """
    following = [0] * len(tree)
    for node in reversed(range(len(tree))):
        parent = tree.parents[node]
        if parent != ROOT:
            following[parent] += 1 + following[node]
    siblings: dict[int, int] = {}
    ranks = []
    for parent in tree.parents:
        ranks.append(siblings.get(parent, 0))
        siblings[parent] = ranks[-1] + 1
    return [
        (
            float(rank),
            float(siblings[parent]),
            float(depth),
            following[node] / len(tree) * 10,
            len(tree) / 10,
        )
        for node, (rank, parent, depth) in enumerate(
            zip(ranks, tree.parents, tree.depths(), strict=True)
        )
    ]
