"""`shoal settings`: show and change what the node may do; a running engine follows at once."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from engine.cli.commands import Commands
from engine.cli.engine_arguments import setting
from engine.cli.terminal import printable
from engine.core.errors import ConfigError
from engine.localapi.client import ApiClient
from engine.localapi.running import Home, find_running
from engine.localapi.settings import Settings
from engine.node.settings import FILE_ONLY, SettingsFile

_CALL_LIMIT_S: Final = 120.0


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own commands."""
    parser = commands.add_parser(
        "settings", parents=[everywhere], help="show and change settings", description=__doc__
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    get = actions.add_parser("get", help="show settings", description="Show settings.")
    get.add_argument(
        "names", metavar="NAME", nargs="*", help="branch.field, or a branch (default: all)"
    )
    change = actions.add_parser("set", help="change settings", description="Change settings.")
    change.add_argument("values", metavar="NAME=VALUE", nargs="+", type=setting)
    reset = actions.add_parser("reset", help="go back to defaults", description="Use the defaults.")
    reset.add_argument("names", metavar="NAME", nargs="+")
    for action, run in ((get, _get), (change, _set), (reset, _reset)):
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=run)


def _get(args: argparse.Namespace) -> int:
    home = Home.from_environment()
    ready = find_running(home)
    if ready is None:
        shown = SettingsFile(home.settings_file).view()
    else:
        shown = Settings.model_validate(ApiClient.of(ready).call("GET", "/shoal/v1/settings"))
    _print(shown, args.names, as_json=args.json)
    return 0


def _set(args: argparse.Namespace) -> int:
    return _change({f"{branch}.{field}": value for branch, field, value in args.values}, args)


def _reset(args: argparse.Namespace) -> int:
    return _change(dict.fromkeys(args.names), args)


def _change(values: dict[str, Any], args: argparse.Namespace) -> int:
    home = Home.from_environment()
    ready, file = find_running(home), SettingsFile(home.settings_file)
    # Some no engine takes from its API; it follows them when it reads the file for the others.
    by_us = {name: value for name, value in values.items() if ready is None or name in FILE_ONLY}
    if by_us:
        text, _ = file.changed(by_us)
        file.write(text)
    if ready is None:
        shown = file.view()
    else:
        rest = {name: value for name, value in values.items() if name not in by_us}
        answer = ApiClient.of(ready).call(
            "PATCH", "/shoal/v1/settings", {"values": rest}, timeout_s=_CALL_LIMIT_S
        )
        shown = Settings.model_validate(answer)
    _print(shown, list(values), as_json=args.json)
    return 0


def _print(shown: Settings, names: list[str], *, as_json: bool) -> None:
    chosen = [
        setting
        for setting in shown.settings
        if not names or any(setting.name == n or setting.name.startswith(f"{n}.") for n in names)
    ]
    if names and not chosen:
        raise ConfigError(f"There is no setting {names[0]}; `shoal settings get` shows all.")
    if as_json:
        print(shown.model_copy(update={"settings": tuple(chosen)}).model_dump_json())
        return
    for one in chosen:
        mark = "" if one.value == one.default else "   (changed)"
        print(printable(f"{one.name} = {json.dumps(one.value, ensure_ascii=False)}{mark}"))
        if names:
            print(printable(f"    {one.about} Default: {json.dumps(one.default)}."))
    for name in shown.needs_restart:
        print(printable(f"{name} holds when the engine starts next."))
