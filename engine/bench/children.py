"""The programs of one measurement, each behind an `engine.bench.host` on its machine."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from engine.core.errors import EngineError

HELLO_LIMIT_S = 60.0
END_LIMIT_S = 20.0
_READ_LIMIT_S = 2.0
_MAX_LINE_BYTES = 256 << 20
_KEPT_BYTES = 4096

T = TypeVar("T")


class BenchFailed(EngineError):
    """A measurement that could not be made."""

    code = "bench_failed"


class OrderFailed(BenchFailed):
    """A program could not do what it was asked, and goes on."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a program runs; equal ids share their cores."""

    id: str
    cores: int


@dataclass(frozen=True, slots=True)
class Program:
    """What a host shall run: `python -m` and these words."""

    words: Sequence[str]
    files: Mapping[str, bytes]
    """Placed in its folder first: relative path → contents."""
    environment: Mapping[str, str]
    talks: bool = False
    """It reads JSON lines and answers with JSON lines."""
    listens_at: tuple[str, int] | None = None
    """Wait for something to accept connections there."""


class Child:
    """One host and its program. Make one with `launch`; `end` it whatever happens."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.machine = Machine("", 0)
        self.free_port = 0
        self.ended: asyncio.Future[BenchFailed] = asyncio.get_running_loop().create_future()
        """Why its program is gone although nobody ended it."""
        self._process = process
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._last: dict[str, Any] | None = None
        self._complaints = b""
        self._listening = asyncio.create_task(self._listen())
        self._readers = [self._listening, asyncio.create_task(self._read())]

    @classmethod
    async def launch(cls, name: str, prefix: Sequence[str], cores: Sequence[int] | None) -> Self:
        """Start the host through `prefix` and confine it to `cores`.

        Raises:
            BenchFailed: The command does not lead to one.
        """
        paths = os.pathsep.join(path for path in sys.path if path)
        try:
            process = await asyncio.create_subprocess_exec(
                *(*prefix, sys.executable, "-m", "engine.bench.host"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_MAX_LINE_BYTES,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is for the bench, which ends them in order
            )
        except OSError as error:
            raise BenchFailed(f"{name} cannot be started: {error}.") from error
        child = cls(name, process)
        try:
            child._order({"op": "hello", "cores": cores})
            hello = (await child.answer("hello", HELLO_LIMIT_S))["hello"]
        except BaseException:
            await child.end(keep=False)
            raise
        child.machine = Machine(hello["machine"], hello["cores"])
        child.free_port = hello["free_port"]
        return child

    async def start(self, program: Program, limit_s: float) -> None:
        """Run the program; with `listens_at`, until it listens.

        Raises:
            BenchFailed: It ended, or did not listen in time.
        """
        files = {name: base64.b64encode(data).decode() for name, data in program.files.items()}
        self._order(
            {
                "op": "start",
                "words": list(program.words),
                "files": files,
                "environment": dict(program.environment),
                "talks": program.talks,
                "listens_at": program.listens_at,
            }
        )
        if program.listens_at is not None:
            await self.answer("up", limit_s)

    async def ask(
        self,
        question: Mapping[str, object],
        limit_s: float,
        on_reached: Callable[[Any], None] | None = None,
    ) -> Any:
        """Send the program a line and return its result.

        Args:
            question: The line.
            limit_s: For each answer.
            on_reached: Hears each `reached` that comes before the result.

        Raises:
            OrderFailed: It could not do it.
            BenchFailed: It ended or took too long.
        """
        self._order({"op": "tell", "line": json.dumps(question)})
        while True:
            answer = await self.answer(("result", "failed", "reached"), limit_s)
            if "reached" in answer:
                assert on_reached is not None, "nobody asked for notices"
                on_reached(answer["reached"])
            elif "failed" in answer:
                raise OrderFailed(f"{self.name}: {answer['failed']}")
            else:
                return answer["result"]

    async def kill(self) -> None:
        """Kill the program with all its children; another one can be started then.

        Raises:
            BenchFailed: The host does not answer.
        """
        self._order({"op": "kill"})
        await self.answer("killed", HELLO_LIMIT_S)

    async def resident_bytes(self) -> dict[str, int]:
        """Resident size of the `program`, of an engine's `workers` and of `others` it started.

        Raises:
            BenchFailed: The host does not answer.
        """
        self._order({"op": "memory"})
        memory: dict[str, int] = (await self.answer("memory", HELLO_LIMIT_S))["memory"]
        return memory

    async def traffic(self) -> dict[str, float]:
        """What has passed the host's network interfaces, see `engine.bench.measured.Traffic`.

        Raises:
            BenchFailed: The host does not answer, or does not count.
        """
        self._order({"op": "traffic"})
        traffic: dict[str, float] = (await self.answer("traffic", HELLO_LIMIT_S))["traffic"]
        return traffic

    async def answer(self, key: str | Sequence[str], limit_s: float) -> dict[str, Any]:
        """The next answer, which must have `key`, or one of them.

        Raises:
            BenchFailed: An error came instead, or the program ended, or it took too long.
        """
        coming = asyncio.ensure_future(self._answers.get())
        try:
            either: set[asyncio.Future[Any]] = {coming, self.ended}
            await asyncio.wait(either, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                answer = coming.result()
                if "error" in answer:
                    raise BenchFailed(f"{self.name}: {answer['error']}")
                keys = {key} if isinstance(key, str) else set(key)
                assert keys & answer.keys(), f"{self.name} answered {list(answer)}, not {key}"
                return answer
        finally:
            coming.cancel()
        if self.ended.done():
            raise self.ended.result()
        raise BenchFailed(f"{self.name} did not answer within {limit_s:.0f} s.")

    async def end(self, *, keep: bool) -> str:
        """End program and host; where its log is and what it said last, if `keep` kept it."""
        self._order({"op": "end", "keep": keep})
        try:
            await asyncio.wait_for(self._process.wait(), END_LIMIT_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        _, unfinished = await asyncio.wait(self._readers, timeout=_READ_LIMIT_S)
        for reader in unfinished:
            reader.cancel()
        if not keep or self._last is None or not self._last["log"]:
            return ""
        return f"{self.name}: {self._last['last'] or 'no complaint'} (log: {self._last['log']})"

    def _order(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it is gone, and `_read` says so
            self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # a prefix command may greet
            if not isinstance(answer, dict):
                continue
            if "ended" in answer:
                self._last = answer["ended"]
                self._give_up(
                    f"{self.name} ended with code {self._last['code']}: "
                    f"{self._last['last'] or 'it said nothing'}; read {self._last['log']}."
                )
            else:
                self._answers.put_nowait(answer)
        await self._process.wait()
        # Its last words may still be under way.
        await asyncio.wait([self._listening], timeout=_READ_LIMIT_S)
        said = self._complaints.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        self._give_up(
            f"{self.name} cannot be reached: the command for its host ended ({said[-1]})."
        )

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_KEPT_BYTES):
            self._complaints = (self._complaints + chunk)[-_KEPT_BYTES:]

    def _give_up(self, text: str) -> None:
        if not self.ended.done():
            self.ended.set_result(BenchFailed(text))


class Children:
    """All programs of a measurement; leaving the context ends them, keeping logs after a failure."""

    def __init__(self, cores: Sequence[int] | None) -> None:
        self._cores = cores
        self._all: list[Child] = []

    async def __aenter__(self) -> Self:
        """Nothing runs yet."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """End them all at once."""
        failed = kind is not None and issubclass(kind, EngineError)
        words = await asyncio.gather(*(child.end(keep=failed) for child in self._all))
        for line in filter(None, words):
            print(line, file=sys.stderr)

    async def launch(self, name: str, prefix: Sequence[str] = ()) -> Child:
        """See `Child.launch`."""
        child = await Child.launch(name, prefix, self._cores)
        self._all.append(child)
        return child

    async def end(self, child: Child) -> None:
        """End one of them before the others."""
        self._all.remove(child)
        await child.end(keep=False)

    async def first(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of `work`, unless one of the programs ends before.

        Raises:
            BenchFailed: One ended, or the work failed.
        """
        task = asyncio.create_task(work)
        ends = {child.ended for child in self._all}
        try:
            either: set[asyncio.Future[Any]] = {task, *ends}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise next(end for end in ends if end.done()).result()
            return task.result()
        finally:
            task.cancel()
