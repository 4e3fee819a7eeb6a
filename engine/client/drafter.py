"""This node's draft model: its process is there while requests want it, and no longer."""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from engine.core.clock import Clock
from engine.core.errors import EngineError, EnginePaused, ModelError, WorkerFailed
from engine.core.ids import SessionId
from engine.core.sampling_params import SamplingParams
from engine.speculation.draft_files import read_description
from engine.speculation.tree import TokenTree
from engine.speculation.worker_process import DraftOrder, DraftProcess, Drawn

logger = logging.getLogger(__name__)

T = TypeVar("T")

_IDLE_S: Final = 120.0
"""The process ends when no request has wanted it for so long."""
_START_LIMIT_S: Final = 120.0
_ANSWER_LIMIT_S: Final = 30.0
_FIRST_BACK_OFF_S: Final = 30.0
"""After a failure no other try is made for so long; twice as long after each further one."""
_MAX_BACK_OFFS: Final = 5
_ENDED: Final = "The draft's process has ended; nothing is drafted."
_READ_TOKENS: Final = 256
"""Of a sequence, read at once: the proposals for others come in between."""
_SPARE_TOKENS: Final = 256
"""Of a sequence in the draft, for what is looked at and not proposed."""
_NEWEST_SHARE: Final = 0.2
"""Of the newest time in the mean."""
_WARM_UP: Final = tuple(range(8))
_WARM_UP_ROWS: Final = 8
_WARM_UP_LEVELS: Final = 4
_WARM_UP_TIMES: Final = 3


class Drafted(Protocol):
    """A sequence as a draft sees it; `engine.client.batch.Sequence` is it."""

    session: SessionId
    prompt_tokens: int
    capacity_tokens: int
    sampling: SamplingParams


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a draft shall go on from."""

    sequence: Drafted
    ids: list[int]
    """Its tokens; the last of them may be taken to be committed, and taken back by the next call."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How long a place of a draft takes."""

    pass_s: float
    """However many sequences."""
    row_s: float
    """And for each of them."""

    def level_s(self, rows: int) -> float:
        """For so many sequences together."""
        return self.pass_s + rows * self.row_s

    def times(self, factor: float) -> Speed:
        """So many times as long."""
        return Speed(self.pass_s * factor, self.row_s * factor)


class Drafter:
    """One draft model, shared by all requests.

    Args:
        order: What drafts, and for which model.
        clock: Tells the time.
        rests: Why nothing may be held in memory now; empty: it may.
        speed: What is taken to be its speed before that was measured.
        idle_s: The process ends when no request has wanted it for so long.
    """

    def __init__(
        self,
        order: DraftOrder,
        clock: Clock,
        rests: Callable[[], str] = str,
        *,
        speed: Speed = Speed(0.01, 0.002),
        idle_s: float = _IDLE_S,
    ) -> None:
        self._order = order
        self._clock = clock
        self._rests = rests
        self._idle_s = idle_s
        self._speed = speed
        self.seconds = 0.0
        """What all proposals have taken together."""
        self.trouble: EngineError | None = None
        """Why nothing is drafted at present."""
        self._process: DraftProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._opened: set[SessionId] = set()
        """Sequences that the process knows."""
        self._following: set[SessionId] = set()
        """Those of them whose prompts it has read."""
        self._reading = 0
        self._failures = 0
        self._not_before_s = 0.0
        self._ending: set[asyncio.Task[None]] = set()

    def level_s(self, rows: int) -> float:
        """What a place of so many sequences' drafts takes together."""
        return self._speed.level_s(rows)

    @property
    def is_ready(self) -> bool:
        """Whether it can be asked now."""
        return self._process is not None and not self._process.has_ended

    @property
    def may_start(self) -> bool:
        """Whether `wake` would do something, or has done."""
        return not self._rests() and self._clock.monotonic_s() >= self._not_before_s

    @property
    def is_starting(self) -> bool:
        """Whether its process starts: what else this machine does may be slower meanwhile."""
        return self._starting is not None

    @property
    def is_reading(self) -> bool:
        """Whether it reads a prompt: the same."""
        return self._reading > 0

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def follows(self, sequence: Drafted) -> bool:
        """Whether a proposal need not wait for the prompt to be read."""
        return sequence.session in self._following

    def wake(self) -> None:
        """Start the process, unless it runs, starts, or must not; returns at once."""
        if not self.is_ready and self._starting is None and self.may_start:
            self._starting = asyncio.create_task(self._start(), name="draft-start")

    async def ready(self) -> None:
        """Wait until it can be asked.

        Raises:
            EngineError: It cannot be; the text says why.
        """
        self.wake()
        if self._starting is not None:
            await asyncio.wait({self._starting})
        if self.is_ready:
            return
        if reason := self._rests():
            raise EnginePaused(f"{reason} Meanwhile no draft model runs.")
        raise self.trouble or WorkerFailed(_ENDED)

    async def follow(self, wanted: Sequence[Wanted]) -> None:
        """Read sequences, so that their first proposals need not wait for that.

        Raises:
            WorkerFailed: The process ended.
        """
        self._reading += 1
        try:
            process = await self._opened_at([one.sequence for one in wanted])
            for one in wanted:
                session = one.sequence.session
                await self._read(process, one)
                await self._answered(process, process.follow(session, one.ids))
                self._following.add(session)
        finally:
            self._reading -= 1

    async def propose(
        self,
        wanted: Sequence[Wanted],
        num_tokens: int,
        width: int = 1,
        *,
        depth: int | None = None,
    ) -> list[TokenTree]:
        """What may come next, for each.

        Args:
            wanted: Sequences with their ids.
            num_tokens: The most nodes for each.
            width: Alternatives at each place; 1 gives chains.
            depth: The most places in a row; None: as the draft finds worth it.

        Raises:
            WorkerFailed: The process ended, or did not answer in time.
        """
        process = await self._opened_at([one.sequence for one in wanted])
        for one in wanted:
            await self._read(process, one)
        rows = [(one.sequence.session, one.ids) for one in wanted]
        answer = await self._answered(
            process, process.propose(rows, num_tokens, width=width, depth=depth)
        )
        levels = max((max(tree.depths(), default=0) for tree in answer.trees), default=0)
        self._took(wanted, levels, answer.draft_s)
        return list(answer.trees)

    async def draw(
        self, wanted: Sequence[Wanted], num_tokens: Sequence[int], *, whole: bool
    ) -> list[Drawn]:
        """Chains drawn by the draft's probabilities.

        Args:
            wanted: Sequences with their ids.
            num_tokens: The most for each.
            whole: Tell all that each token was drawn by.

        Raises:
            WorkerFailed: The process ended, or did not answer in time.
        """
        process = await self._opened_at([one.sequence for one in wanted])
        for one in wanted:
            await self._read(process, one)
        drawn = await self._answered(
            process,
            asyncio.gather(
                *(
                    process.draw(one.sequence.session, one.ids, number, whole=whole)
                    for one, number in zip(wanted, num_tokens, strict=True)
                )
            ),
        )
        for one, chain in zip(wanted, drawn, strict=True):
            self._took([one], len(chain.ids), chain.draft_s)
        return drawn

    async def draw_again(self, sequence: Drafted, place: int, target: bytes) -> int:
        """What takes the place of a refused token of the last chain.

        Args:
            sequence: Whose.
            place: Of the token in the chain.
            target: The target's weights there, float16 [V].

        Raises:
            WorkerFailed: The process ended, or did not answer in time, or has not drawn that chain.
        """
        process = await self._opened_at([sequence])
        token = await self._answered(process, process.draw_again(sequence.session, place, target))
        if token is None:
            raise WorkerFailed(
                "The draft was started again and no longer knows the chain; the answer goes on without."
            )
        return token

    def sha256(self) -> str:
        """Names the draft to a last stage that may have it too; empty: no other computes as it does."""
        if not isinstance(self._order.draft, Path) or self._order.dtype != "float32":
            return ""
        return read_description(self._order.draft).sha256

    def close(self, sessions: Iterable[SessionId]) -> None:
        """Forget sequences; when there are none, the process ends after a while."""
        closed = self._opened.intersection(sessions)
        self._opened -= closed
        self._following -= closed
        if self._process is not None:
            for session in closed:
                self._process.close(session)
            self._end_when_idle()

    async def stop(self) -> None:
        """End the process, so that its memory comes back; a later request may start it again."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.wait({starting})
        self._let_go()
        if self._ending:
            await asyncio.wait(self._ending)

    def _took(self, wanted: Sequence[Wanted], levels: int, draft_s: float) -> None:
        self.seconds += draft_s
        sessions = {one.sequence.session for one in wanted}
        # A first proposal reads the prompt as well, which says nothing of the others.
        if levels and sessions <= self._following:
            ratio = draft_s / (levels * self._speed.level_s(len(wanted)))
            self._speed = self._speed.times(1 + _NEWEST_SHARE * (ratio - 1))
        self._following |= sessions

    async def _start(self) -> None:
        try:
            async with asyncio.timeout(_START_LIMIT_S):
                process = await DraftProcess.start(self._order)
                try:
                    self._speed = await _measured(process)
                except BaseException:
                    await process.stop()
                    raise
        except TimeoutError:
            self._failed(WorkerFailed(f"The draft could not be loaded in {_START_LIMIT_S:.0f} s."))
        except EngineError as error:
            self._failed(error)
        else:
            self._process, self.trouble = process, None
            logger.info("the draft runs: %.1f ms a token", 1000 * self.level_s(1))
            self._end_when_idle()
        finally:
            self._starting = None

    async def _opened_at(self, sequences: Sequence[Drafted]) -> DraftProcess:
        """The process, with these sequences open."""
        process = self._process
        if process is None:
            raise WorkerFailed(_ENDED)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        for sequence in sequences:
            if sequence.session not in self._opened:
                self._opened.add(sequence.session)
                await self._answered(
                    process,
                    process.open(
                        sequence.session,
                        sequence.sampling,
                        sequence.prompt_tokens,
                        sequence.capacity_tokens + _SPARE_TOKENS,
                    ),
                )
        return process

    async def _read(self, process: DraftProcess, one: Wanted) -> None:
        """Let the process read all but the newest tokens of a sequence, piece by piece."""
        session = one.sequence.session
        while (end := process.known_tokens(session) + _READ_TOKENS) < len(one.ids):
            await self._answered(process, process.follow(session, one.ids[:end]))

    async def _answered(self, process: DraftProcess, answer: Awaitable[T]) -> T:
        error: EngineError
        try:
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                return await answer
        except TimeoutError:
            error = WorkerFailed(f"The draft did not answer within {_ANSWER_LIMIT_S:.0f} s.")
        except EngineError as failure:
            error = failure
        if self._process is process:  # else it was ended by ourselves
            self._failed(error)
        raise error

    def _failed(self, error: EngineError) -> None:
        """Go on without for a while, and tell it once."""
        self._let_go()
        self.trouble = error
        if isinstance(error, ModelError):  # it will not be another one
            self._not_before_s = math.inf
        else:
            wait_s = _FIRST_BACK_OFF_S * 2.0 ** min(self._failures, _MAX_BACK_OFFS)
            self._not_before_s = self._clock.monotonic_s() + wait_s
        self._failures += 1
        logger.warning("nothing is drafted by a model: %s", error)

    def _let_go(self) -> None:
        process, self._process = self._process, None
        self._opened.clear()
        self._following.clear()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if process is not None:
            ending = asyncio.create_task(process.stop(), name="draft-end")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _end_when_idle(self) -> None:
        if not self._opened and self._idle is None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_s, self._let_go)


async def _measured(process: DraftProcess) -> Speed:
    """By drafting for one and for several sequences of nothing."""
    for number in range(_WARM_UP_ROWS):
        await process.open(number, SamplingParams(), len(_WARM_UP), _SPARE_TOKENS)
    level_s = []
    for rows in (1, _WARM_UP_ROWS):
        asked = [(number, _WARM_UP) for number in range(rows)]
        taken_s = [
            (await process.propose(asked, _WARM_UP_LEVELS)).draft_s for _ in range(_WARM_UP_TIMES)
        ]
        level_s.append(statistics.median(taken_s) / _WARM_UP_LEVELS)
    for number in range(_WARM_UP_ROWS):
        process.close(number)
    row_s = max(0.0, level_s[1] - level_s[0]) / (_WARM_UP_ROWS - 1)
    return Speed(level_s[0] - min(row_s, level_s[0]), row_s)
