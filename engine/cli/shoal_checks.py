"""Checks of Shoal's own things: folders, disk, settings, port, the running engine."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine import config
from engine.cli.checks import Check, fail, ok, warn
from engine.cli.quantities import shown_bytes
from engine.core.errors import EngineError
from engine.core.reach import Reach
from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from engine.localapi.schema import EngineState, EngineStatus

_LEAST_FREE_BYTES: Final = 1 << 30
"""The starter model takes about 0.9 GiB in both number formats."""
_GOOD_FREE_BYTES: Final = 10 << 30
_CALL_LIMIT_S: Final = 5.0


def folders(home: Home) -> Sequence[Check]:
    """Whether we may write where we keep our files."""
    wanted = (home.config_dir, home.data_dir, home.state_dir, home.models_dir)
    for folder in wanted:
        try:
            # Looking must change nothing: a folder that is yet to be made is tried where it will be.
            with tempfile.TemporaryFile(dir=_nearest_existing(folder)):
                pass
        except OSError as error:
            advice = "Correct the folder's owner and rights, or set SHOAL_HOME to another folder."
            return [fail("Folders", f"{folder} cannot be written ({error.strerror})", advice)]
    return [ok("Folders", ", ".join(dict.fromkeys(map(str, wanted))))]


def disk(home: Home) -> Sequence[Check]:
    """Room for models."""
    folder = _nearest_existing(home.models_dir)
    free_bytes = shutil.disk_usage(folder).free
    found = f"{shown_bytes(free_bytes)} free for models in {home.models_dir}"
    advice = "Free some space, or point SHOAL_MODELS at a larger disk."
    if free_bytes < _LEAST_FREE_BYTES:
        return [fail("Disk", found, advice)]
    if free_bytes < _GOOD_FREE_BYTES:
        return [warn("Disk", found, advice)]
    return [ok("Disk", found)]


def settings(home: Home) -> Sequence[Check]:
    """Whether the settings file makes sense."""
    try:
        config.load(home.settings_file)
    except EngineError as error:
        return [fail("Settings", str(error), f"Correct or remove {home.settings_file}.")]
    exists = home.settings_file.exists()
    return [ok("Settings", str(home.settings_file) if exists else "the defaults")]


def port(home: Home) -> Sequence[Check]:
    """Whether the API's port is free, unless our own engine holds it."""
    try:
        wanted = config.load(home.settings_file).api.port
    except EngineError:
        wanted = 0  # `settings` has told
    if find_running(home) is not None:
        return [ok("Port", "held by the running engine")]
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            advice = "Choose another one with --port or `api.port`, or stop what holds it."
            return [fail("Port", f"{wanted} cannot be used ({error.strerror})", advice)]
    return [ok("Port", f"{wanted} is free" if wanted else "a free one is chosen at each start")]


def engine(home: Home) -> Sequence[Check]:
    """The running engine, if there is one."""
    ready = find_running(home)
    if ready is None:
        return [ok("Engine", "none runs")]
    try:
        answer = ApiClient.of(ready).call("GET", "/shoal/v1/status", timeout_s=_CALL_LIMIT_S)
        status = EngineStatus.model_validate(answer)
    except (EngineError, ValueError) as error:
        advice = f"End process {ready.pid} and start Shoal again."
        return [fail("Engine", f"process {ready.pid} does not answer: {error}", advice)]
    found = f"process {ready.pid} at {ready.url}: {status.state}"
    if status.state in (EngineState.ERROR, EngineState.OFFLINE):
        return [warn("Engine", found, status.reason or f"See {home.log_file}.")]
    return [ok("Engine", found), *_reach(status)]


def _reach(status: EngineStatus) -> Sequence[Check]:
    if status.reachability is Reach.OUTBOUND_ONLY:
        advice = (
            "Forward a port of your router to this computer (--listen /ip4/0.0.0.0/tcp/PORT), or "
            "wait for a member that others can connect to: it relays by itself."
        )
        return [warn("Reached", "by nobody: no connections come in, and no relay is found", advice)]
    if status.reachability is Reach.RELAYED:
        return [ok("Reached", f"through {status.relays} of the swarm's members")]
    return [ok("Reached", "directly")] if status.reachability is Reach.DIRECT else []


def _nearest_existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
