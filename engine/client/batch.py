"""A batch of sequences on its way: what the client remembers of them, whatever route they take."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from engine.core.errors import EngineError
from engine.core.generation import FinishReason, Lossy, TokenEvent, TokenLogprobs
from engine.core.ids import PeerId, SessionId, new_session_id
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Row, RowFlags


@dataclass(slots=True)
class Sequence:
    """One prompt and what has been generated so far: all that is needed to start over."""

    index: int
    """Its place in the batch."""
    ids: list[int]
    """Prompt and generated tokens."""
    prompt_tokens: int
    capacity_tokens: int
    sampling: SamplingParams
    lossy: Lossy = ""
    session: SessionId = field(default_factory=new_session_id)
    reused_tokens: int = 0
    """First tokens that need not be sent along the present route."""
    finished: bool = False

    @property
    def sent_ids(self) -> list[int]:
        """Those that the stages compute in any case: what follows the newest one may not be wanted."""
        return self.ids if len(self.ids) == self.prompt_tokens else self.ids[:-1]


@dataclass(frozen=True, slots=True)
class Failure:
    """The route is lost for every sequence that has not finished."""

    error: EngineError
    peer: PeerId | None
    """The stage to avoid next time, when one is to blame."""


@dataclass(slots=True)
class Batch:
    """Sequences that were opened together along one route, and their news."""

    sequences: dict[SessionId, Sequence]
    prefill_tokens: int = 0
    """Tokens that must be computed before the first news; 0 once there was any."""
    has_failed: bool = False
    news: asyncio.Queue[tuple[int, TokenEvent] | Failure] = field(default_factory=asyncio.Queue)

    def receive(self, row: Row, token: int, logprobs: TokenLogprobs | None) -> None:
        """Take in a new token; duplicates and stale rows are ignored."""
        if self.has_failed:
            return  # nobody reads on; the next route will give this token again
        sequence = self.sequences.get(row.session)
        if sequence is None or sequence.finished or row.position != len(sequence.ids):
            return
        is_first = len(sequence.ids) == sequence.prompt_tokens
        sequence.ids.append(token)
        self.prefill_tokens = 0
        finish = None
        if row.flags & RowFlags.EOS:
            finish = FinishReason.STOP
        elif row.flags & RowFlags.LENGTH:
            finish = FinishReason.LENGTH
        sequence.finished = finish is not None
        reused_tokens = sequence.reused_tokens if is_first else 0
        event = TokenEvent(token, logprobs, finish, reused_tokens)
        self.news.put_nowait((sequence.index, event))

    def fail(self, error: EngineError, peer: PeerId | None) -> None:
        """End the batch's attempt with `error`."""
        self.has_failed = True
        self.news.put_nowait(Failure(error, peer))
