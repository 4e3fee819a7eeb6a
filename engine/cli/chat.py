"""`shoal chat`: ask the model, once or in a conversation."""

from __future__ import annotations

import argparse
import json
import sys

from engine.cli.attach import attached
from engine.cli.commands import Commands
from engine.cli.conversation import Conversation, repl, say_rate
from engine.cli.engine_arguments import add_engine_arguments
from engine.cli.quantities import positive
from engine.core.errors import RequestError


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "chat",
        parents=[everywhere],
        help="ask the model; a conversation without a prompt",
        description="Ask the model. Without PROMPT a conversation begins, or the prompt is read "
        "from standard input when that is not a terminal. Uses the running engine, else starts "
        "one that ends with the command.",
    )
    parser.add_argument("prompt", nargs="?", metavar="PROMPT")
    parser.add_argument("--system", metavar="TEXT", help="instructions for the model")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 is the likeliest text")
    parser.add_argument("--seed", type=int, help="the same seed gives the same answer")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="longest answer")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    add_engine_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask. Returns the exit code."""
    prompt = args.prompt
    if prompt is None and (args.json or not sys.stdin.isatty()):
        prompt = sys.stdin.read().strip()
    if prompt is not None and not prompt.strip():
        raise RequestError("The prompt is empty: there is nothing to answer.")
    wanted = {"temperature": args.temperature, "seed": args.seed, "max_tokens": args.max_tokens}
    options = {name: value for name, value in wanted.items() if value is not None}
    with attached(args) as engine:
        conversation = Conversation(engine.client, options, args.system)
        if prompt is None:
            repl(conversation)
            return 0
        reply = conversation.ask(prompt, show=not args.json)
        if args.json:
            print(json.dumps(reply.json(), ensure_ascii=False))
        else:
            say_rate(reply)
    return 0
