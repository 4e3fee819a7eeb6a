"""Prepare a model in a child process; see `engine.models.child`."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

from engine.core.errors import ModelError
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.localapi.schema import Progress
from engine.models.child import answering, child_parser, run_child
from engine.models.layout import Dtype, ModelFiles
from engine.models.storage import NO_LIMITS, FetchLimits
from engine.models.turns import Take
from engine.models.way_out import environment

_MODULE = "engine.models.prepare"


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
    if span is not None:
        arguments += ["--blocks", f"{span.start}:{span.end}"]
    if verify:
        arguments.append("--verify")
    ready = await run_child(
        _MODULE,
        [*arguments, "--limits", json.dumps(_limits_to_json(limits))],
        environment=await asyncio.to_thread(environment, limits.proxy, limits.ca_file, models_dir),
        on_progress=on_progress,
        take=take,
        died=ModelError(f"Preparing {source} ended unexpectedly; see the log, and try again."),
    )
    return _files_from_json(ready)


def _files_to_json(files: ModelFiles) -> dict[str, Any]:
    return dataclasses.asdict(files) | {"directory": str(files.directory)}


def _files_from_json(value: dict[str, Any]) -> ModelFiles:
    spec = value["spec"] | {"eos_token_ids": tuple(value["spec"]["eos_token_ids"])}
    return ModelFiles(
        ModelSpec(**spec), Path(value["directory"]), value["source"], value["revision"]
    )


def main(arguments: list[str] | None = None) -> int:
    """The child. Exit code 0, or 1 after an error line."""
    parser = child_parser(_MODULE, __doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--models-dir", required=True, type=Path)
    parser.add_argument("--dtype", required=True, choices=get_args(Dtype))
    parser.add_argument("--blocks", type=_span, help="fetch the weights of blocks A:B")
    parser.add_argument("--limits", type=_limits, default=FetchLimits())
    parser.add_argument("--verify", action="store_true", help="hash all files again")
    options = parser.parse_args(arguments)
    return answering(options, lambda show, take: _files_to_json(_prepare(options, show, take)))


def _prepare(
    options: argparse.Namespace, on_progress: Callable[[Progress], None], take: Take
) -> ModelFiles:
    from engine.models.sources import fetch_weights, resolve

    limits = dataclasses.replace(options.limits, take=take)
    files = resolve(options.source, options.models_dir, options.dtype, on_progress, limits=limits)
    if options.blocks is not None:
        fetch_weights(
            files,
            options.blocks,
            on_progress,
            models_dir=options.models_dir,
            verify=options.verify,
            limits=limits,
        )
    return files


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
