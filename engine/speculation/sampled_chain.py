"""Chains drawn from a draft's distribution, as DSD, DSSD and DISCO need them ([DC]).

The client draws them; in DISCO the last stage holds the same model as a replica and computes the
distribution of a refused place again. Both run this code, in float32, so that their numbers agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from engine.core.sampling_params import SamplingParams
from engine.sampling.rejection import Draws, TwoBytes, normalised, residual, rounded_up
from engine.sampling.sample import SampleRequest, probabilities
from engine.speculation.draft_model import DraftModel, DraftSequence
from engine.speculation.model_draft import over_whole_vocabulary


@dataclass(frozen=True, slots=True)
class DrawnChain:
    """What the client drafted."""

    ids: tuple[int, ...] = ()
    weights: tuple[TwoBytes, ...] = ()
    """q̂ at each place, [V]."""

    @property
    def of_ids(self) -> bytes:
        """The weight of each drafted token, as DSSD and DISCO send them."""
        own = [weights[id_] for id_, weights in zip(self.ids, self.weights, strict=True)]
        return np.array(own, "<f2").tobytes()

    @property
    def whole(self) -> bytes:
        """All of them, as DSD sends them."""
        return np.array(self.weights, "<f2").tobytes()


class ChainSampler:
    """One sequence in a draft model, at the client or at the last stage.

    Args:
        model: The draft, in float32.
        params: How the target picks its tokens; temperature above 0.
        prompt_tokens: Where the answer begins, for the penalties.
        capacity_tokens: Of the sequence, drafts included; beyond it nothing is drawn.
        sequence: What the model has read of it already, if somebody reads it with us.
    """

    def __init__(
        self,
        model: DraftModel,
        params: SamplingParams,
        prompt_tokens: int,
        capacity_tokens: int,
        sequence: DraftSequence | None = None,
    ) -> None:
        self._model = model
        self._params = params
        self._prompt_tokens = prompt_tokens
        self._capacity_tokens = min(capacity_tokens, model.spec.max_position_embeddings)
        self._sequence = sequence or model.sequence(self._capacity_tokens)
        self._draws = Draws(params.seed, params.choice)
        self._chain = DrawnChain()
        self._position = 0
        """Of the chain's first token."""

    def has_room(self, num_tokens: int) -> bool:
        """Whether the draft can look at so many tokens."""
        return num_tokens <= self._capacity_tokens

    def draw(self, ids: Sequence[int], num_tokens: int) -> DrawnChain:
        """Draft a chain after what is committed; nothing where there is no room for it."""
        drawn: list[int] = []
        weights: list[TwoBytes] = []
        if self.has_room(len(ids) + num_tokens):
            while len(drawn) < num_tokens:
                logits = (
                    self._sequence.grow(drawn[-1:], [len(drawn) - 2]) if drawn else self._after(ids)
                )
                weights.append(self._weights(logits, [*ids, *drawn]))
                drawn.append(self._draws.token(weights[-1], len(ids) + len(drawn)))
        self._chain, self._position = DrawnChain(tuple(drawn), tuple(weights)), len(ids)
        return self._chain

    @property
    def num_drawn(self) -> int:
        """Tokens of the last chain."""
        return len(self._chain.ids)

    def draw_again(self, place: int, target: TwoBytes) -> int:
        """Draw what takes the place of a refused token of the last chain, as DSSD has the client do.

        Args:
            place: Of the refused token in the chain.
            target: The target's weights there, [V].
        """
        rest = residual(normalised(target), self._chain.weights[place])
        return self._draws.another(rest, self._position + place)

    def weights_after(self, ids: Sequence[int], drafted: Sequence[int]) -> TwoBytes:
        """q̂ after committed and some drafted tokens, [V]; what a replica answers.

        Args:
            ids: All tokens committed so far; only what is new is computed.
            drafted: The chain up to the place in question.
        """
        logits = self._after(ids)
        for place, id_ in enumerate(drafted):
            logits = self._sequence.grow([id_], [place - 1])
        return self._weights(logits, [*ids, *drafted])

    def _after(self, ids: Sequence[int]) -> Tensor:
        """Logits [1, V'] after what is committed."""
        known = min(self._sequence.length, len(ids) - 1)
        return self._sequence.extend(ids[known:], known)

    def _weights(self, logits: Tensor, ids: Sequence[int]) -> TwoBytes:
        scores = over_whole_vocabulary(self._model, logits[0])
        prompt, answer = ids[: self._prompt_tokens], ids[self._prompt_tokens :]
        request = SampleRequest(
            self._params, len(ids), np.array(prompt, np.int32), np.array(answer, np.int32)
        )
        return rounded_up(probabilities(scores, request))
