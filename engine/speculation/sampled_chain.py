"""Chains drawn from a draft's distribution, as DSD, DSSD and DISCO need them ([DC]).

The client draws them; in DISCO the last stage holds the same model as a replica and computes the
distribution of a refused place again. Both run this code, in float32 and token by token, so that
their numbers agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.core.sampling_params import SamplingParams
from engine.sampling.sample import SampleRequest, penalise, restrict
from engine.speculation.draft_model import DraftModel
from engine.speculation.model_draft import over_whole_vocabulary
from engine.speculation.rejection import Draws, Probabilities, TwoBytes, rounded_up


@dataclass(frozen=True, slots=True)
class DrawnChain:
    """What the client drafted."""

    ids: tuple[int, ...]
    weights: tuple[TwoBytes, ...]
    """q̂ at each place, [V]."""

    @property
    def of_ids(self) -> tuple[float, ...]:
        """The weight of each drafted token: what DSSD and DISCO send of them."""
        return tuple(
            float(weights[id_]) for id_, weights in zip(self.ids, self.weights, strict=True)
        )


class ChainSampler:
    """One sequence in a draft model, at the client or at the last stage.

    Args:
        model: The draft, in float32.
        params: How the target picks its tokens; temperature above 0.
        prompt_tokens: Where the answer begins, for the penalties.
        capacity_tokens: Of the sequence, drafts included.
    """

    def __init__(
        self,
        model: DraftModel,
        params: SamplingParams,
        prompt_tokens: int,
        capacity_tokens: int,
    ) -> None:
        self._model = model
        self._params = params
        self._prompt_tokens = prompt_tokens
        self._sequence = model.sequence(min(capacity_tokens, model.spec.max_position_embeddings))
        self._draws = Draws(params.seed, params.choice)

    def draw(self, ids: Sequence[int], num_tokens: int) -> DrawnChain:
        """Draft a chain after what is committed."""
        drawn: list[int] = []
        weights = [self.weights_after(ids)]
        while True:
            drawn.append(self._draws.token(weights[-1], len(ids) + len(drawn)))
            if len(drawn) == num_tokens:
                return DrawnChain(tuple(drawn), tuple(weights))
            logits = self._sequence.grow(drawn[-1:], [len(drawn) - 2])
            weights.append(self._weights(over_whole_vocabulary(self._model, logits[0]), ids, drawn))

    def weights_after(self, ids: Sequence[int], drafted: Sequence[int] = ()) -> TwoBytes:
        """q̂ after committed and some drafted tokens, [V]; what a replica answers.

        Args:
            ids: All tokens committed so far; only what is new is computed.
            drafted: The chain up to the place in question.
        """
        known = min(self._sequence.length, len(ids) - 1)
        logits = self._sequence.extend(ids[known:], known)
        for place, id_ in enumerate(drafted):
            logits = self._sequence.grow([id_], [place - 1])
        return self._weights(over_whole_vocabulary(self._model, logits[0]), ids, drafted)

    def _weights(
        self, scores: npt.NDArray[np.float32], ids: Sequence[int], drafted: Sequence[int]
    ) -> TwoBytes:
        return rounded_up(distribution(scores, self._params, [*ids, *drafted], self._prompt_tokens))


def distribution(
    logits: npt.NDArray[np.float32], params: SamplingParams, ids: Sequence[int], prompt_tokens: int
) -> Probabilities:
    """What a model's logits after some tokens mean under a request's parameters, [V].

    The target's p as well as the draft's q: penalties, temperature and filters are part of both.
    """
    request = SampleRequest(
        params,
        len(ids),
        np.array(ids[:prompt_tokens], np.int32),
        np.array(ids[prompt_tokens:], np.int32),
    )
    scores = restrict(penalise(logits, request), params).astype(np.float64)
    weights = np.exp(scores - scores.max())
    probabilities: Probabilities = weights / weights.sum()
    return probabilities
