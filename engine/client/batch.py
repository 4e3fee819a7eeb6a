"""A batch of sequences on its way: what the client remembers of them, whatever route they take."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

from engine.client.drafter import Drafter
from engine.client.drafting import Drafting, shallow
from engine.client.steering import Steering
from engine.client.stopwatch import Stopwatch
from engine.core.clock import Clock
from engine.core.errors import (
    EngineError,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from engine.core.generation import DraftMode, FinishReason, Lossy, TokenEvent
from engine.core.ids import SessionId, new_session_id
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags
from engine.protocol.tokens import Logprobs
from engine.speculation.costs import PLAIN, Option
from engine.speculation.tree import EMPTY, Draft, TokenTree


class AnswerMisfits(PeerError):
    """An answer tells of another draft than was sent; any stage that its row passed may have made it so."""


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
    draft: Draft | None = None
    """Proposes tokens at once; None: nothing does."""
    leads: bool = False
    """Whether the client sends every row, with a draft; else the ring is closed."""
    draft_tokens: int = 0
    """The most that it proposes for a round."""
    prune_threshold: float | None = None
    """See `SequenceMessage`."""
    draft_sha256: str = ""
    """The draft that its chains are drawn from, where the last stage may need to know."""
    expects: bool = False
    """Whether its first stage has been told in this attempt what may come, for rows of the closed ring."""
    replica_s: float = math.inf
    """What a pass of the last stage's replica of that takes; 0: unknown; infinite: there is none."""
    option: Option = PLAIN
    """How that was made which is on its way: what the next answer tells of …"""
    tree: TokenTree = EMPTY
    known: int = 0
    """… of which the last answer has confirmed so many tokens already …"""
    behind: deque[tuple[int, ...]] = field(default_factory=deque)
    """… and chunks that go on from it, one after the other."""
    accepted: int = 0
    """The last token of it that was accepted, counted from 1; 0: none."""

    @property
    def room_tokens(self) -> int:
        """KV room that a stage must have for it."""
        return self.capacity_tokens + self.draft_tokens

    @property
    def sent_ids(self) -> list[int]:
        """Those that the stages compute in any case: what follows the newest one may not be wanted."""
        if self.leads or self.expects:
            # What was accepted is not theirs before the next row.
            return self.ids[: self.prompt_tokens]
        return self.ids if len(self.ids) == self.prompt_tokens else self.ids[:-1]

    @property
    def flags(self) -> RowFlags:
        """Of a row whose answer is wanted."""
        return RowFlags.SAMPLE | RowFlags.OPEN if self.leads else RowFlags.SAMPLE

    @property
    def draft_depth(self) -> int:
        """How far a draft may reach; what lies beyond the answer's end is never accepted."""
        last_position = min(
            self.prompt_tokens + self.sampling.max_new_tokens - 1, self.capacity_tokens
        )
        return last_position - len(self.ids)

    @property
    def assumed(self) -> list[int]:
        """What follows its ids if all that is on its way is right."""
        return [*self.tree.ids[self.known :], *itertools.chain(*self.behind)]

    def next_row(
        self, attempt: int, tree: TokenTree, weights: bytes = b""
    ) -> tuple[Row, list[int]]:
        """The newest token and what may follow it, as a row and its ids.

        Args:
            attempt: The present one.
            tree: What has been proposed.
            weights: What that was drawn by, if it was; see `Row.weights`.
        """
        accepted, self.accepted = self.accepted, 0
        self.tree = shallow(tree, self.draft_depth)
        ids = [self.ids[-1], *self.tree.ids]
        position = len(self.ids) - 1
        if not len(self.tree):
            weights = b""
        mode = self.option.mode if weights else DraftMode.SHARED
        row = Row(
            self.session,
            position,
            len(ids),
            attempt,
            self.flags,
            self.tree.parents,
            accepted,
            mode,
            weights,
        )
        return row, ids

    def row_ahead(self, attempt: int, chunk: tuple[int, ...]) -> Row:
        """A row of guesses, a chain, that goes on from all that is on its way; `chunk` are its ids."""
        position, under_way = len(self.ids) + len(self.assumed), 1 + len(self.behind)
        self.behind.append(chunk)
        parents = TokenTree.chain(chunk).parents
        return Row(self.session, position, len(chunk), attempt, self.flags, parents, under_way)

    def judged(self, accepted: int, token: int) -> int:
        """Take in what has become of the tree.

        Args:
            accepted: The last token of it that was, counted from 1; 0: none.
            token: What follows it.

        Returns:
            Tokens on their way behind it that are worth nothing now.
        """
        if self.behind and accepted == len(self.tree) and token == self.behind[0][0]:
            self.tree, self.known = TokenTree.chain(self.behind.popleft()), 1
            return 0
        wasted = sum(map(len, self.behind))
        self.ground()
        self.accepted = accepted
        return wasted

    def ground(self) -> None:
        """Forget all that the client has sent on its way."""
        self.tree, self.known, self.accepted = EMPTY, 0, 0
        self.behind.clear()


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


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What became of a round's draft."""

    new: list[int]
    """Ids that are the sequence's own now."""
    drafted: int
    guessed: int
    """See `Steering.answered`."""
    pruned: int


@dataclass(slots=True)
class Batch:
    """Sequences that travel together, whatever their route, and their news."""

    sequences: dict[SessionId, Sequence]
    clock: Clock
    recoveries: Recoveries
    drafting: Drafting | None = None
    """How it speculates."""
    attempt: int = -1
    prefill_tokens: int = 0
    """Tokens that must be computed before the next news; 0 once there was any."""
    has_failed: bool = False
    troubled_since_s: float | None = None
    stopwatch: Stopwatch | None = None
    """Measures the route of the present attempt."""
    steering: Steering | None = None
    """Decides what is drafted on it; None: as much as each draft may, in every round, or nothing."""
    news: asyncio.Queue[tuple[int, TokenEvent] | Failure] = field(default_factory=asyncio.Queue)

    @property
    def drafter(self) -> Drafter | None:
        """The model that drafts."""
        return None if self.drafting is None else self.drafting.drafter

    @property
    def waiting(self) -> list[Sequence]:
        """Sequences that have not finished."""
        return [sequence for sequence in self.sequences.values() if not sequence.finished]

    def left_tokens(self) -> int:
        """How many tokens the longest sequence may still get."""
        return max((sequence.draft_depth for sequence in self.waiting), default=0)

    def begin_attempt(self) -> None:
        """From now on, tokens and failures of earlier attempts no longer count.

        Raises:
            LocalProtocolError: There were too many.
        """
        if self.attempt == MAX_ATTEMPT:
            raise LocalProtocolError("The request was repaired too often; send it again.")
        self.attempt += 1
        self.has_failed = False
        self.stopwatch = self.steering = None
        for sequence in self.waiting:
            sequence.ground()
            sequence.expects = False
            if self.drafting is not None and self.drafting.make_policy is not None:
                sequence.leads = False  # until that pays on the new route, too

    def receive(
        self, row: Row, token: int, logprobs: Logprobs = (), expected: SequenceOf[int] = ()
    ) -> bool:
        """Take in a new token, after what is accepted of a draft.

        Duplicates and those of older attempts are ignored.

        Args:
            row: The answer.
            token: The new one.
            logprobs: Of all new ones, if asked for.
            expected: With EXPECTED, what is accepted; else the draft is the sequence's `tree`.

        Returns:
            Whether the sequence waits for its client's next row.

        Raises:
            AnswerMisfits: The answer does not fit the draft.
        """
        if self.has_failed or row.attempt != self.attempt:
            return False  # the next attempt gives this token again
        sequence = self.sequences.get(row.session)
        if sequence is None or sequence.finished or row.position < len(sequence.ids):
            return False
        told = self._expected if RowFlags.EXPECTED in row.flags else self._judged
        judged = told(sequence, row, expected)
        if judged is None or row.position != len(sequence.ids) + len(judged.new):
            return False
        new, num_new = judged.new, len(judged.new)
        if logprobs and len(logprobs) != num_new + 1:
            raise AnswerMisfits("Stages sent log-probabilities for other tokens than were drafted.")
        is_first = len(sequence.ids) == sequence.prompt_tokens
        for place, id_ in enumerate(new):
            event = TokenEvent(id_, logprobs[place] if logprobs else None)
            self.news.put_nowait((sequence.index, event))
        sequence.ids += [*new, token]
        drafted = judged.drafted
        if RowFlags.EXPECTED in row.flags:
            sequence.ground()
        else:
            drafted += sequence.judged(row.accepted, token)
        self.prefill_tokens = 0
        if self.troubled_since_s is not None:
            self.recoveries.seconds.append(self.clock.monotonic_s() - self.troubled_since_s)
            self.troubled_since_s = None
        finish = None
        if RowFlags.EOS in row.flags:
            finish = FinishReason.STOP
        elif RowFlags.LENGTH in row.flags:
            finish = FinishReason.LENGTH
        sequence.finished = finish is not None
        is_open = RowFlags.OPEN in row.flags
        if is_open or RowFlags.EXPECTED in row.flags:
            self.stopwatch = None  # such a round says nothing of how long a token takes
        if self.stopwatch is not None:
            self.stopwatch.arrived(row.session, is_last=sequence.finished)
        if self.steering is not None and not sequence.finished:
            rows = len(self.waiting)
            self.steering.answered(
                sequence,
                judged.guessed,
                num_new,
                rows,
                is_open=is_open,
                was_expected=RowFlags.EXPECTED in row.flags,
            )
        reused_tokens = sequence.reused_tokens if is_first else 0
        last = logprobs[-1] if logprobs else None
        now = None if self.steering is None else self.steering.now
        event = TokenEvent(
            token, last, finish, reused_tokens, drafted, num_new, now, judged.pruned, row.mode
        )
        self.news.put_nowait((sequence.index, event))
        return is_open and not sequence.finished

    def _judged(self, sequence: Sequence, row: Row, expected: SequenceOf[int]) -> _Verdict | None:
        """What a row says of the draft that its client has sent; None: nothing that fits.

        Raises:
            AnswerMisfits: It does not fit the draft.
        """
        tree = sequence.tree
        if row.accepted > len(tree):
            raise AnswerMisfits("Stages accepted more of a draft than there was.")
        kept = row.kept if len(tree) else ()  # of nothing nothing was left out, whatever is said
        if kept and (len(kept) != len(tree) or (row.accepted and not kept[row.accepted - 1])):
            raise AnswerMisfits("Stages left tokens out of another draft than there was.")
        if row.accepted < sequence.known:
            return None
        # What a chunk begins with that goes on has come as the token after the one before it.
        path = tree.path_to(row.accepted - 1)[sequence.known :]
        return _Verdict(
            [tree.ids[node] for node in path],
            len(tree) - sequence.known,
            len(path) + (row.accepted - 1 in tree.parents),
            kept.count(False),
        )

    def _expected(self, sequence: Sequence, row: Row, expected: SequenceOf[int]) -> _Verdict | None:
        """What a row says of a draft that its first stage has made of what was expected.

        Raises:
            AnswerMisfits: Nobody has said what to expect.
            RemoteProtocolError: No stage can have taken such a draft.
        """
        if not sequence.expects:
            raise AnswerMisfits("Stages accepted a draft where nothing was expected.")
        if not len(expected) <= row.accepted <= sequence.draft_tokens:
            raise RemoteProtocolError("The peer accepted more than a draft may have.")
        guessed = min(len(expected) + 1, row.accepted)
        return _Verdict(list(expected), row.accepted, guessed, row.kept.count(False))

    def stop_drafting(self) -> None:
        """Decode plainly from the next attempt on."""
        for sequence in self.sequences.values():
            sequence.draft, sequence.leads = None, False
        self.drafting = None

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
