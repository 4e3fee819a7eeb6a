"""A child that measures and talks in JSON lines: started, heard, and ended whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

from pydantic import ValidationError

from engine.core.errors import WorkerFailed
from engine.models.environment import COMPUTE_ENVIRONMENT

_logger = logging.getLogger(__name__)

_MAX_LINE_BYTES: Final = 4 << 20
_KEPT_LOG_BYTES: Final = 4096
_SILENCE_LIMIT_S: Final = 120.0
"""Loading libraries from a cold disk takes tens of seconds, and so does a pass of a huge model."""


class MeasuringProcess:
    """Its lines, both ways."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._input, self._output = child.stdin, child.stdout

    def say(self, line: str) -> None:
        """Send a line."""
        self._input.write(line.encode() + b"\n")

    def say_no_more(self) -> None:
        """Close its input, at which it ends."""
        self._input.close()

    async def line(self) -> dict[str, Any]:
        """Its next line.

        Raises:
            EOFError: It has ended.
            TimeoutError: It hangs.
        """
        async with asyncio.timeout(_SILENCE_LIMIT_S):
            line = await self._output.readline()
        if not line:
            raise EOFError
        message = json.loads(line)
        return message if isinstance(message, dict) else {}


@contextlib.asynccontextmanager
async def measuring_process(module: str) -> AsyncIterator[MeasuringProcess]:
    """Run a module as a child that is gone when the block ends; cancelling ends it at once.

    Args:
        module: With a `main` that takes our process id as its argument.

    Raises:
        WorkerFailed: In the block, it ended, hung or talked nonsense.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engine.core.child_program", module, str(os.getpid())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        # As the worker has it, which these numbers are to describe.
        env={**COMPUTE_ENVIRONMENT, **os.environ}
        | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert child.stderr is not None
    log = asyncio.ensure_future(_drain(child.stderr))
    try:
        yield MeasuringProcess(child)
    except TimeoutError as error:
        raise WorkerFailed(
            f"The process that measures has said nothing for {_SILENCE_LIMIT_S:.0f} s, so it was "
            "ended; run `shoal doctor`."
        ) from error
    except (EOFError, ValidationError, OSError) as error:
        await child.wait() if isinstance(error, EOFError) else None
        said = await asyncio.wait_for(log, 1.0) if child.returncode is not None else ""
        _logger.error("the measuring process ended with %s: %s", child.returncode, said)
        raise WorkerFailed(
            f"The process that measures ended unexpectedly (exit code {child.returncode}); "
            "see the log, and run `shoal doctor`."
        ) from error
    finally:
        log.cancel()
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await asyncio.shield(child.wait())


async def _drain(stream: asyncio.StreamReader) -> str:
    """Read all, so that the child never blocks; keep the end for the log."""
    kept = b""
    while chunk := await stream.read(65536):
        kept = (kept + chunk)[-_KEPT_LOG_BYTES:]
    return kept.decode(errors="replace").strip()
