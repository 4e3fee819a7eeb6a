"""What a request's drafts are made by, and what of them is worth sending. Pure but for the draft model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.client.drafter import Drafter
from engine.client.steering import (
    BY_PROBABILITIES,
    LOOKUPS,
    LOOKUPS_BESIDE,
    MODELS,
    MODELS_BESIDE,
    PIPELINED,
    Policy,
)
from engine.core.errors import RequestError
from engine.core.generation import DraftMode, Speculation
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import MAX_WHOLE
from engine.speculation.controller import Controller
from engine.speculation.costs import Costs, Option, Source
from engine.speculation.estimates import Timing
from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.tree import EMPTY, Draft, TokenTree

_AHEAD: Final = 4
"""Chunks on their way where a request wants them in any case."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a request speculates.

    Args:
        make_draft: Makes what answers at once, for one sequence; None: nothing does.
        num_tokens: The most that is proposed for a round.
        make_policy: Makes what decides for a batch when to draft, and how much; None: always, with
            `make_draft` or, without it, with the model.
        drafter: The model that drafts; None: none does.
        width: Alternatives at each place of the model's proposals where no policy decides.
        ahead: Chunks of what `make_draft` makes that are on their way at once where none does.
        beside: Where none does, whether the ring stays closed, and drafts wait at the first stage.
        prune_threshold: τ of the first stage; 0: nothing is pruned; None: as the stage finds worth it.
        mode: How sampled chains of the model are verified where no policy decides.
        wants_replica: Whether the last stage may be asked for its replica of the model.
    """

    make_draft: Callable[[], Draft] | None
    num_tokens: int
    make_policy: Callable[[Costs, Timing], Policy] | None = None
    drafter: Drafter | None = None
    width: int = 1
    ahead: int = 1
    beside: bool = False
    prune_threshold: float | None = None
    mode: DraftMode = DraftMode.SHARED
    wants_replica: bool = False

    @property
    def always(self) -> Option:
        """What every round is where no policy decides."""
        if self.make_draft is not None:
            return Option(Source.LOOKUP, self.num_tokens, ahead=self.ahead, beside=self.beside)
        return Option(Source.MODEL, self.num_tokens, self.width, self.mode, beside=self.beside)


def drafting_for(
    speculation: Speculation,
    drafter: Drafter | None = None,
    params: Sequence[SamplingParams] = (),
) -> Drafting | None:
    """What a request's settings ask for; None: nothing drafts.

    Args:
        speculation: The settings.
        drafter: The draft of the model that answers; None: there is none here.
        params: How each of its sequences picks tokens.

    Raises:
        RequestError: A model shall draft, and there is none; or what is asked for cannot be together.
    """
    mode = _checked_mode(speculation, params)
    beside = speculation.pipelined == "beside"
    match speculation.draft:
        case "off":
            return None
        case "ngram":
            ahead = _AHEAD if speculation.pipelined == "on" else 1
            return Drafting(PromptLookup, speculation.num_tokens, ahead=ahead, beside=beside)
        case "model":
            if drafter is None:
                raise RequestError(
                    "This computer has no draft for the model that answers; train one with "
                    "`shoal draft train`, or ask with another value of draft.",
                    param="draft",
                )
            most = speculation.num_tokens
            if mode is DraftMode.DSD:
                most = min(most, MAX_WHOLE)
            return Drafting(
                None,
                most,
                drafter=drafter,
                width=speculation.width,
                beside=beside,
                mode=mode,
                wants_replica=mode is DraftMode.DISCO,
            )
        case "auto":
            pipelined = speculation.pipelined != "off"
            options = (*LOOKUPS, *PIPELINED, *LOOKUPS_BESIDE) if pipelined else LOOKUPS
            if drafter is not None:
                options = (*options, *MODELS, *(MODELS_BESIDE if pipelined else ()))
            may_judge = speculation.mode == "auto" and drafter is not None and _are_drawn(params)
            options = (*options, *BY_PROBABILITIES) if may_judge else options
            most = max(option.num_tokens for option in options)
            policy = functools.partial(Controller, options)
            return Drafting(PromptLookup, most, policy, drafter, wants_replica=may_judge)


def _checked_mode(speculation: Speculation, params: Sequence[SamplingParams]) -> DraftMode:
    """Of what drafts in every round."""
    mode = speculation.mode
    if mode == "auto":
        if speculation.draft == "model":
            raise RequestError(
                "draft_mode auto goes by what rounds take; ask for it with draft set to auto.",
                param="draft_mode",
            )
        return DraftMode.SHARED
    if mode is DraftMode.SHARED:
        return mode
    if speculation.draft != "model" or speculation.width > 1:
        raise RequestError(
            f"draft_mode {mode} verifies chains of a draft model by its probabilities; ask for it with "
            "draft set to model.",
            param="draft_mode",
        )
    if speculation.pipelined == "beside":
        raise RequestError(
            f"draft_mode {mode} waits for each verdict; ask for it without pipelined, or for drafts beside "
            "the ring with draft_mode shared_noise.",
            param="draft_mode",
        )
    if any(sampling.logprobs is not None for sampling in params):
        raise RequestError(
            "Log-probabilities cannot be had with this draft_mode; leave them out, or ask for "
            "shared_noise or auto.",
            param="draft_mode",
        )
    return mode


def _are_drawn(params: Sequence[SamplingParams]) -> bool:
    """Whether chains can be verified by probabilities, and that is another thing than shared noise."""
    asks_logprobs = any(sampling.logprobs is not None for sampling in params)
    return not asks_logprobs and any(sampling.temperature for sampling in params)


def shallow(tree: TokenTree, max_depth: int) -> TokenTree:
    """The part of a tree that is no deeper; what lies beyond an answer's end is never accepted."""
    if max_depth <= 0 or not len(tree):
        return EMPTY
    depths = tree.depths()
    return tree if max(depths) <= max_depth else tree.pruned([d <= max_depth for d in depths])[0]
