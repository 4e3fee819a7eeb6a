"""What comes out of the swarm: tokens, one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
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


Pipelined = Literal["auto", "off", "on", "beside"]
"""Whether proposals set out before the verdict on the last ones. With `auto` drafts: where that pays, or
never. With drafts in every round look-up's next ones follow at once (`on`), or all that is proposed waits at
the first stage for a ring that is closed (`beside`)."""
PIPELINED_VALUES: tuple[Pipelined, ...] = ("auto", "off", "on", "beside")


class DraftMode(StrEnum):
    """How drafted tokens are verified: [DC]'s modes are for sampled chains of a model, unpruned."""

    SHARED = "shared_noise"
    """A token counts if it is the target's own pick: the answer is plain decoding's."""
    DSD = "dsd"
    """By probabilities; the draft's distributions travel up in full."""
    DSSD = "dssd"
    """By probabilities; the target's distribution travels down where a token is refused."""
    DISCO = "disco"
    """By probabilities; the last stage has the same draft."""


DraftModeWish = DraftMode | Literal["auto"]
"""One of them; or, with `auto` drafts, whichever promises to be the fastest, now this one, now that."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """How a request speculates: in shared noise's mode the answer is the same with any draft."""

    draft: DraftKind = "off"
    num_tokens: int = 4
    """The most that are proposed for a round."""
    width: int = 1
    """Alternatives at each place of what a model proposes; 1: chains."""
    pipelined: Pipelined = "auto"
    """See there."""
    mode: DraftModeWish = DraftMode.SHARED


@dataclass(frozen=True, slots=True)
class SpeculationWish:
    """What a request says of how it speculates."""

    draft: DraftKind | None = None
    """None, here and below: as the settings say."""
    num_tokens: int | None = None
    pipelined: Pipelined = "auto"
    mode: DraftModeWish = DraftMode.SHARED

    def completed(self, draft: DraftKind, num_tokens: int) -> Speculation:
        """With the settings' values for what it leaves open."""
        return Speculation(
            self.draft or draft,
            self.num_tokens or num_tokens,
            pipelined=self.pipelined,
            mode=self.mode,
        )


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
class ReplicaUse:
    """What a last stage has done with its replica of a draft, in DISCO."""

    rounds: int = 0
    """Refusals for which it was asked."""
    disagreements: int = 0
    """Of them those in which the client had drawn from something else."""
    max_difference: float = 0.0
    """Between the probability that a client sent of a refused token and the replica's."""
    seconds: float = 0.0

    @property
    def mean_s(self) -> float:
        """For each refusal; 0 while there was none."""
        return self.seconds / self.rounds if self.rounds else 0.0

    def __add__(self, other: ReplicaUse) -> ReplicaUse:
        return ReplicaUse(
            self.rounds + other.rounds,
            self.disagreements + other.disagreements,
            max(self.max_difference, other.max_difference),
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class CompactionUse:
    """How many sequences had their kept tokens brought together, and what that took."""

    before: int = 0
    """For a pass that could not do without: it has waited for that."""
    before_s: float = 0.0
    after: int = 0
    """When the pass behind the tree had been answered, and nobody waited."""
    after_s: float = 0.0

    def __add__(self, other: CompactionUse) -> CompactionUse:
        return CompactionUse(
            self.before + other.before,
            self.before_s + other.before_s,
            self.after + other.after,
            self.after_s + other.after_s,
        )


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
    refusal: bytes = field(default=b"", repr=False)
    """Float16 [V], the target's weights by which the client draws the next token itself: the id is
    none. Empty: it need not."""


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
    pruned_tokens: int = 0
    """On the last token of a round: how many drafted ones the first stage had not sent on."""
    mode: DraftMode = DraftMode.SHARED
    """On the last token of a round: how its draft was verified; DSSD for DISCO without a replica."""
