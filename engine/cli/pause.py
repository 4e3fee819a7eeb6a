"""`shoal pause` and `shoal resume`: when this machine gives."""

from __future__ import annotations

import argparse

from engine.cli.attach import running_engine
from engine.cli.commands import Commands
from engine.cli.quantities import duration_s
from engine.cli.status import print_status
from engine.localapi.running import Home
from engine.localapi.schema import EngineStatus

_CALL_LIMIT_S = 60.0


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add both commands."""
    pause = commands.add_parser(
        "pause",
        parents=[everywhere],
        help="stop giving: the stage leaves and its memory is free",
        description="Stop giving: the stage leaves the swarm, its worker ends and its memory is "
        "free. Without --for and --until-tomorrow it stays so until `shoal resume`, also when the "
        "engine starts anew.",
    )
    pause.add_argument(
        "--finish", action="store_true", help="let running sessions end first (within a limit)"
    )
    pause.add_argument(
        "--everything",
        action="store_true",
        help="leave the swarm too: no requests of your own, no relaying, no traffic at all",
    )
    end = pause.add_mutually_exclusive_group()
    end.add_argument(
        "--for", type=duration_s, metavar="TIME", dest="seconds", help="resume after 30m, 1h …"
    )
    end.add_argument("--until-tomorrow", action="store_true", help="resume at 6 in the morning")
    pause.add_argument("--json", action="store_true", help="print the status as JSON")
    pause.set_defaults(run=_pause)
    resume = commands.add_parser(
        "resume", parents=[everywhere], help="give again", description="Give again after a pause."
    )
    resume.add_argument("--json", action="store_true", help="print the status as JSON")
    resume.set_defaults(run=_resume)


def _pause(args: argparse.Namespace) -> int:
    body = {
        "scope": "everything" if args.everything else "stage",
        "finish_first": args.finish,
        "seconds": args.seconds,
        "until_tomorrow": args.until_tomorrow,
    }
    return _send("pause", {key: value for key, value in body.items() if value is not None}, args)


def _resume(args: argparse.Namespace) -> int:
    return _send("resume", None, args)


def _send(action: str, body: dict[str, object] | None, args: argparse.Namespace) -> int:
    engine = running_engine(Home.from_environment())
    path = f"/shoal/v1/{action}"
    answer = engine.client.call("POST", path, body, timeout_s=_CALL_LIMIT_S)
    status = EngineStatus.model_validate(answer)
    if args.json:
        print(status.model_dump_json())
    else:
        print_status(status)
    return 0
