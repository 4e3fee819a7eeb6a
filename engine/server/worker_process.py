"""The agent's handle on one worker process: start it, feed it, notice its death, end it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.core.errors import WorkerFailed, error_class
from engine.core.generation import FinishReason, Sampled, TokenLogprobs
from engine.core.ids import SessionId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.protocol.frames import Dtype, Row
from engine.protocol.messages import SequenceMessage
from engine.server.link import AgentSocket, Message, SharedRegions

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """What one forward pass gave.

    `hidden` is `[N, hidden_size]` of the worker's dtype as bytes in shared memory, valid until the
    next `forward`; None at the last stage.
    """

    hidden: memoryview | None
    sampled: tuple[Sampled, ...]
    compute_s: float


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
        self._answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
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
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "engine.server.worker",
                *(str(n) for n in (theirs.fileno(), regions.fd, order.region_bytes, os.getpid())),
                pass_fds=(theirs.fileno(), regions.fd),
                stdin=asyncio.subprocess.DEVNULL,
                # CPU threads that spin between steps would steal the cores of the next stage.
                env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},
            )
        except OSError as error:
            ours.close()
            regions.close()
            raise WorkerFailed(f"The compute process could not be started: {error}.") from error
        finally:
            theirs.close()
        link = await AgentSocket.wrap(ours)
        worker = cls(process, link, regions, on_progress, on_open_failed)
        try:
            await worker._ask(
                {
                    "op": "load",
                    "directory": str(order.directory),
                    "spec": dataclasses.asdict(order.spec),
                    "span": (order.span.start, order.span.end),
                    "dtype": int(order.dtype),
                    "device": order.device,
                    "threads": order.threads,
                }
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
                "sequences": [sequence.model_dump() for sequence in sequences],
            }
        )

    def close_sessions(self, sessions: Sequence[SessionId]) -> None:
        """Free the KV of these sessions."""
        self._link.send({"op": "close", "sessions": list(sessions)})

    async def forward(
        self,
        rows: Sequence[Row],
        ids: npt.NDArray[np.int32],
        hidden: Sequence[bytes | memoryview],
        *,
        dtype: Dtype,
        width: int,
    ) -> ForwardResult:
        """Run one forward pass; one at a time.

        Args:
            rows: Packed rows.
            ids: `[N]`
            hidden: Bytes of the hidden states, row by row, together `[N, width]` of `dtype`;
                empty at the first stage.
            dtype: Of `hidden`.
            width: 0 at the first stage.

        Raises:
            EngineError: The pass failed; the worker lives on unless it is `WorkerFailed`.
        """
        at = 0
        for part in hidden:
            self._regions.to_worker[at : at + len(part)] = part
            at += len(part)
        answer = await self._ask(
            {
                "op": "forward",
                "rows": [(row.session, row.position, row.count, int(row.flags)) for row in rows],
                "ids": ids.tobytes(),
                "dtype": int(dtype),
                "width": width,
            }
        )
        size = answer["hidden_bytes"]
        return ForwardResult(
            self._regions.to_agent[:size] if size else None,
            tuple(_sampled(entry) for entry in answer["sampled"]),
            answer["compute_s"],
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

    async def _ask(self, message: Message) -> Message:
        if self._reader.done():
            raise WorkerFailed(self.epitaph())
        self._answer = asyncio.get_running_loop().create_future()
        self._link.send(message)
        answer = await self._answer
        if answer["op"] == "error":
            raise error_class(answer["code"], WorkerFailed)(answer["message"])
        return answer

    async def _read(self) -> None:
        try:
            while True:
                message = await self._link.receive()
                if message["op"] == "progress":
                    self._on_progress(message["done"], message["total"])
                elif message["op"] == "error" and message["of"] == "open":
                    sessions = tuple(SessionId(session) for session in message["sessions"])
                    self._on_open_failed(sessions, message["code"], message["message"])
                elif not self._answer.done():
                    self._answer.set_result(message)
        except WorkerFailed:
            await self._process.wait()
            if not self._answer.done():
                self._answer.set_exception(WorkerFailed(self.epitaph()))
                self._answer.exception()  # nobody may be waiting; that is fine

    def epitaph(self) -> str:
        """How the process ended, as a sentence."""
        code = self._process.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"The compute process ended unexpectedly ({how}); it is started again."


def _sampled(entry: Any) -> Sampled:
    session, token_id, finish, logprobs = entry
    return Sampled(
        SessionId(session),
        token_id,
        None
        if logprobs is None
        else TokenLogprobs(logprobs[0], tuple((int(i), float(p)) for i, p in logprobs[1])),
        None if finish is None else FinishReason(finish),
    )
