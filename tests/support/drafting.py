"""Drafts for tests: they know what comes, or look it up, and are wrong as often as a test wants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.core.generation import FinishReason, Sampled, TokenLogprobs
from engine.core.ids import SessionId
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags
from engine.speculation.tree import EMPTY, Draft, TokenTree
from tests.support.stages import Chain

Committed = tuple[int, TokenLogprobs | None, FinishReason | None]
_ROOM = 20


class Prophet:
    """Knows the whole sequence and draws trees in which its continuation is hidden, or a part of it.

    Args:
        truth: Prompt and answer.
        seed: Of the trees.
        right_share: How often a token that could be the right one is.
        width: The most tokens that follow one; 1: chains.
        vocab_size: Wrong tokens are below it.
    """

    def __init__(
        self,
        truth: Sequence[int],
        *,
        seed: int = 0,
        right_share: float = 0.7,
        width: int = 3,
        vocab_size: int = 512,
    ) -> None:
        self._truth = list(truth)
        self._rng = np.random.default_rng(seed)
        self._right_share = right_share
        self._width = width
        self._vocab_size = vocab_size

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        rng, rest = self._rng, self._truth[len(ids) :]
        assert list(ids) == self._truth[: len(ids)]
        tokens: list[int] = []
        parents: list[int] = []
        children: dict[int, list[int]] = {-1: []}
        right = {-1: 0}  # nodes on the right path, with their depth
        for node in range(int(rng.integers(0, num_tokens + 1))):
            free = [n for n, c in children.items() if len(c) < self._width]
            parent = int(rng.choice(free)) if self._width > 1 else node - 1
            depth = right.get(parent)
            wanted = rest[depth] if depth is not None and depth < len(rest) else None
            if wanted in children[parent] or rng.random() >= self._right_share:
                wanted = None
            token = wanted if wanted is not None else self._wrong(children[parent], rest, depth)
            if wanted is not None:
                right[node] = right[parent] + 1
            tokens.append(token)
            parents.append(parent)
            children[parent].append(token)
            children[node] = []
        return TokenTree(tuple(tokens), tuple(parents))

    def _wrong(self, siblings: Sequence[int], rest: Sequence[int], depth: int | None) -> int:
        right = rest[depth] if depth is not None and depth < len(rest) else -1
        while True:
            token = int(self._rng.integers(3, self._vocab_size))
            if token != right and token not in siblings:
                return token


class Echo:
    """Proposes what followed the last time when the newest token came: prompt look-up, for tests."""

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        for at in range(len(ids) - 2, -1, -1):
            if ids[at] == ids[-1]:
                return TokenTree.chain(ids[at + 1 : at + 1 + num_tokens])
        return EMPTY


def plain_answer(chain: Chain, prompt: list[int], sampling: SamplingParams) -> list[Sampled]:
    chain.open(1, len(prompt), len(prompt) + sampling.max_new_tokens, sampling)
    position, ids, answer = 0, prompt, []
    while True:
        (token,) = chain.step((1, position, ids))
        answer.append(token)
        if token.finish is not None:
            return answer
        position, ids = position + len(ids), [token.id]


def speculative_answer(
    chain: Chain, prompt: list[int], sampling: SamplingParams, draft: Draft
) -> tuple[list[Committed], int]:
    """The answer as (id, log-probabilities, finish), and the rounds that it took."""
    for part, span in zip(chain.stages, chain.spans, strict=True):
        part.open(
            SessionId(2),
            span,
            len(prompt) + sampling.max_new_tokens,
            len(prompt),
            sampling,
            kv_offload=chain.kv_offload,
            draft_tokens=_ROOM,
        )
    ids, accepted, rounds, answer = list(prompt), 0, 0, []
    position = 0
    while True:
        tree = draft.propose(ids, _ROOM)
        row_ids = [*ids[position:], *tree.ids]
        row = Row(SessionId(2), position, len(row_ids), 0, RowFlags.SAMPLE, tree.parents, accepted)
        (token,) = chain.run([row], row_ids)
        rounds += 1
        path = tree.path_to(token.accepted - 1)
        logprobs = token.path_logprobs or [None] * len(path)
        answer += [(tree.ids[n], lp, None) for n, lp in zip(path, logprobs, strict=True)]
        answer.append((token.id, token.logprobs, token.finish))
        if token.finish is not None:
            return answer, rounds
        ids += [*(tree.ids[n] for n in path), token.id]
        position, accepted = len(ids) - 1, token.accepted
