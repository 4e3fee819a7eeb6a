"""The agent's handle on one worker process: start it, feed it, notice its death, end it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import psutil

from engine.config import StageEmulation
from engine.core.errors import EngineError, WorkerFailed, error_class
from engine.core.generation import CompactionUse, FinishReason, ReplicaUse, Sampled, TokenLogprobs
from engine.core.ids import SessionId
from engine.core.kv_room import KvDtype
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.models.environment import COMPUTE_ENVIRONMENT
from engine.protocol.frames import Dtype
from engine.protocol.messages import SequenceMessage
from engine.protocol.rows import Row
from engine.server.link import SLOTS, AgentSocket, Message, SharedRegions
from engine.server.pruner_facts import PrunerFacts, levels_of
from engine.server.replica_order import ReplicaOrder

logger = logging.getLogger(__name__)

_MODULE = "engine.server.worker"
_FOR_SESSIONS = frozenset({"open", "copy", "keep"})
"""Messages that are answered only when they fail, and then by the end of the sessions they name."""
_ANSWERED = frozenset({"load", "forward"})
"""Messages that are answered once each, in order, be it with an error."""


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """What a worker shall hold, and how."""

    directory: Path
    spec: ModelSpec
    span: Span
    dtype: Dtype
    device: str
    threads: int
    """0: torch's own choice."""
    region_bytes: int
    """Size of each shared region: the hidden states of the largest forward pass."""
    gpu_uuid: str | None = None
    """The one GPU that the worker may see; None: it sees what we do."""
    kv_dtype: KvDtype = "auto"
    kv_budget_bytes: int = 1 << 30
    """Where the blocks compute."""
    emulate: StageEmulation | None = None
    replica: ReplicaOrder | None = None
    """The draft to hold where this is the last stage and somebody asks for it."""


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """What one forward pass gave.

    `hidden` is `[N, hidden_size]` of the worker's dtype as bytes in shared memory, valid until the
    pass after the next one is submitted; None at the last stage.
    """

    hidden: memoryview | None
    sampled: tuple[Sampled, ...]
    compute_s: float
    cpu_s: float
    """Processor time of all the worker's threads."""
    replica: ReplicaUse
    compaction: CompactionUse
    """In this pass, and since the answer to the last one."""
    kept: tuple[tuple[bool, ...], ...] = ()
    """Of each row's draft what may be sent on, see `Row.kept`; empty when nothing was judged."""
    judged_s: float = 0.0
    """What judging took."""


_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Asked(Generic[_Answer]):
    """A message that the worker has not answered yet."""

    future: asyncio.Future[_Answer]
    read: Callable[[Message], _Answer]

    def answer(self, message: Message) -> None:
        if message["op"] == "error":
            self.fail(error_class(message["code"], WorkerFailed)(message["message"]))
        elif not self.future.done():
            self.future.set_result(self.read(message))

    def fail(self, error: EngineError) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # nobody may be waiting; that is fine


class WorkerProcess:
    """One running worker with its stage loaded."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        link: AgentSocket,
        regions: SharedRegions,
        on_progress: Callable[[float, float], None],
        on_open_failed: Callable[[tuple[SessionId, ...], str, str], None],
    ) -> None:
        self._process = process
        self._link = link
        self._regions = regions
        self._on_progress = on_progress
        self._on_open_failed = on_open_failed
        self._asked: deque[_Asked[Any]] = deque()
        """Not answered yet; the worker answers in the order of asking."""
        self._next_slot = 0
        self.pruners: tuple[PrunerFacts, ...] = ()
        """What can judge drafts, if the stage is a first one."""
        self._reader = asyncio.create_task(self._read(), name="worker-reader")

    @classmethod
    async def start(
        cls,
        order: LoadOrder,
        *,
        on_progress: Callable[[float, float], None],
        on_open_failed: Callable[[tuple[SessionId, ...], str, str], None],
    ) -> WorkerProcess:
        """Start a worker and load its stage.

        Args:
            order: What to hold.
            on_progress: Called with (done, total) tensors while loading.
            on_open_failed: Called when a session found no memory after all: (sessions, code, text).

        Raises:
            EngineError: The model cannot be loaded, or the process ended.
        """
        ours, theirs = socket.socketpair()
        regions = SharedRegions.create(order.region_bytes)
        link = await AgentSocket.wrap(ours)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "engine.core.child_program", _MODULE),
                *(str(n) for n in (theirs.fileno(), regions.fd, order.region_bytes, os.getpid())),
                pass_fds=(theirs.fileno(), regions.fd),
                stdin=asyncio.subprocess.DEVNULL,
                env={**COMPUTE_ENVIRONMENT, **os.environ, **_visible(order)},
            )
        except BaseException as error:
            link.close()
            regions.close()
            if isinstance(error, OSError):
                raise WorkerFailed(f"The compute process could not be started: {error}.") from error
            raise
        finally:
            theirs.close()
        worker = cls(process, link, regions, on_progress, on_open_failed)
        try:
            worker.pruners = await worker._ask(
                {
                    "op": "load",
                    "directory": str(order.directory),
                    "spec": dataclasses.asdict(order.spec),
                    "span": (order.span.start, order.span.end),
                    "dtype": int(order.dtype),
                    "device": "cuda" if order.gpu_uuid else order.device,
                    "threads": order.threads,
                    "kv_dtype": order.kv_dtype,
                    "kv_budget_bytes": order.kv_budget_bytes,
                    "emulate": order.emulate.model_dump() if order.emulate else None,
                    "replica": order.replica.described() if order.replica else None,
                },
                _pruners,
            )
        except BaseException:
            await worker.stop()
            raise
        return worker

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def open(self, span: Span, sequences: Sequence[SequenceMessage]) -> None:
        """Make KV room; a failure comes through `on_open_failed`."""
        self._link.send(
            {
                "op": "open",
                "span": (span.start, span.end),
                "sequences": [
                    sequence.model_dump(
                        exclude={"prefix_digests", "fork_of", "fork_tokens", "prune_threshold"}
                    )
                    for sequence in sequences
                ],
            }
        )

    def copy_prefix(self, session: SessionId, source: SessionId, tokens: int) -> None:
        """Let a session begin with what another one has computed; fails as `open` does."""
        copy = {"session": session, "source": source, "tokens": tokens}
        self._link.send({"op": "copy", "sequences": [copy]})

    def keep_prefix(self, session: SessionId, tokens: int) -> None:
        """Hold on to the beginning of a session that has ended, to copy from; fails as `open` does."""
        self._link.send({"op": "keep", "sequences": [{"session": session, "tokens": tokens}]})

    def close_sessions(self, sessions: Sequence[SessionId]) -> None:
        """Free the KV of these sessions."""
        self._link.send({"op": "close", "sessions": list(sessions)})

    @property
    def num_passes(self) -> int:
        """Forward passes that are under way, `link.SLOTS` at most."""
        return len(self._asked)

    def submit(
        self,
        rows: Sequence[Row],
        ids: npt.NDArray[np.int32],
        hidden: Iterable[bytes | memoryview],
        *,
        dtype: Dtype,
        width: int,
        thresholds: Sequence[float] = (),
    ) -> asyncio.Future[ForwardResult]:
        """Begin a forward pass; passes run one after another in the order of submission.

        Args:
            rows: Packed rows.
            ids: `[N]`
            hidden: Bytes of the hidden states, row by row, together `[N, width]` of `dtype`;
                empty at the first stage.
            dtype: Of `hidden`.
            width: 0 at the first stage.
            thresholds: See `Stage.forward`.

        Returns:
            To be awaited at once or later: what the pass gives. It raises `EngineError` when the
            pass failed; the worker lives on unless it is `WorkerFailed`.
        """
        assert self.num_passes < SLOTS, "every slot is in use"
        slot, self._next_slot = self._next_slot, (self._next_slot + 1) % SLOTS
        at = 0
        for part in hidden:
            self._regions.to_worker[slot][at : at + len(part)] = part
            at += len(part)
        return self._ask(
            {
                "op": "forward",
                "slot": slot,
                "rows": [
                    (
                        row.session,
                        row.position,
                        row.count,
                        int(row.flags),
                        row.parents,
                        row.accepted,
                        row.mode.value,
                        row.weights,
                        row.kept,
                    )
                    for row in rows
                ],
                "ids": ids.tobytes(),
                "dtype": int(dtype),
                "width": width,
                "thresholds": list(thresholds),
            },
            partial(self._result, self._regions.to_agent[slot]),
        )

    async def wait_dead(self) -> None:
        """Return when the worker has ended by itself."""
        await asyncio.shield(self._reader)

    async def stop(self) -> None:
        """Kill the worker and wait for it: it holds nothing that must be saved."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        self._link.close()
        self._regions.close()

    @staticmethod
    def _result(region: memoryview, answer: Message) -> ForwardResult:
        size = answer["hidden_bytes"]
        return ForwardResult(
            region[:size] if size else None,
            tuple(_sampled(entry) for entry in answer["sampled"]),
            answer["compute_s"],
            answer["cpu_s"],
            ReplicaUse(*answer["replica"]),
            CompactionUse(*answer["compaction"]),
            tuple(map(tuple, answer["kept"])),
            answer["judged_s"],
        )

    def _ask(self, message: Message, read: Callable[[Message], _Answer]) -> asyncio.Future[_Answer]:
        asked = _Asked(asyncio.get_running_loop().create_future(), read)
        if self._reader.done():
            asked.fail(WorkerFailed(self.epitaph()))
        else:
            self._asked.append(asked)
            self._link.send(message)
        return asked.future

    async def _read(self) -> None:
        try:
            while True:
                message = await self._link.receive()
                is_error = message["op"] == "error"
                if message["op"] == "progress":
                    self._on_progress(message["done"], message["total"])
                elif is_error and message["of"] in _FOR_SESSIONS:
                    sessions = tuple(SessionId(session) for session in message["sessions"])
                    self._on_open_failed(sessions, message["code"], message["message"])
                elif is_error and message["of"] not in _ANSWERED:
                    logger.error("the compute process failed: %s", message["message"])
                    raise WorkerFailed(message["message"])
                else:
                    self._asked.popleft().answer(message)
        except WorkerFailed:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            while self._asked:
                self._asked.popleft().fail(WorkerFailed(self.epitaph()))

    def epitaph(self) -> str:
        """How the process ended, as a sentence."""
        code = self._process.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"The compute process ended unexpectedly ({how}); try again."


def worker_pids() -> tuple[int, ...]:
    """The workers of this process that run now, those that still load too; blocks for a moment."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has ended
            if _MODULE in child.cmdline():
                found.append(child.pid)
    return tuple(found)


def _pruners(answer: Message) -> tuple[PrunerFacts, ...]:
    for text in answer["refused"]:
        logger.warning("%s", text)
    return tuple(
        PrunerFacts(depth, tree_s, levels_of(measured))
        for depth, tree_s, measured in answer["pruners"]
    )


def _sampled(entry: Any) -> Sampled:
    session, token_id, finish, logprobs, accepted, path_logprobs, refusal = entry
    return Sampled(
        SessionId(session),
        token_id,
        None if logprobs is None else _logprobs(logprobs),
        None if finish is None else FinishReason(finish),
        accepted,
        tuple(map(_logprobs, path_logprobs)),
        refusal,
    )


def _logprobs(entry: Any) -> TokenLogprobs:
    logprob, top = entry
    return TokenLogprobs(logprob, tuple((int(i), float(p)) for i, p in top))


def _visible(order: LoadOrder) -> dict[str, str]:
    """Hides GPUs that the worker shall not use, on which CUDA might otherwise leave a context."""
    if order.device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    return {} if order.gpu_uuid is None else {"CUDA_VISIBLE_DEVICES": order.gpu_uuid}
