"""Drafting with a model: chains, and trees that grow where the draft is unsure.

A node is worth the chance that the target comes to it: the product of the draft's probabilities
along its path, scaled by how often such nodes were right so far. Level by level the most promising
nodes are looked beyond, and of all that was seen the N most valuable make the tree.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.sample import SampleRequest, penalise, restrict
from engine.speculation.draft_model import DraftModel, Pass
from engine.speculation.shared_noise import ranked
from engine.speculation.tree import EMPTY, ROOT, TokenTree
from engine.speculation.trust import Trust


@dataclass(frozen=True, slots=True)
class _Node:
    """A token that may come next, and what it is worth."""

    id: int
    parent: int
    """Among the nodes that were looked beyond, in their order."""
    value: float


@dataclass(frozen=True, slots=True)
class _Looked:
    """A node that was looked beyond."""

    node: _Node
    path: tuple[int, ...]
    """Ids from the root, its own last."""


Steps: TypeAlias = Generator[Pass, Tensor, TokenTree]
"""Passes that a proposal needs, one after another; each is answered with its logits."""


class ModelDraft:
    """Proposes for one sequence by a draft model; see `engine.speculation.tree.Draft`.

    Args:
        model: The draft.
        params: How the target picks its tokens; the same noise ranks the proposals.
        prompt_tokens: Where the answer begins, for the penalties.
        capacity_tokens: Of the sequence, trees included; beyond it nothing is proposed.
        width: Alternatives at each place, and nodes looked beyond at once; 1 gives chains. May be
            changed between proposals.
        min_value: Nodes that are worth less are left out.
    """

    def __init__(
        self,
        model: DraftModel,
        params: SamplingParams,
        prompt_tokens: int,
        capacity_tokens: int,
        *,
        width: int = 1,
        min_value: float = 0.0,
    ) -> None:
        self._model = model
        self._params = params
        self._prompt_tokens = prompt_tokens
        self._capacity_tokens = min(capacity_tokens, model.spec.max_position_embeddings)
        self.sequence = model.sequence(self._capacity_tokens)
        """What the model has read; `ChainSampler` may go on from it."""
        self.width = width
        self._min_value = min_value
        self._trust = Trust()
        self._takes_the_largest = params.temperature == 0 and not (
            params.logit_bias
            or params.repetition_penalty != 1
            or params.presence_penalty
            or params.frequency_penalty
        )

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        """See `Draft`."""
        return together(self._model, [self.steps(ids, num_tokens, num_tokens)])[0]

    def steps(self, ids: Sequence[int], num_tokens: int, max_depth: int) -> Steps:
        """The same, pass by pass, so that several sequences can go through the model together.

        The tree has at most `max_depth` places in a row.
        """
        # Every node that is looked beyond takes room, at most `width` for each that is proposed.
        if num_tokens < 1 or len(ids) + self.width * num_tokens > self._capacity_tokens:
            return EMPTY
        self._trust.learn(ids)
        logits = yield self._reading(ids)
        levels = [self._alternatives(logits, [_Looked(_Node(-1, ROOT, 1.0), ())], ids, ROOT)]
        looked: list[_Looked] = []
        while len(levels) < min(num_tokens, max_depth):
            beyond = self._worth_looking(levels, num_tokens)
            if not beyond:
                break
            first = len(looked)
            for node in beyond:
                path = looked[node.parent].path if node.parent != ROOT else ()
                looked.append(_Looked(node, (*path, node.id)))
            logits = yield self.sequence.growing([n.id for n in beyond], [n.parent for n in beyond])
            levels.append(self._alternatives(logits, looked[first:], ids, first))
        tree = _best(levels, looked, num_tokens)
        self._trust.expect(tree, {node.id: node.value for node in levels[0]}, len(ids))
        return tree

    def follow(self, ids: Sequence[int]) -> None:
        """Read what is committed, so that the first proposal need not wait for it."""
        if len(ids) <= self._capacity_tokens:
            self._model.forward([self._reading(ids)])

    def take_back(self, length: int) -> None:
        """Of the ids of the last call only so many hold; the next call's begin with them."""
        self.sequence.length = min(self.sequence.length, length)
        self._trust.forget()

    def _reading(self, ids: Sequence[int]) -> Pass:
        """For logits after the last of them, [1, V']."""
        known = min(self.sequence.length, len(ids) - 1)  # what follows the last must be computed
        return self.sequence.reading(ids[known:], known)

    def _worth_looking(self, levels: Sequence[Sequence[_Node]], num_tokens: int) -> list[_Node]:
        """Of the deepest level, nodes whose children may still be among the best."""
        values = sorted((node.value for level in levels for node in level), reverse=True)
        least = values[num_tokens - 1] if len(values) >= num_tokens else 0.0
        best = sorted(levels[-1], key=lambda node: -node.value)[: self.width]
        return [node for node in best if node.value > least or len(values) < num_tokens]

    def _alternatives(
        self, logits: Tensor, after: Sequence[_Looked], ids: Sequence[int], first: int
    ) -> list[_Node]:
        """What may follow each of some nodes, likeliest first.

        Args:
            logits: [n, V'].
            after: The n nodes; the root alone has no path.
            ids: Committed tokens.
            first: Place of the first of them among the nodes looked beyond; `ROOT`: the root.
        """
        if self._takes_the_largest:
            choices = self._greedy(logits)
        else:
            choices = [
                self._noisy(row, [*ids, *node.path])
                for row, node in zip(logits, after, strict=True)
            ]
        nodes = []
        for place, (node, alternatives) in enumerate(zip(after, choices, strict=True)):
            for id_, chance in alternatives:
                value = node.node.value * self._trust.scaled(chance)
                if value >= self._min_value:
                    nodes.append(_Node(id_, ROOT if first == ROOT else first + place, value))
        return nodes

    def _greedy(self, logits: Tensor) -> list[list[tuple[int, float]]]:
        width = min(self.width, logits.shape[1])
        best, places = logits.topk(width, dim=1)
        chances = (best - logits.logsumexp(dim=1, keepdim=True)).exp()
        if self._model.vocabulary is not None:
            places = self._model.vocabulary[places]
        return [
            list(zip(row_ids, row_chances, strict=True))
            for row_ids, row_chances in zip(places.tolist(), chances.tolist(), strict=True)
        ]

    def _noisy(self, row: Tensor, ids: list[int]) -> list[tuple[int, float]]:
        """By the target's own rule: penalties, filters, and the noise of the place."""
        scores = over_whole_vocabulary(self._model, row)
        request = SampleRequest(
            self._params,
            len(ids),
            np.array(ids[: self._prompt_tokens], np.int32),
            np.array(ids[self._prompt_tokens :], np.int32),
        )
        scores = penalise(scores, request)
        if self._params.temperature > 0:
            noise = gumbel_noise(
                self._params.seed, self._params.choice, request.position, len(scores)
            )
            scores = restrict(scores, self._params) + noise
        best = ranked(scores, None, self.width)
        weights = np.exp(scores - scores.max())
        chances = weights[best] / weights.sum()
        return list(zip(best, chances.tolist(), strict=True))


def together(model: DraftModel, steps: Sequence[Steps]) -> list[TokenTree]:
    """Let several sequences' drafts go on side by side, each pass for all of them at once."""
    trees = [EMPTY] * len(steps)
    logits: list[Tensor | None] = [None] * len(steps)
    running = list(range(len(steps)))
    while running:
        passes: dict[int, Pass] = {}
        for place in running:
            try:
                given = logits[place]
                passes[place] = next(steps[place]) if given is None else steps[place].send(given)
            except StopIteration as end:
                trees[place] = end.value
        running = list(passes)
        if passes:
            for place, seen in zip(passes, model.forward(list(passes.values())), strict=True):
                logits[place] = seen
    return trees


def over_whole_vocabulary(model: DraftModel, row: Tensor) -> npt.NDArray[np.float32]:
    """A draft's logits [V'] over the target's vocabulary, [V]; -inf where it knows nothing."""
    scores: npt.NDArray[np.float32] = row.float().cpu().numpy()
    if model.vocabulary is None:
        return scores
    whole = np.full(model.target_vocab_size, -np.inf, np.float32)
    whole[model.vocabulary.cpu().numpy()] = scores
    return whole


def _best(
    levels: Sequence[Sequence[_Node]], looked: Sequence[_Looked], num_tokens: int
) -> TokenTree:
    """The most valuable nodes of all levels; none is worth more than its parent."""
    nodes = [node for level in levels for node in level]
    chosen = sorted(range(len(nodes)), key=lambda i: (-nodes[i].value, i))[:num_tokens]
    place_of: dict[_Node, int] = {}
    ids: list[int] = []
    parents: list[int] = []
    for i in sorted(chosen):  # level by level, so that parents come first
        node = nodes[i]
        place_of[node] = len(ids)
        ids.append(node.id)
        parents.append(ROOT if node.parent == ROOT else place_of[looked[node.parent].node])
    return TokenTree(tuple(ids), tuple(parents))
