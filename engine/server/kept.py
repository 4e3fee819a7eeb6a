"""What a stage has sent onward, kept for a replay should a later stage be lost. Pure.

Outputs are kept raw while there is room. When it gets scarce the oldest are compressed, bit for bit,
and when that is not enough they are dropped: then a stage before this one has to compute again, and
in the end the first one from the ids, which the client always holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import numpy.typing as npt

from engine.codec.lanes import ElementType
from engine.codec.payload import decode, encode
from engine.core.ids import SessionId

Ids = npt.NDArray[np.int32]

RUN_TOKENS = 64
"""Tokens of decoding that are kept as one piece: large enough to compress well."""
COMPRESS_ABOVE = 0.75
"""Share of the budget above which compressing begins."""
_PART_OVERHEAD_BYTES = 200
"""What Python takes for a part beside its bytes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Outputs of consecutive tokens."""

    position: int
    ids: Ids
    """`[n]`"""
    hidden: bytes
    """`[n, width]`"""

    @property
    def end(self) -> int:
        """The first token after them."""
        return self.position + len(self.ids)


@dataclass(slots=True, eq=False)
class _Run:
    session: SessionId
    age: int
    position: int
    tokens: int = 0
    ids: list[Ids] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    encoded: bytes | None = None
    """All parts as one, when compressed; then there are none."""
    num_bytes: int = 0

    @property
    def end(self) -> int:
        return self.position + self.tokens


@dataclass(frozen=True, slots=True)
class Compression:
    """A piece of work that may be done in another thread."""

    run: _Run
    hidden: bytes
    tokens: int
    dtype: ElementType
    width: int

    def run_codec(self) -> bytes:
        """Compress; changes nothing."""
        return encode(self.hidden, self.dtype, self.width, None)


class KeptOutputs:
    """The record of all sessions of a stage, within one budget.

    Args:
        budget_bytes: The most memory to take; 0 keeps nothing.
        width: Hidden size.
        dtype: Of the hidden states.
    """

    def __init__(self, budget_bytes: int, width: int, dtype: ElementType) -> None:
        self._budget_bytes = budget_bytes
        self._width = width
        self._dtype = dtype
        self._token_bytes = width * dtype.num_bytes
        self._runs: dict[SessionId, list[_Run]] = {}
        self._by_age: OrderedDict[int, _Run] = OrderedDict()
        self._raw: OrderedDict[int, _Run] = OrderedDict()
        self._ages = count()
        self.num_bytes = 0

    def add(self, session: SessionId, position: int, ids: Ids, hidden: bytes | memoryview) -> None:
        """Keep the outputs of `ids`, the first of which is token `position`.

        What was kept from there on is replaced; what does not join on is forgotten.

        Args:
            session: Theirs.
            position: Of the first token.
            ids: `[n]`
            hidden: `[n, width]`; copied.
        """
        self.truncate(session, position)
        runs = self._runs.setdefault(session, [])
        if runs and runs[-1].end != position:
            self.forget(session)
            runs = self._runs.setdefault(session, [])
        if not runs or runs[-1].encoded is not None or runs[-1].tokens >= RUN_TOKENS:
            run = _Run(session, next(self._ages), position)
            runs.append(run)
            self._by_age[run.age] = self._raw[run.age] = run
        run = runs[-1]
        run.ids.append(ids.copy())
        run.parts.append(bytes(hidden))
        run.tokens += len(ids)
        self._resize(run, run.num_bytes + len(hidden) + ids.nbytes + _PART_OVERHEAD_BYTES)
        while self.num_bytes > self._budget_bytes:
            self._remove(next(iter(self._by_age.values())))

    def start(self, session: SessionId, end: int) -> int:
        """The first token from which on everything before token `end` is kept; `end`: nothing is."""
        runs = self._runs.get(session)
        return min(runs[0].position, end) if runs and runs[-1].end >= end else end

    def covers(self, session: SessionId, start: int, end: int) -> bool:
        """Whether the outputs of tokens `[start, end)` are all kept."""
        return start >= end or self.start(session, end) <= start

    def replay(
        self, session: SessionId, start: int, end: int, max_tokens: int = 256
    ) -> Iterator[Kept | None]:
        """What was kept for tokens `[start, end)`, in pieces; None and no more when it is gone.

        The record may change between two pieces.
        """
        while start < end:
            pieces: list[Kept] = []
            until = min(end, start + max_tokens)
            while start < until:
                piece = self._piece(session, start, until)
                if piece is None:
                    yield None
                    return
                pieces.append(piece)
                start += len(piece.ids)
            yield Kept(
                pieces[0].position,
                np.concatenate([piece.ids for piece in pieces]),
                b"".join(piece.hidden for piece in pieces),
            )

    def truncate(self, session: SessionId, position: int) -> None:
        """Forget token `position` and all after it."""
        runs = self._runs.get(session, [])
        while runs and runs[-1].end > position:
            run = runs[-1]
            cut = position > run.position
            head = self._piece(session, run.position, position) if cut else None
            self._remove(run)
            if head is not None:
                self.add(session, head.position, head.ids, head.hidden)

    def forget(self, session: SessionId) -> None:
        """Free all that is kept of a session."""
        for run in list(self._runs.get(session, ())):
            self._remove(run)
        self._runs.pop(session, None)

    def next_compression(self) -> Compression | None:
        """What to compress next; None while there is room, or nothing left to compress."""
        if self.num_bytes <= COMPRESS_ABOVE * self._budget_bytes or not self._raw:
            return None
        run = next(iter(self._raw.values()))
        return Compression(run, b"".join(run.parts), run.tokens, self._dtype, self._width)

    def compressed(self, work: Compression, data: bytes) -> None:
        """Take in what `work` gave, unless the run has changed meanwhile."""
        run = work.run
        if run.age not in self._raw or run.tokens != work.tokens:
            return
        del self._raw[run.age]
        run.ids, run.parts, run.encoded = [np.concatenate(run.ids)], [], data
        self._resize(run, len(data) + run.ids[0].nbytes + _PART_OVERHEAD_BYTES)

    def _piece(self, session: SessionId, start: int, end: int) -> Kept | None:
        """What the run that holds token `start` has of `[start, end)`."""
        runs = self._runs.get(session, [])
        at = bisect_right(runs, start, key=lambda run: run.position) - 1
        if at < 0 or start >= runs[at].end:
            return None
        run = runs[at]
        first, last = start - run.position, min(end, run.end) - run.position
        hidden: bytes | memoryview
        if run.encoded is None:
            hidden = run.parts[0] if len(run.parts) == 1 else b"".join(run.parts)
        else:
            hidden = decode(run.encoded, self._dtype, run.tokens, self._width, None)
        size = self._token_bytes
        ids = np.concatenate(run.ids)[first:last]
        return Kept(start, ids, bytes(hidden[first * size : last * size]))

    def _remove(self, run: _Run) -> None:
        runs = self._runs[run.session]
        runs.remove(run)
        if not runs:
            del self._runs[run.session]
        del self._by_age[run.age]
        self._raw.pop(run.age, None)
        self._resize(run, 0)

    def _resize(self, run: _Run, num_bytes: int) -> None:
        self.num_bytes += num_bytes - run.num_bytes
        run.num_bytes = num_bytes
