"""What waits for disks and networks does so in a child process, so that the agent never waits for them.

The child prints JSON lines: `{"progress": …}` as often as it likes, then one `{"ready": …}` or
`{"error": {"code", "message"}}`. With `--turns` it also prints `{"took": BYTES}` as it downloads, and
waits each time for a line on standard input: how many bytes may come before it asks again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from engine.core.errors import EngineError, error_class
from engine.core.lifetime import die_with_parent
from engine.localapi.schema import Progress
from engine.models.turns import Take, Turns, at_once

_log = logging.getLogger(__name__)

_PROGRESS_EVERY_S = 0.1
_MAX_LINE_BYTES = 1 << 20
_KEPT_LOG_BYTES = 4096

PrintLine = Callable[[dict[str, Any]], None]


async def run_child(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    on_progress: Callable[[Progress], None],
    take: Callable[[int], Awaitable[int]] | None,
    died: EngineError,
) -> Any:
    """Run `python -m module` and return what it says in `ready`. Cancelling kills it.

    Args:
        module: Whose `main` uses `answering`.
        arguments: For it.
        environment: Added to ours.
        on_progress: Hears how far it is.
        take: Waits for the turn of so many bytes on the line, and says how many may come before it is
            asked again; None: there is no line to share.
        died: Raised when it ends without an answer; its class stands for codes that are not known.

    Raises:
        EngineError: What the child has raised.
    """
    words = [*arguments, "--parent", str(os.getpid()), *([] if take is None else ["--turns"])]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words),
        stdin=asyncio.subprocess.DEVNULL if take is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        | dict(environment),
    )
    assert child.stdout is not None
    assert child.stderr is not None
    log = asyncio.ensure_future(_drain(child.stderr))
    try:
        answer: dict[str, Any] = {}
        async for line in child.stdout:
            message = _parse(line)
            if "took" in message:
                assert take is not None, "nobody told it to ask"
                assert child.stdin is not None
                granted_bytes = await take(int(message["took"]))
                with contextlib.suppress(ConnectionError):  # it has died, and `wait` says so
                    child.stdin.write(b"%d\n" % granted_bytes)
                    await child.stdin.drain()
            elif "progress" in message:
                with contextlib.suppress(ValidationError):
                    on_progress(Progress.model_validate(message["progress"]))
            else:
                answer = message
        await child.wait()
        said = await log
    finally:
        log.cancel()
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await asyncio.shield(child.wait())
    if "ready" in answer:
        return answer["ready"]
    if "error" in answer:
        raise error_class(answer["error"].get("code"), type(died))(
            answer["error"].get("message", "")
        )
    _log.error("The process of %s ended with %s: %s", module, child.returncode, said)
    raise died


async def _drain(stream: asyncio.StreamReader) -> str:
    """Read all, so that the child never blocks; keep the end for the log."""
    kept = b""
    while chunk := await stream.read(65536):
        kept = (kept + chunk)[-_KEPT_LOG_BYTES:]
    return kept.decode(errors="replace").strip()


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


# In the child


def child_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with what every such child is told."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--turns", action="store_true", help="take turns, see engine.models.child")
    parser.add_argument("--parent", type=int, help="end when this process ends")
    return parser


def answering(
    options: argparse.Namespace, work: Callable[[Callable[[Progress], None], Take], Any]
) -> int:
    """Do the child's work and print its answer; exit code 0, or 1 after an error line.

    Args:
        options: Of a `child_parser`.
        work: Takes where to tell how far it is, and turns on the line; returns what goes into `ready`.
    """
    if options.parent is not None:
        die_with_parent(options.parent)
    # Read when the Hub's client is imported.
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    # A second client for some of the files, which would take no turns on the line.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    # Whatever libraries print must not come between our lines.
    with own_stdout() as print_line:
        take = at_once
        if options.turns:
            take = Turns(lambda num_bytes: _ask(print_line, num_bytes)).take
        try:
            ready = work(_throttled(print_line), take)
        except EngineError as error:
            print_line({"error": {"code": error.code, "message": str(error)}})
            return 1
        print_line({"ready": ready})
        return 0


def _throttled(print_line: PrintLine) -> Callable[[Progress], None]:
    """Progress that is worth a line: something new, the end, or after a while."""
    last_what, last_s = "", 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal last_what, last_s
        now_s = time.monotonic()
        finished = progress.total > 0 and progress.done >= progress.total
        if finished or progress.what != last_what or now_s - last_s >= _PROGRESS_EVERY_S:
            last_what, last_s = progress.what, now_s
            print_line({"progress": progress.model_dump()})

    return on_progress


@contextlib.contextmanager
def own_stdout() -> Iterator[PrintLine]:
    """Keep the real standard output for our lines; prints of others go to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        os.dup2(2, 1)

        def print_line(message: dict[str, Any]) -> None:
            lines.write(json.dumps(message) + "\n")
            lines.flush()

        yield print_line


def _ask(print_line: PrintLine, num_bytes: int) -> int:
    print_line({"took": num_bytes})
    return int(sys.stdin.readline() or 0)
