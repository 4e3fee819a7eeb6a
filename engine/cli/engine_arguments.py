"""Arguments that choose how an engine runs; every command that may start one takes them."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Final

from engine.cli.quantities import block_span, positive, size_bytes
from engine.core.errors import InviteInvalid

INVITE_SCHEME: Final = "shoal://"
_MAX_INVITE_BYTES: Final = 8192


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them, in a group of their own."""
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--model",
        metavar="SOURCE",
        help="`starter`, a local directory, or an id of the Hugging Face Hub",
    )
    group.add_argument(
        "--stages",
        type=positive,
        metavar="N",
        help="spread the blocks over N local stages, each an engine of its own",
    )
    group.add_argument(
        "--blocks", type=block_span, metavar="A:B", help="hold blocks A to B-1 (default: chosen)"
    )
    group.add_argument(
        "--no-stage", action="store_true", help="hold no blocks: use the swarm without giving"
    )
    group.add_argument(
        "--dtype",
        choices=["auto", "float32", "bfloat16", "float16"],
        help="number format of weights and activations",
    )
    group.add_argument("--device", help="auto, cpu, cuda, cuda:1 …")
    group.add_argument("--port", type=int, metavar="PORT", help="of the API (default: a free one)")
    group.add_argument(
        "--listen",
        action="append",
        metavar="MULTIADDR",
        help="address for peers, such as /ip4/0.0.0.0/tcp/31330 (may be repeated)",
    )
    group.add_argument(
        "--invite", metavar="TEXT_OR_FILE", help="join this swarm: shoal://… or a .shoal file"
    )
    group.add_argument("--threads", type=positive, metavar="N", help="compute threads")
    group.add_argument(
        "--kv-budget", type=size_bytes, metavar="SIZE", help="room for KV caches, such as 1GiB"
    )
    group.add_argument(
        "--set",
        action="append",
        type=setting,
        metavar="BRANCH.FIELD=VALUE",
        dest="settings",
        help="any setting of settings.toml, for this run (may be repeated)",
    )


def overrides_of(args: argparse.Namespace) -> dict[str, dict[str, object]]:
    """What the arguments change in the settings: branch → field → value."""
    chosen: list[tuple[str, str, object]] = [
        ("model", "source", _model_source(args.model)),
        ("model", "dtype", args.dtype),
        ("model", "device", args.device),
        ("stage", "enabled", False if args.no_stage else None),
        ("stage", "blocks", args.blocks),
        ("stage", "threads", args.threads),
        ("stage", "kv_budget_bytes", args.kv_budget),
        ("swarm", "listen", args.listen),
        ("api", "port", args.port),
        *(args.settings or ()),
    ]
    tree: dict[str, dict[str, object]] = {}
    for branch, field, value in chosen:
        if value is not None:
            tree.setdefault(branch, {})[field] = value
    return tree


def passed_on(args: argparse.Namespace) -> list[str]:
    """The same arguments as words, for the engine that this command starts."""
    words: list[str] = []
    for option, value in (
        ("--model", _model_source(args.model)),
        ("--stages", args.stages),
        ("--blocks", args.blocks and f"{args.blocks[0]}:{args.blocks[1]}"),
        ("--dtype", args.dtype),
        ("--device", args.device),
        ("--port", args.port),
        ("--invite", args.invite and invite_text(args.invite)),
        ("--threads", args.threads),
        ("--kv-budget", args.kv_budget),
    ):
        if value is not None:
            words += [option, str(value)]
    if args.no_stage:
        words.append("--no-stage")
    for address in args.listen or ():
        words += ["--listen", address]
    for branch, field, value in args.settings or ():
        words += ["--set", f"{branch}.{field}={_as_toml(value)}"]
    return words


def invite_text(text_or_file: str) -> str:
    """The invite itself, read from the `.shoal` file if it is one.

    Raises:
        InviteInvalid: Neither an invite nor a readable file that holds one.
    """
    text = text_or_file.strip()
    if text.startswith(INVITE_SCHEME):
        return text
    path = Path(text_or_file).expanduser()
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_INVITE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InviteInvalid(
            f"{text_or_file[:100]!r} is neither an invite ({INVITE_SCHEME}…) nor a .shoal file that "
            "can be read."
        ) from error
    if not text.startswith(INVITE_SCHEME):
        raise InviteInvalid(f"{path} does not hold an invite: it must begin with {INVITE_SCHEME}.")
    return text


def _model_source(source: str | None) -> str | None:
    # The engine may run in another folder, or be started again from one.
    return str(Path(source).absolute()) if source and Path(source).is_dir() else source


def setting(text: str) -> tuple[str, str, object]:
    """Branch, field and value of `branch.field=value`, as TOML has it or a bare word.

    Raises:
        ArgumentTypeError: It is of another form.
    """
    name, equals, value = text.partition("=")
    branch, dot, field = name.strip().partition(".")
    if not (equals and dot and branch and field):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form branch.field=value")
    try:
        return branch, field, tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return branch, field, value.strip()  # a bare word, which a shell makes hard to quote


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_toml, value)) + "]"
    # A JSON string is a TOML string too.
    return repr(value) if isinstance(value, int | float) else json.dumps(str(value))
