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


class Reciter:
    """Recites the sequence in chains, with the same mistakes whenever it is asked.

    Args:
        truth: Prompt and answer.
        seed: Of the mistakes.
        right_share: Of the places.
    """

    def __init__(self, truth: Sequence[int], *, seed: int = 0, right_share: float = 0.85) -> None:
        rng = np.random.default_rng(seed)
        self._said = [t if rng.random() < right_share else (t + 1) % 512 for t in truth]
        self.longest = 0
        """The most tokens that it was asked for."""

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        self.longest = max(self.longest, num_tokens)
        return TokenTree.chain(self._said[len(ids) : len(ids) + num_tokens])


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


def pipelined_answer(
    chain: Chain,
    prompt: list[int],
    sampling: SamplingParams,
    truth: Sequence[int],
    *,
    chunk_tokens: int,
    ahead: int,
    rng: np.random.Generator,
    right_share: float,
) -> tuple[list[Committed], int]:
    """The same with so many chunks on their way at once, which are cut from what a prophet says.

    Returns:
        The answer, and the chunks that were worthless.
    """
    session, ids = SessionId(3), list(prompt)
    for part, span in zip(chain.stages, chain.spans, strict=True):
        part.open(
            session,
            span,
            len(prompt) + sampling.max_new_tokens,
            len(prompt),
            sampling,
            kv_offload=chain.kv_offload,
            draft_tokens=_ROOM,
        )
    chain.run([Row(session, 0, len(ids) - 1)], ids[:-1])
    answer: list[Committed] = []
    accepted = wasted = 0
    while True:
        guess = [t if rng.random() < right_share else 3 + t % 7 for t in truth[len(ids) :]]
        drafted = guess[: chunk_tokens * ahead]
        rows, tokens = [], []
        for start in range(0, max(1, len(drafted)), chunk_tokens):
            some = drafted[start : start + chunk_tokens]
            own = ids[-1:] if not start else []
            tokens.append([*own, *some])
            parents = tuple(range(-1, len(some) - 1))
            before = start // chunk_tokens if start else accepted
            position = len(ids) - 1 if not start else len(ids) + start
            row = Row(session, position, len(own) + len(some), 0, RowFlags.SAMPLE, parents, before)
            rows.append(row)
        answers = [chain.run([r], t)[0] for r, t in zip(rows, tokens, strict=True)]
        for place, (row, chunk, token) in enumerate(zip(rows, tokens, answers, strict=True)):
            new = chunk[1 : token.accepted + (not row.goes_on)]
            logprobs = token.path_logprobs or [None] * len(new)
            answer += [(t, lp, None) for t, lp in zip(new, logprobs, strict=True)]
            answer.append((token.id, token.logprobs, token.finish))
            ids += [*new, token.id]
            if token.finish is not None:
                return answer, wasted
            accepted = token.accepted
            after = tokens[place + 1] if place + 1 < len(tokens) else []
            if token.accepted < len(row.parents) or after[:1] != [token.id]:
                wasted += len(rows) - place - 1
                break
