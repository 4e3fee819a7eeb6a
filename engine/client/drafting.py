"""What a request's drafts are made by, and what of them is worth sending. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from engine.client.steering import LOOKUPS, Policy
from engine.core.generation import Speculation
from engine.speculation.controller import Controller
from engine.speculation.costs import Costs
from engine.speculation.estimates import Timing
from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.tree import EMPTY, Draft, TokenTree


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a request speculates.

    Args:
        make_draft: Makes a source of proposals for one sequence.
        num_tokens: The most that it proposes for a round.
        make_policy: Makes what decides for a batch when to draft, and how much; None: always.
    """

    make_draft: Callable[[], Draft]
    num_tokens: int
    make_policy: Callable[[Costs, Timing], Policy] | None = None


def drafting_for(speculation: Speculation) -> Drafting | None:
    """What a request's settings ask for; None: nothing drafts."""
    if speculation.draft == "off":
        return None
    if speculation.draft == "auto":
        most = max(option.num_tokens for option in LOOKUPS)
        return Drafting(PromptLookup, most, functools.partial(Controller, LOOKUPS))
    return Drafting(PromptLookup, speculation.num_tokens)


def shallow(tree: TokenTree, max_depth: int) -> TokenTree:
    """The part of a tree that is no deeper; what lies beyond an answer's end is never accepted."""
    if max_depth <= 0 or not len(tree):
        return EMPTY
    depths = tree.depths()
    return tree if max(depths) <= max_depth else tree.pruned([d <= max_depth for d in depths])[0]
