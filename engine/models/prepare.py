"""Prepare a model in a child process, so that the agent never waits for a disk or a network.

The child prints JSON lines: `{"progress": …}` as often as it likes, then one `{"ready": …}` or
`{"error": {"code", "message"}}`. With `--turns` it also prints `{"took": BYTES}` as it downloads, and
waits each time for a line on standard input: how many bytes may come before it asks again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from engine.core.errors import EngineError, ModelError, error_class
from engine.core.lifetime import die_with_parent
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.localapi.schema import Progress
from engine.models.layout import Dtype, ModelFiles
from engine.models.storage import NO_LIMITS, FetchLimits
from engine.models.turns import Turns
from engine.models.way_out import environment

_log = logging.getLogger(__name__)

_PROGRESS_EVERY_S = 0.1
_MAX_LINE_BYTES = 1 << 20
_KEPT_LOG_BYTES = 4096


async def prepare(
    source: str,
    models_dir: Path,
    dtype: Dtype,
    span: Span | None,
    on_progress: Callable[[Progress], None],
    *,
    verify: bool = False,
    limits: FetchLimits = NO_LIMITS,
    take: Callable[[int], Awaitable[int]] | None = None,
) -> ModelFiles:
    """Resolve a model, and fetch the weights of `span` (None: no weights), in a child process.

    Cancelling kills the child; what it had fetched of a file is used by the next call. `take` waits
    for the turn of so many bytes on the line, and says how many may come before it is asked again.

    Raises:
        EngineError: What `resolve` and `fetch_weights` raise, or a `ModelError` if the child died.
    """
    arguments = ["--source", source, "--models-dir", str(models_dir), "--dtype", dtype]
    arguments += ["--parent", str(os.getpid())]
    if span is not None:
        arguments += ["--blocks", f"{span.start}:{span.end}"]
    if verify:
        arguments.append("--verify")
    arguments += ["--limits", json.dumps(_limits_to_json(limits))]
    if take is not None:
        arguments.append("--turns")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engine.models.prepare", *arguments),
        stdin=asyncio.subprocess.DEVNULL if take is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        | await asyncio.to_thread(environment, limits.proxy, limits.ca_file, models_dir),
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
        return _files_from_json(answer["ready"])
    if "error" in answer:
        raise error_class(answer["error"].get("code"), ModelError)(
            answer["error"].get("message", "")
        )
    _log.error("The process that prepares models ended with %s: %s", child.returncode, said)
    raise ModelError(
        f"Preparing {source} ended unexpectedly (exit code {child.returncode}); see the log, and "
        "try again."
    )


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


def _files_to_json(files: ModelFiles) -> dict[str, Any]:
    return dataclasses.asdict(files) | {"directory": str(files.directory)}


def _files_from_json(value: dict[str, Any]) -> ModelFiles:
    spec = value["spec"] | {"eos_token_ids": tuple(value["spec"]["eos_token_ids"])}
    return ModelFiles(
        ModelSpec(**spec), Path(value["directory"]), value["source"], value["revision"]
    )


def main(arguments: list[str] | None = None) -> int:
    """The child: see the module's docstring. Exit code 0, or 1 after an error line."""
    parser = argparse.ArgumentParser(prog="python -m engine.models.prepare", description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--models-dir", required=True, type=Path)
    parser.add_argument("--dtype", required=True, choices=get_args(Dtype))
    parser.add_argument("--blocks", type=_span, help="fetch the weights of blocks A:B")
    parser.add_argument("--limits", type=_limits, default=FetchLimits())
    parser.add_argument("--turns", action="store_true", help="take turns, see above")
    parser.add_argument("--verify", action="store_true", help="hash all files again")
    parser.add_argument("--parent", type=int, help="end when this process ends")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        die_with_parent(options.parent)
    # Whatever libraries print must not come between our lines.
    with _own_stdout() as print_line:
        try:
            if options.turns:
                turns = Turns(lambda num_bytes: _ask(print_line, num_bytes))
                options.limits = dataclasses.replace(options.limits, take=turns.take)
            files = _prepare(options, _throttled(print_line))
        except EngineError as error:
            print_line({"error": {"code": error.code, "message": str(error)}})
            return 1
        print_line({"ready": _files_to_json(files)})
        return 0


def _prepare(options: argparse.Namespace, on_progress: Callable[[Progress], None]) -> ModelFiles:
    # Read when the Hub's client is imported.
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    # A second client for some of the files, which would take no turns on the line.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    from engine.models.sources import fetch_weights, resolve

    files = resolve(
        options.source, options.models_dir, options.dtype, on_progress, limits=options.limits
    )
    if options.blocks is not None:
        fetch_weights(
            files,
            options.blocks,
            on_progress,
            models_dir=options.models_dir,
            verify=options.verify,
            limits=options.limits,
        )
    return files


def _throttled(print_line: Callable[[dict[str, Any]], None]) -> Callable[[Progress], None]:
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
def _own_stdout() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Keep the real standard output for our lines; prints of others go to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        os.dup2(2, 1)

        def print_line(message: dict[str, Any]) -> None:
            lines.write(json.dumps(message) + "\n")
            lines.flush()

        yield print_line


def _ask(print_line: Callable[[dict[str, Any]], None], num_bytes: int) -> int:
    print_line({"took": num_bytes})
    return int(sys.stdin.readline() or 0)


def _limits_to_json(limits: FetchLimits) -> dict[str, Any]:
    values = {field.name: getattr(limits, field.name) for field in dataclasses.fields(limits)}
    del values["take"]  # which is the child's own affair
    del values["proxy"]  # in the environment: everybody can read a process's arguments
    return values


def _limits(text: str) -> FetchLimits:
    return FetchLimits(**json.loads(text))


def _span(text: str) -> Span:
    start, _, end = text.partition(":")
    return Span(int(start), int(end))


if __name__ == "__main__":
    sys.exit(main())
