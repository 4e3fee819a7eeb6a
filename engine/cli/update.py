"""`shoal update`: new versions of Shoal, through the engine that runs."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Final

from engine import __version__
from engine.cli.attach import Attached, running_engine
from engine.cli.commands import Commands
from engine.cli.terminal import ProgressLine, printable, say
from engine.core.errors import EngineError, UpdateError
from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from engine.localapi.schema import EngineStatus
from engine.localapi.updates import UpdateInfo, UpdateStep
from engine.node.settings import SettingsFile

_CALL_LIMIT_S: Final = 120.0
_LOOK_EVERY_S: Final = 0.5
_RESTART_LIMIT_S: Final = 600.0


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own commands."""
    parser = commands.add_parser(
        "update",
        parents=[everywhere],
        help="look for new versions of Shoal, and install them",
        description="New versions of Shoal, through the engine that runs. The list of versions and "
        "every package must carry the publishers' signature.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, words in (
        ("check", _check, "look whether there is a new version"),
        ("install", _install, "fetch the new version and put it beside this one"),
        ("restart", _restart, "switch to it, once running requests have ended or gone elsewhere"),
        ("off", _switch, "do not look once a day"),
        ("on", _switch, "look once a day"),
    ):
        action = actions.add_parser(name, help=words, description=f"{words.capitalize()}.")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=run, looks=name == "on")


def _check(args: argparse.Namespace) -> int:
    return _print(_ask(_engine(), "check"), args)


def _install(args: argparse.Namespace) -> int:
    engine = _engine()
    info = _ask(engine, "install")
    with ProgressLine() as line:
        while info.step in (UpdateStep.FETCHING, UpdateStep.INSTALLING):
            done = f"{info.done_bytes / 1e6:.0f} of {info.total_bytes / 1e6:.0f} MB"
            line.show(f"{info.step.capitalize()} Shoal {info.version}", done)
            time.sleep(_LOOK_EVERY_S)
            info = _info(engine)
    if info.problem:
        raise UpdateError(info.problem)
    return _print(info, args)


def _restart(args: argparse.Namespace) -> int:
    engine = _engine()
    info = _ask(engine, "restart")
    say("Running requests come to their end, then the new version starts.")
    home, until_s = Home.from_environment(), time.monotonic() + _RESTART_LIMIT_S
    while time.monotonic() < until_s:
        ready = find_running(home)
        if ready is not None and ready.pid != engine.ready.pid:
            status = EngineStatus.model_validate(
                ApiClient.of(ready).call("GET", "/shoal/v1/status", timeout_s=_CALL_LIMIT_S)
            )
            if status.version != info.version:
                raise UpdateError(
                    f"Shoal {info.version} did not start, so {status.version} runs again; see its log."
                )
            return _print(status.update or info, args, running=status.version)
        time.sleep(_LOOK_EVERY_S)
    raise EngineError("The engine has not come back; see its log, and start it again.")


def _switch(args: argparse.Namespace) -> int:
    home = Home.from_environment()
    values, ready = {"updates.check": args.looks}, find_running(home)
    if ready is None:
        file = SettingsFile(home.settings_file)
        text, _ = file.changed(values)
        file.write(text)
    else:
        body: dict[str, Any] = {"values": values}
        ApiClient.of(ready).call("PATCH", "/shoal/v1/settings", body, timeout_s=_CALL_LIMIT_S)
    if args.json:
        print(json.dumps({"check": args.looks}))
    else:
        print("Shoal looks for new versions once a day." if args.looks else "Shoal does not look.")
    return 0


def _engine() -> Attached:
    return running_engine(Home.from_environment())


def _ask(engine: Attached, action: str) -> UpdateInfo:
    answer = engine.client.call(
        "POST", f"/shoal/v1/updates/{action}", None, timeout_s=_CALL_LIMIT_S
    )
    return UpdateInfo.model_validate(answer)


def _info(engine: Attached) -> UpdateInfo:
    status = EngineStatus.model_validate(engine.client.call("GET", "/shoal/v1/status"))
    if status.update is None:
        raise UpdateError("The engine that runs is of an older version; start Shoal again.")
    return status.update


def _print(info: UpdateInfo, args: argparse.Namespace, running: str = __version__) -> int:
    if args.json:
        print(info.model_dump_json())
    else:
        print(printable(f"{_words(info, running)} {info.summary}".strip()))
    return 0


def _words(info: UpdateInfo, running: str) -> str:
    match info.step:
        case UpdateStep.AVAILABLE:
            return f"Shoal {info.version} is there; `shoal update install` gets it."
        case UpdateStep.READY if info.command:
            return f"Shoal {info.version} is fetched and checked; install it with: {info.command}"
        case UpdateStep.READY:
            return (
                f"Shoal {info.version} is installed; it runs after the next start, or now with "
                "`shoal update restart`."
            )
        case UpdateStep.FETCHING | UpdateStep.INSTALLING | UpdateStep.RESTARTING:
            return f"Shoal {info.version}: {info.step}."
        case _:
            return f"Shoal {running} is the newest version."
