"""`shoal swarm`: found, join, leave and show the swarm of the running engine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from engine.cli.attach import running_engine
from engine.cli.commands import Commands
from engine.cli.engine_arguments import invite_text
from engine.cli.terminal import printable
from engine.core.errors import ConfigError
from engine.localapi.running import Home
from engine.localapi.schema import SwarmInfo

_CALL_LIMIT_S = 180.0
"""Joining starts libp2p anew, which takes its time on a busy machine."""


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own commands."""
    parser = commands.add_parser(
        "swarm", parents=[everywhere], help="found, join, leave, show", description=__doc__
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(
        name: str, summary: str, run: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        own = actions.add_parser(name, help=summary, description=summary)
        own.add_argument("--json", action="store_true", help="print one JSON object")
        own.set_defaults(run=run)
        return own

    create = action("create", "found a swarm with this engine as its first bootstrap", _create)
    create.add_argument("name", metavar="NAME")
    create.add_argument("--private", action="store_true", help="admit only holders of the invite")
    create.add_argument("-o", "--output", metavar="FILE", help="write the invite to a .shoal file")
    join = action("join", "join the swarm of an invite", _join)
    join.add_argument("invite", metavar="INVITE_OR_FILE", help="shoal://… or a .shoal file")
    action("leave", "go back to solo", _leave)
    show = action("show", "show the swarm and its invite", _show)
    show.add_argument("-o", "--output", metavar="FILE", help="write the invite to a .shoal file")


def _create(args: argparse.Namespace) -> int:
    body = {"name": args.name, "private": args.private}
    return _send(args, "POST", "/create", body)


def _join(args: argparse.Namespace) -> int:
    return _send(args, "POST", "/join", {"invite": invite_text(args.invite)})


def _leave(args: argparse.Namespace) -> int:
    return _send(args, "POST", "/leave", None)


def _show(args: argparse.Namespace) -> int:
    return _send(args, "GET", "", None)


def _send(args: argparse.Namespace, method: str, path: str, body: dict[str, object] | None) -> int:
    engine = running_engine(Home.from_environment())
    answer = engine.client.call(method, f"/shoal/v1/swarm{path}", body, timeout_s=_CALL_LIMIT_S)
    info = SwarmInfo.model_validate(answer)
    output = getattr(args, "output", None)
    if output is not None:
        _write_invite(info, Path(output))
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        for line in _lines(info):
            print(printable(line))
    return 0


def _lines(info: SwarmInfo) -> list[str]:
    if info.name is None:
        return ["Solo: this engine belongs to no swarm."]
    lines = [f"Swarm      {info.name}{' (private)' if info.private else ''}"]
    lines.append(f"Model      {info.model or 'none yet'}")
    lines += [f"Bootstrap  {address}" for address in info.bootstrap]
    if info.invite is not None:
        secret = " It admits whoever holds it, so show it to members alone." if info.private else ""
        lines += [f"Invite     {info.invite}", "", f"Others join with it.{secret}"]
    return lines


def _write_invite(info: SwarmInfo, path: Path) -> None:
    if info.invite is None:
        raise ConfigError("There is no invite to write: this engine belongs to no swarm.")
    try:
        path.touch(mode=0o600)
        path.write_text(info.invite + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The invite cannot be written to {path} ({error.strerror}); choose another place."
        ) from error
