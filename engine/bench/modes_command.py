"""The arguments of `shoal bench draft-bytes` and `shoal bench acceptance`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from engine.bench import quantities


def add_draft_bytes(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = (
        "Encode the messages of a speculative round in every mode, and say how many bytes they are, "
        "beside what [DC] predicts."
    )
    positive = quantities.positive
    parser.add_argument("--vocab", type=positive, default=49_152, metavar="V")
    parser.add_argument(
        "--draft-tokens", type=quantities.sizes, default=tuple(range(2, 9)), metavar="LIST",
        help="such as 2,4,8",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_draft_bytes)


def _draft_bytes(args: argparse.Namespace) -> int:
    from engine.bench import draft_bytes

    report = draft_bytes.measure(args.vocab, args.draft_tokens)
    print(report.model_dump_json() if args.json else "\n".join(draft_bytes.lines(report)))
    return 0


def add_acceptance(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = (
        "Let a model answer questions, and see at each of its tokens whether a distilled draft's is "
        "accepted: by shared noise, and with min(1, p/q)."
    )
    positive = quantities.positive
    parser.add_argument("--model", default="starter", metavar="SOURCE")
    parser.add_argument(
        "--draft", type=Path, metavar="FOLDER", help="of the draft; else the one that comes along"
    )
    parser.add_argument("--prompts", type=positive, default=8, metavar="N")
    parser.add_argument("--new-tokens", type=positive, default=24, metavar="T")
    parser.add_argument(
        "--temperatures", type=_temperatures, default=(0.25, 0.5, 0.75, 1.0, 1.25), metavar="LIST",
        help="such as 0.5,1",
    )  # fmt: skip
    parser.add_argument("--top-p", type=_share, default=1.0, metavar="P")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of prompts")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_acceptance)


def _temperatures(text: str) -> tuple[float, ...]:
    values = tuple(float(part) for part in text.split(","))
    if not all(0 < value <= 100 for value in values):
        raise argparse.ArgumentTypeError("temperatures are above 0, and at most 100")
    return values


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("a share is above 0, and at most 1")
    return value


def _acceptance(args: argparse.Namespace) -> int:
    from engine.bench import acceptance
    from engine.bench.speculation_prompts import speculation_prompts
    from engine.core.plans import Span
    from engine.localapi.running import Home
    from engine.models.layout import ModelFiles
    from engine.models.prepare import prepare
    from engine.models.tokenizer import ChatTokenizer

    def say(text: str) -> None:
        print(f"{text} …", file=sys.stderr)

    models_dir = Home.from_environment().models_dir

    async def ready() -> ModelFiles:
        files = await prepare(args.model, models_dir, "float32", None, lambda _: None)
        blocks = Span(0, files.spec.num_hidden_layers)
        return await prepare(args.model, models_dir, "float32", blocks, lambda _: None)

    say(f"Preparing {args.model}")
    files = asyncio.run(ready())
    tokenizer = ChatTokenizer.load(files.directory)
    prompts = speculation_prompts(tokenizer.encode_chat, "chat", args.prompts, args.seed)
    bench = acceptance.AcceptanceBench(
        files, args.draft, prompts, args.new_tokens, args.temperatures, args.top_p
    )
    report = acceptance.measure(bench, say)
    print(report.model_dump_json() if args.json else "\n".join(acceptance.lines(report)))
    return 0
