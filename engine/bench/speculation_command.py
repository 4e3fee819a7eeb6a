"""The arguments of `shoal bench speculation`."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Final

from engine.bench import quantities
from engine.bench.arguments import add_engines, add_network, print_report, swarm_bench
from engine.bench.speculation_presets import (
    DRAFT_NAMES,
    MODES,
    Preset,
    mode_ways,
    preset_for,
    ways,
)
from engine.bench.speculation_prompts import PROMPT_KINDS
from engine.core.generation import PIPELINED_VALUES

if TYPE_CHECKING:
    from engine.bench.request import SwarmBench
    from engine.bench.speculation import Work

_DIFFER: Final = "The token ids with and without drafts differ."
_DRAWN_AT: Final = 0.7
"""The temperature at which modes are compared."""
_SLOWER: Final = "Some cells are slower than plain decoding."


def add_speculation(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = (
        "Start headless engines and a client, and decode the same prompts plainly and with drafts in "
        "turn."
    )
    group = parser.add_argument_group("what is measured")
    group.add_argument(
        "--batch", type=quantities.sizes, metavar="B", help="sequences (default: 1); may be a list"
    )
    group.add_argument(
        "--prompts",
        type=quantities.names(PROMPT_KINDS),
        default=PROMPT_KINDS,
        metavar="LIST",
        help=f"some of {','.join(PROMPT_KINDS)}: questions, and texts to be copied",
    )
    group.add_argument(
        "--mode",
        type=quantities.names(tuple(MODES)),
        metavar="LIST",
        help=f"some of {','.join(MODES)}: by shared noise (the default), or on chains of a draft model "
        "that are drawn, at --temperature or at 0.7, as DISCO's paper has it; auto: as the controller "
        "chooses, of these and all other drafts; without --draft nothing else is measured",
    )
    group.add_argument(
        "--draft",
        type=quantities.names(DRAFT_NAMES),
        metavar="LIST",
        help="in every round ngram, prompt look-up (the default), model, chains of a draft model, or "
        "tree, one of 13 tokens by it, beside the ring of 32; auto: where it pays",
    )
    group.add_argument(
        "--draft-tokens",
        type=quantities.sizes,
        metavar="N",
        help="the most that a draft proposes for a round (default: 4); may be a list",
    )
    group.add_argument(
        "--pipelined",
        type=quantities.names(PIPELINED_VALUES),
        metavar="LIST",
        help="whether proposals set out before the verdict on the last ones: auto: with --draft auto where "
        "it pays (the default); off: never; on: with --draft ngram always; beside: the ring stays closed, "
        "and what ngram, model or tree propose waits at the first stage",
    )
    group.add_argument(
        "--temperature", type=quantities.seconds, default=0.0, metavar="T", help="default: greedy"
    )
    group.add_argument(
        "--answer-s",
        type=quantities.seconds,
        metavar="S",
        help="stop decoding an answer after so long (default: at its end)",
    )
    group.add_argument(
        "--equality",
        type=quantities.positive,
        metavar="PROMPTS",
        help="say of each draft how many answers to so many prompts, greedy and drawn, are plain "
        "decoding's, and nothing of speed",
    )
    add_engines(
        group, stages=None, new_tokens=None, repeat=None, repeated="pairs, each of other prompts"
    )
    _add_times(parser)
    _add_tables(parser)
    add_network(parser)
    parser.set_defaults(run=_speculation)


def _add_times(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how long things take")
    group.add_argument(
        "--emulate",
        type=quantities.stretching,
        metavar="draft=T,target=T",
        help="let each place of a model's draft, and each pass through all stages of up to rows=R "
        "tokens (default: 16), take so long at least; what they compute stays real",
    )
    group.add_argument(
        "--cpu-times", action="store_true", help="what they need here, in the table dc as well"
    )
    group.add_argument(
        "--slow-down",
        type=quantities.seconds,
        default=1.0,
        metavar="K",
        help="let lines and what is emulated take K times as long, and report as if not: where "
        "passes need longer than they shall",
    )


def _add_tables(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("many at once")
    group.add_argument(
        "--table",
        choices=["dc", "bb"],
        help="a paper's setting, over all its links: dc is DISCO's, one stage behind a client's line "
        "of 1 to 100 Mbit/s and 10 ms, with --emulate draft=2ms,target=40ms; bb is BloomBee's, three "
        "stages over E2 to E5",
    )
    group.add_argument(
        "--links",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="LIST",
        help="some of a table's: 1,10 (Mbit/s) of dc, E2,E5 of bb",
    )
    group.add_argument(
        "--never-slower",
        action="store_true",
        help="of a table: auto alone, for batches of 1, 8 and 32; exit code 1 where its interval does "
        "not reach 0.97 of plain decoding's speed",
    )


def _speculation(args: argparse.Namespace) -> int:
    from engine.bench import equality, speculation, speculation_tables

    preset = preset_for(args.table, never_slower=args.never_slower)
    args.mode_tokens = args.draft_tokens or preset.mode_tokens
    for name in ("stages", "new_tokens", "repeat", "batch", "draft_tokens", "answer_s"):
        if getattr(args, name) is None:
            setattr(args, name, getattr(preset, name))
    bench, works = _bench(args), _works(args, preset)
    if args.equality is not None:
        drafts = args.draft or tuple(draft for draft in DRAFT_NAMES if draft != "auto")
        drafting = ways(drafts, args.draft_tokens, args.pipelined)
        same = asyncio.run(equality.measure(bench, drafting, args.equality))
        broken = "" if same.are_equal else _DIFFER
        return print_report(args, same, equality.lines(same), broken)
    if args.table is None:
        report = asyncio.run(speculation.measure(bench, works))
        broken = "" if report.ids_equal else _DIFFER
        return print_report(args, report, speculation.lines(report.rows), broken)
    table = speculation_tables.Table(args.table, works, args.links)
    whole = asyncio.run(speculation_tables.measure_table(bench, table))
    broken = "" if whole.ids_equal else _DIFFER
    if args.never_slower and not whole.may_be_as_fast:
        broken = broken or _SLOWER
    told = speculation_tables.table_lines(whole, never_slower=args.never_slower)
    return print_report(args, whole, told, broken)


def _bench(args: argparse.Namespace) -> SwarmBench:
    from engine.bench.speculation_tables import DC_STRETCHING

    stretching = args.emulate
    if stretching is None and args.table == "dc" and not args.cpu_times:
        stretching = DC_STRETCHING
    return swarm_bench(
        args,
        batch_sizes=args.batch,
        prompt_tokens=32,  # of prompts that are not used here
        stretching=stretching,
        slow_down=args.slow_down,
        answer_limit_s=args.answer_s,
    )


def _works(args: argparse.Namespace, preset: Preset) -> tuple[Work, ...]:
    """What is compared, by kind of prompts."""
    from engine.bench.speculation import Work

    drawn = mode_ways(args.mode or preset.modes, args.mode_tokens or args.draft_tokens)
    # Who names modes alone wants nothing else.
    drafts = {} if args.mode and drawn and not args.draft else preset.drafts
    works = [
        Work(
            kind,
            ways(args.draft or drafts[kind], args.draft_tokens, args.pipelined, preset),
            args.temperature,
        )
        for kind in args.prompts
        if args.draft or drafts
    ]
    if preset.unpruned and drafts and not args.draft:
        works.append(Work("chat", preset.unpruned, args.temperature, prunes=False))
    works += [
        Work(kind, drawn, args.temperature or _DRAWN_AT) for kind in args.prompts[:1] if drawn
    ]
    return tuple(works)
