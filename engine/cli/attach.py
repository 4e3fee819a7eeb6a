"""Getting at an engine: the one that runs, or one of our own that ends with us."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from engine.cli.engine_arguments import passed_on
from engine.cli.terminal import ProgressLine, describe, say
from engine.core.errors import EngineError
from engine.localapi.client import ApiClient, EventLines
from engine.localapi.launch import EngineFailed, EngineProcess, start_engine
from engine.localapi.running import Home, find_running
from engine.localapi.schema import EngineEvent, EngineState, EngineStatus, ReadyFile

READY_LIMIT_S: Final = 180.0
"""Loading libraries from a cold disk takes tens of seconds; this is beyond doubt."""
ROUTE_LIMIT_S: Final = 120.0
"""How long an engine that has finished starting may be without a route through the model."""
_END_LIMIT_S: Final = 15.0
_PING_LIMIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Attached:
    """An engine that answers."""

    client: ApiClient
    ready: ReadyFile


def running_engine(home: Home) -> Attached:
    """The engine that runs on `home`.

    Raises:
        EngineError: None runs.
    """
    ready = find_running(home)
    if ready is None:
        raise EngineError(
            f"No engine runs here (its files would be in {home.state_dir}); start one with `shoal` "
            "or `shoal engine`."
        )
    return Attached(ApiClient.of(ready), ready)


@contextmanager
def attached(args: argparse.Namespace) -> Iterator[Attached]:
    """The running engine, else one that is started now and ends with the block.

    It can answer when the block begins: a route covers the whole model.

    Args:
        args: With the engine's arguments (`add_engine_arguments`).

    Raises:
        EngineError: It cannot be started, or finds no route.
    """
    home = Home.from_environment()
    words = passed_on(args)
    if find_running(home) is not None:
        engine = running_engine(home)
        if words:
            say(f"An engine already runs here, so {' '.join(words)} has no effect.")
        with ProgressLine() as line:
            _wait_for_route(engine.client, line, process=None, lease=False).close()
        yield engine
        return
    process = start_engine(words, home)
    try:
        with ProgressLine() as line:
            line.show("Starting the engine")
            ready = process.wait_ready(READY_LIMIT_S)
            client = ApiClient.of(ready)
            states = _wait_for_route(client, line, process=process, lease=True)
        try:
            yield Attached(client, ready)
        finally:
            states.close()
    finally:
        process.end(_END_LIMIT_S)


class _States:
    """The engine's states as they come, read by a thread; holds the lease while open."""

    def __init__(self, client: ApiClient, *, lease: bool) -> None:
        path = "/shoal/v1/events?lease=1" if lease else "/shoal/v1/events"
        self._lines: EventLines = client.stream("GET", path, silence_s=_PING_LIMIT_S)
        self._changed = threading.Condition()
        self._latest: EngineStatus | None = None
        self._error: EngineError | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> EngineStatus | None:
        """The latest state, as soon as there is one; None when nothing came in time.

        Raises:
            EngineError: The stream has broken.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._latest or self._error, timeout_s)
            if self._error is not None:
                raise self._error
            return self._latest

    def close(self) -> None:
        """Give the lease up."""
        self._lines.hang_up()
        self._thread.join()
        self._lines.close()

    def _read(self) -> None:
        error: EngineError = EngineError("The engine has ended its event stream; see its log.")
        try:
            for line in self._lines:
                event = EngineEvent.model_validate_json(line)
                with self._changed:
                    self._latest = event.status or self._latest
                    self._changed.notify_all()
        except EngineError as broken:
            error = broken
        except ValidationError:
            error = EngineError(
                "The engine sent a state that this version does not know; update Shoal."
            )
        with self._changed:
            self._error = error
            self._changed.notify_all()


def _wait_for_route(
    client: ApiClient, line: ProgressLine, *, process: EngineProcess | None, lease: bool
) -> _States:
    states = _States(client, lease=lease)
    try:
        idle_since_s = time.monotonic()
        while True:
            if process is not None and process.process.poll() is not None:
                raise EngineFailed(process.failure())
            status = states.wait(timeout_s=0.5)
            if status is None:
                continue
            if status.can_chat:
                return states
            if status.state is EngineState.ERROR:
                raise EngineFailed(status.reason or "The engine cannot run; see its log.")
            if status.state is EngineState.YIELDING:
                raise EngineFailed(f"{status.reason} Try again later, or change the settings.")
            if status.state in (EngineState.PAUSED, EngineState.DRAINING):
                raise EngineFailed(f"{status.reason or 'The engine is paused.'} (`shoal resume`)")
            now_s = time.monotonic()
            if status.state is EngineState.STARTING:
                idle_since_s = now_s
            elif now_s - idle_since_s > ROUTE_LIMIT_S:
                raise EngineFailed(
                    status.reason
                    or "The stages of the swarm do not cover the whole model; wait for more, or "
                    "hold more blocks here."
                )
            line.show(*describe(status))
            time.sleep(0.1)
    except BaseException:
        states.close()
        raise
