"""A batch of sequences on its way: what the client remembers of them, whatever route they take."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from engine.client.stopwatch import Stopwatch
from engine.core.clock import Clock
from engine.core.errors import EngineError, LocalProtocolError
from engine.core.generation import FinishReason, Lossy, TokenEvent, TokenLogprobs
from engine.core.ids import SessionId, new_session_id
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Row, RowFlags

MAX_ATTEMPT = (1 << 16) - 1
"""Frames have no room for more."""


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


@dataclass(slots=True)
class Recoveries:
    """What a client has lived through, for measuring."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=4096))
    """From noticing that something is wrong to the next token, one entry each."""
    resent_ids: int = 0
    """Ids sent again to first stages."""
    stages_replaced: int = 0
    """Hops that others took over."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt is over for every sequence that has not finished."""

    error: EngineError
    attempt: int


@dataclass(slots=True)
class Batch:
    """Sequences that travel together, whatever their route, and their news."""

    sequences: dict[SessionId, Sequence]
    clock: Clock
    recoveries: Recoveries
    attempt: int = -1
    prefill_tokens: int = 0
    """Tokens that must be computed before the next news; 0 once there was any."""
    has_failed: bool = False
    troubled_since_s: float | None = None
    stopwatch: Stopwatch | None = None
    """Measures the route of the present attempt."""
    news: asyncio.Queue[tuple[int, TokenEvent] | Failure] = field(default_factory=asyncio.Queue)

    @property
    def waiting(self) -> list[Sequence]:
        """Sequences that have not finished."""
        return [sequence for sequence in self.sequences.values() if not sequence.finished]

    def begin_attempt(self) -> None:
        """From now on, tokens and failures of earlier attempts no longer count.

        Raises:
            LocalProtocolError: There were too many.
        """
        if self.attempt == MAX_ATTEMPT:
            raise LocalProtocolError("The request was repaired too often; send it again.")
        self.attempt += 1
        self.has_failed = False
        self.stopwatch = None

    def receive(self, row: Row, token: int, logprobs: TokenLogprobs | None) -> None:
        """Take in a new token; duplicates and those of older attempts are ignored."""
        if self.has_failed or row.attempt != self.attempt:
            return  # the next attempt gives this token again
        sequence = self.sequences.get(row.session)
        if sequence is None or sequence.finished or row.position != len(sequence.ids):
            return
        is_first = len(sequence.ids) == sequence.prompt_tokens
        sequence.ids.append(token)
        self.prefill_tokens = 0
        if self.troubled_since_s is not None:
            self.recoveries.seconds.append(self.clock.monotonic_s() - self.troubled_since_s)
            self.troubled_since_s = None
        finish = None
        if row.flags & RowFlags.EOS:
            finish = FinishReason.STOP
        elif row.flags & RowFlags.LENGTH:
            finish = FinishReason.LENGTH
        sequence.finished = finish is not None
        if self.stopwatch is not None:
            self.stopwatch.arrived(row.session, is_last=sequence.finished)
        reused_tokens = sequence.reused_tokens if is_first else 0
        event = TokenEvent(token, logprobs, finish, reused_tokens)
        self.news.put_nowait((sequence.index, event))

    def fail(self, error: EngineError) -> None:
        """End the present attempt with `error`."""
        if not self.has_failed:
            self.has_failed = True
            self.troubled()
            self.news.put_nowait(Failure(error, self.attempt))

    def troubled(self) -> None:
        """Something is wrong since now, if not since longer."""
        if self.troubled_since_s is None:
            self.troubled_since_s = self.clock.monotonic_s()
