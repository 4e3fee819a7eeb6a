"""What comes out of the swarm: tokens, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from engine.core.ids import SessionId

Lossy = Literal["", "rows8", "blocks8"]
"""How a request lets its hidden states be rounded on the wire, to 8 bits; empty: not at all.

By row with normalised channels, or by blocks of 4096 ([PT] App. A)."""


DraftKind = Literal["off", "ngram", "model", "auto"]
"""What proposes tokens: nothing; what followed when the last ones came before, in every round; a draft
model, in every round; or either of them where that pays."""
DRAFT_KINDS: tuple[DraftKind, ...] = ("off", "ngram", "model", "auto")


Pipelined = Literal["auto", "off", "on"]
"""Whether look-up's next proposals set out before the verdict on the last ones: with `auto` drafts where
that pays, never, or, with drafts in every round, always."""
PIPELINED_VALUES: tuple[Pipelined, ...] = ("auto", "off", "on")


@dataclass(frozen=True, slots=True)
class Speculation:
    """How a request speculates; the answer is the same with any."""

    draft: DraftKind = "off"
    num_tokens: int = 4
    """The most that are proposed for a round."""
    width: int = 1
    """Alternatives at each place of what a model proposes; 1: chains."""
    pipelined: Pipelined = "auto"
    """See there."""


MAX_DRAFT_TOKENS = 64
"""Of one round; more never pays."""


class FinishReason(StrEnum):
    """Why a sequence ended, in OpenAI's words."""

    STOP = "stop"
    LENGTH = "length"


class PrefixUse(StrEnum):
    """What a request may take over from what was computed before, and leave behind for later."""

    NONE = "none"
    OWN = "own"
    """From this client's earlier requests, for its later ones."""
    SHARED = "shared"
    """From and for others too. How soon an answer comes then tells what others have asked."""


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Natural log-probabilities of one position, of the model's distribution before penalties."""

    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    """(token id, log-probability), most likely first."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The last stage's answer for one session: its next token, after what it accepts of a draft."""

    session: SessionId
    id: int
    logprobs: TokenLogprobs | None = None
    finish: FinishReason | None = None
    accepted: int = 0
    """The last accepted one of the draft's tokens, counted from 1; 0: none is."""
    path_logprobs: tuple[TokenLogprobs, ...] = ()
    """Of the accepted ones, if asked for."""


@dataclass(frozen=True, slots=True)
class DraftingNow:
    """What is proposed for the next round of an answer, and why so."""

    draft: Literal["off", "ngram", "model"]
    reason: str
    """For a person; a `Sentence`."""


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One new token of one sequence."""

    id: int
    logprobs: TokenLogprobs | None = None
    finish: FinishReason | None = None
    """Set on the last token. With STOP the id is a stop token and not part of the text."""
    reused_tokens: int = 0
    """On the first token: how much of the prompt had been computed before."""
    drafted_tokens: int = 0
    """On the last token of a round: how many had been drafted for it, of which"""
    accepted_tokens: int = 0
    """so many were accepted and came before it."""
    drafting: DraftingNow | None = None
    """On the last token of a round: how the next one is made, where that is decided as it goes."""
