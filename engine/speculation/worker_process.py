"""The agent's handle on the draft's process; loads no torch."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
import logging
import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from engine.core.errors import EngineError, WorkerFailed, error_class
from engine.core.sampling_params import SamplingParams
from engine.models.environment import COMPUTE_ENVIRONMENT
from engine.models.layout import Dtype, ModelFiles
from engine.speculation.tree import TokenTree

logger = logging.getLogger(__name__)

_MAX_LINE_BYTES: Final = 1 << 24
_Answer: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DraftOrder:
    """What the process shall draft with, and for whom."""

    target: ModelFiles
    draft: ModelFiles | Path
    """A smaller sibling, or the folder of a distilled draft."""
    dtype: Dtype = "float32"
    device: str = "cpu"
    threads: int = 0
    """0: torch's own choice."""
    level_s: float = 0.0
    """What a place of a draft shall take at least, for benchmarks."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """What the draft says, of each sequence, and how long it took for all of them."""

    trees: tuple[TokenTree, ...]
    draft_s: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chain that was drawn by the draft's probabilities, and how long that took."""

    ids: tuple[int, ...]
    weights: bytes = field(repr=False)
    """Float16, as rows carry them: of the ids, [N], or whole, [N, V]."""
    draft_s: float


class DraftProcess:
    """One running draft; it answers in the order of asking."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._known: dict[int, list[int]] = {}
        """By sequence: the ids that the process has."""
        self._asked: deque[asyncio.Future[_Answer]] = deque()
        """Not answered yet. Who asked may have stopped waiting; the answer still comes."""
        self._reader = asyncio.create_task(self._read(), name="draft-reader")

    @classmethod
    async def start(cls, order: DraftOrder) -> DraftProcess:
        """Start the process and load the draft.

        Raises:
            EngineError: The draft does not fit the target, cannot be loaded, or the process ended.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "engine.core.child_program", "engine.speculation.worker"),
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_MAX_LINE_BYTES,
                env={**COMPUTE_ENVIRONMENT, **os.environ},
            )
        except OSError as error:
            raise WorkerFailed(f"The draft's process could not be started: {error}.") from error
        draft = cls(process)
        ours = order.draft
        try:
            await draft._ask(
                {
                    "target": _described(order.target),
                    "sibling": _described(ours) if isinstance(ours, ModelFiles) else None,
                    "distilled": str(ours) if isinstance(ours, Path) else None,
                    "dtype": order.dtype,
                    "device": order.device,
                    "threads": order.threads,
                    "level_s": order.level_s,
                }
            )
        except BaseException:
            await draft.stop()
            raise
        return draft

    @property
    def has_ended(self) -> bool:
        """Whether it answers no more."""
        return self._reader.done()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def open(
        self, sequence: int, sampling: SamplingParams, prompt_tokens: int, capacity_tokens: int
    ) -> None:
        """Begin with a sequence; one that is open under this number is replaced.

        Args:
            sequence: Its number.
            sampling: How the target picks its tokens.
            prompt_tokens: Where the answer begins.
            capacity_tokens: Of the sequence, with some hundred to spare for trees.
        """
        self._known[sequence] = []
        await self._ask(
            {
                "op": "open",
                "sequence": sequence,
                "sampling": dataclasses.asdict(sampling),
                "prompt_tokens": prompt_tokens,
                "capacity_tokens": capacity_tokens,
            }
        )

    async def propose(
        self,
        rows: Sequence[tuple[int, Sequence[int]]],
        num_tokens: int,
        *,
        width: int = 1,
        depth: int | None = None,
    ) -> Proposals:
        """What may come next in some sequences; see `engine.speculation.tree.Draft`.

        Args:
            rows: Of each its number and all tokens committed so far, prompt included, and any that
                are taken to be; the next call may take those back.
            num_tokens: The most nodes wanted for each.
            width: Alternatives at each place; 1 gives a chain.
            depth: The most places in a row; None: as the draft finds worth it.

        Raises:
            WorkerFailed: The process ended.
        """
        answer = await self._ask(
            {
                "op": "propose",
                "rows": [self._news_of(sequence, ids) for sequence, ids in rows],
                "num_tokens": num_tokens,
                "width": width,
                "depth": num_tokens if depth is None else depth,
            }
        )
        trees = (TokenTree(tuple(one["ids"]), tuple(one["parents"])) for one in answer["trees"])
        return Proposals(tuple(trees), answer["draft_s"])

    async def draw(
        self, sequence: int, ids: Sequence[int], num_tokens: int, *, whole: bool
    ) -> Drawn:
        """Draw a chain; see `engine.speculation.sampled_chain.ChainSampler`.

        Args:
            sequence: Its number.
            ids: All tokens committed so far, prompt included.
            num_tokens: The most wanted.
            whole: Tell all that each token was drawn by.

        Raises:
            WorkerFailed: The process ended.
        """
        wanted = {"num_tokens": num_tokens, "whole": whole}
        answer = await self._ask({"op": "draw", **self._news_of(sequence, ids), **wanted})
        return Drawn(tuple(answer["ids"]), base64.b64decode(answer["weights"]), answer["draft_s"])

    async def draw_again(self, sequence: int, place: int, target: bytes) -> int | None:
        """Draw what takes the place of a refused token of the last chain.

        Args:
            sequence: Its number.
            place: Of the refused token.
            target: The target's weights there, float16 [V].

        Returns:
            The token; None: the process has drawn no such chain.

        Raises:
            WorkerFailed: The process ended.
        """
        packed = base64.b64encode(target).decode()
        asked = {"op": "draw_again", "sequence": sequence, "place": place, "target": packed}
        id_: int | None = (await self._ask(asked))["id"]
        return id_

    def known_tokens(self, sequence: int) -> int:
        """Of how many tokens of a sequence the process has been told."""
        return len(self._known[sequence])

    async def follow(self, sequence: int, ids: Sequence[int]) -> None:
        """Read what is committed, so that the first proposal need not wait for it.

        Args:
            sequence: Its number.
            ids: All tokens committed so far, or the first of them.

        Raises:
            WorkerFailed: The process ended.
        """
        await self._ask({"op": "follow", **self._news_of(sequence, ids)})

    def close(self, sequence: int) -> None:
        """Forget a sequence; unknown ones are fine."""
        self._known.pop(sequence, None)
        self._ask({"op": "close", "sequence": sequence})

    async def stop(self) -> None:
        """Kill the process and wait for it: it holds nothing that must be saved."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await asyncio.wait({self._reader})
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _news_of(self, sequence: int, ids: Sequence[int]) -> dict[str, Any]:
        """What the process does not know of a sequence yet."""
        known = self._known[sequence]
        position = len(known)
        if known != ids[:position]:
            position = next(
                (at for at, pair in enumerate(zip(known, ids, strict=False)) if pair[0] != pair[1]),
                min(position, len(ids)),
            )
        known[position:] = new = list(ids[position:])
        return {"sequence": sequence, "position": position, "ids": new}

    def _ask(self, message: dict[str, Any]) -> asyncio.Future[_Answer]:
        future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        if self._reader.done():
            _fail(future, WorkerFailed(self._epitaph()))
        else:
            self._asked.append(future)
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        return future

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._take(json.loads(line))
        except (ValueError, LookupError, TypeError) as error:  # no JSON, too long, or unasked for
            logger.error("the draft's process says something that is no answer: %r", error)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        for future in self._asked:
            if not future.done():
                _fail(future, WorkerFailed(self._epitaph()))

    def _take(self, answer: _Answer) -> None:
        future = self._asked[0]
        if not future.done():
            if "error" in answer:
                error = error_class(answer["error"], WorkerFailed)
                _fail(future, error(answer["message"]))
            else:
                future.set_result(answer)
        self._asked.popleft()

    def _epitaph(self) -> str:
        code = self._process.returncode
        return f"The draft's process ended unexpectedly (exit code {code}); nothing is drafted."


def _fail(future: asyncio.Future[_Answer], error: EngineError) -> None:
    future.set_exception(error)
    future.exception()  # nobody may be waiting; that is fine


def _described(files: ModelFiles) -> dict[str, Any]:
    return {
        "directory": str(files.directory),
        "spec": dataclasses.asdict(files.spec),
        "source": files.source,
    }
