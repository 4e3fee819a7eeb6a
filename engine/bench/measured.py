"""What a measured process tells: when each token came, and the stages' counters around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from engine.protocol.messages import StatsReply


class Counters(BaseModel):
    """The counters of everybody on the route at about one moment."""

    model_config = ConfigDict(frozen=True)

    stages: tuple[StatsReply, ...]
    """In the order of the route."""
    client_sent_bytes: dict[str, int]
    """Row-frame bytes that the client has sent, per stage."""


class Measured(BaseModel):
    """One generation of B sequences of T tokens each, as its client saw it.

    Times are seconds on the client's monotonic clock.
    """

    model_config = ConfigDict(frozen=True)

    started_s: float
    arrivals_s: tuple[tuple[float, ...], ...]
    """Of each new token, per sequence."""
    ids_sha256: str
    ids: tuple[tuple[int, ...], ...] = ()
    """The new tokens, per sequence."""
    client: str = ""
    """The client's peer id; empty when no swarm was involved."""
    hops: tuple[str, ...] = ()
    """The stages' peer ids along the route."""
    before: Counters | None = None
    """When every sequence had its first token: the steady part begins."""
    after: Counters | None = None
    """When all had ended."""
    reached_s: tuple[float, ...] = ()
    """When as many tokens had come as the question's `notify_at` says."""
    hidden_bytes: int = 0
    """Of hidden states that the client sent or took meanwhile: there should be none."""
    recoveries_s: tuple[float, ...] = ()
    """From noticing a loss to the next token, each."""
    resent_ids: int = 0
    """Ids that went to first stages again."""
    stages_replaced: int = 0
    """Stages whose place others took."""
    rounds: int = 0
    """Answers of the last stage: without drafts as many as there are new tokens."""
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    pruned_tokens: int = 0
    """Of the drafted ones: those that the first stage did not send on."""
    mode_rounds: dict[str, int] = {}
    """Rounds with a draft, by how it was verified."""
    sent_row_bytes: int = 0
    """Of row frames that the client sent after the prompts."""
    draft_s: float = 0.0
    """Spent on proposing."""


class Crowded(BaseModel):
    """Chats beside a long prompt. Times between two tokens of one chat, in seconds."""

    model_config = ConfigDict(frozen=True)

    before_s: list[float]
    during_s: list[float]
    """While the long prompt was computed."""
    prefill_s: float
    """From the long prompt's start to its first token."""


def hash_ids(sequences: Iterable[Sequence[int]]) -> str:
    """SHA-256 over the new ids of all sequences in order, each as a little-endian int32."""
    digest = hashlib.sha256()
    for ids in sequences:
        digest.update(np.array(ids, "<i4").tobytes())
    return digest.hexdigest()


class Loaded(BaseModel):
    """What came of a `Load`."""

    tokens: int = 0
    probes: int = 0
    failed: int = 0
    """Answers that broke off."""


class Traffic(BaseModel):
    """What has passed the network interfaces of a host since it started."""

    sent_bytes: int
    received_bytes: int
    at_s: float
    """By the host's monotonic clock."""
