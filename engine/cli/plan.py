"""`shoal plan`: which machine should hold which blocks, and how fast that would be."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

from engine.bench.placements.rivals import RIVALS
from engine.bench.quantities import names
from engine.cli.commands import Commands
from engine.cli.plan_against import Rival, compared, rivals
from engine.cli.plan_text import drawn, explained, joined
from engine.cli.quantities import positive
from engine.cli.terminal import printable, say
from engine.core.errors import ConfigError, PlanInfeasible
from engine.core.ids import PeerId
from engine.core.plans import Plan
from engine.core.profiles import Goal
from engine.localapi.running import Home
from engine.planner.search import plan
from engine.profiler.nodes_file import NodesFile, read_nodes_file


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "plan",
        parents=[everywhere],
        help="find the best pipeline for a file of machines",
        description="Find the best pipeline for the machines in a file: which blocks each one "
        "holds, in which order, with which batch, micro-batches and codec. "
        "A machine is described by numbers or by what `shoal measure --json` printed there.",
    )
    parser.add_argument("nodes", metavar="NODES.json", type=Path, help="the machines")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="say where every number comes from")
    parser.add_argument("--goal", choices=[goal.value for goal in Goal], help="what to be best at")
    parser.add_argument("--batch", type=positive, metavar="B", help="rows of the batch")
    parser.add_argument("--micro-batches", type=positive, metavar="M", help="parts of the batch")
    parser.add_argument("--context", type=positive, metavar="TOKENS", help="room for each row")
    parser.add_argument("--me", metavar="PEER", help="say what changes when this machine joins")
    parser.add_argument(
        "--against",
        type=names(tuple(RIVALS)),
        default=(),
        metavar="LIST",
        help=f"compare with other ways of placing: some of {','.join(RIVALS)}",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan and print. Returns the exit code."""
    nodes = _asked(read_nodes_file(args.nodes, Home.from_environment().models_dir), args)
    begun_s = time.perf_counter()
    try:
        found = _planned(nodes)
    except PlanInfeasible as error:
        if not args.json:
            raise
        print(json.dumps({"infeasible": {"constraint": error.constraint, "hint": error.hint}}))
        return 1
    solve_s = time.perf_counter() - begun_s
    before = _before(nodes)
    others = rivals(nodes, found, args.against)
    if args.json:
        facts = _facts(found, solve_s, nodes.me, before, explain=args.explain)
        if others:
            facts["against"] = [_rival_facts(other, found) for other in others]
        print(json.dumps(facts))
        return 0
    lines = drawn(found)
    if nodes.me is not None:
        lines += ["", joined(found, nodes.me, before)]
    if others:
        lines += ["", *compared(found, others)]
    if args.explain:
        lines += ["", *explained(found)]
    print(printable("\n".join(lines)))
    say(f"Found in {1e3 * solve_s:.0f} ms.")
    return 0


def _asked(nodes: NodesFile, args: argparse.Namespace) -> NodesFile:
    """What the command line says instead of the file."""
    objective = nodes.objective
    given = {
        "goal": None if args.goal is None else Goal(args.goal),
        "batch_size": args.batch,
        "num_microbatches": args.micro_batches,
        "context_tokens": args.context,
    }
    objective = replace(objective, **{name: v for name, v in given.items() if v is not None})
    if objective.context_tokens < objective.prompt_tokens + objective.new_tokens:
        raise ConfigError(
            f"--context must hold prompt and answer, "
            f"{objective.prompt_tokens + objective.new_tokens} tokens."
        )
    me = nodes.me if args.me is None else PeerId(args.me)
    if me is not None and all(profile.peer != me for profile in nodes.profiles):
        raise ConfigError(f"There is no node {me} in the file, so it cannot join; correct --me.")
    return replace(nodes, objective=objective, me=me)


def _planned(nodes: NodesFile) -> Plan:
    return plan(nodes.profiles, nodes.network, nodes.model, nodes.objective, nodes.calibration)


def _before(nodes: NodesFile) -> Plan | PlanInfeasible | None:
    """The plan without the machine that asks; None: none asks."""
    if nodes.me is None:
        return None
    try:
        return _planned(nodes.without(nodes.me))
    except PlanInfeasible as error:
        return error


def _facts(
    found: Plan,
    solve_s: float,
    me: PeerId | None,
    before: Plan | PlanInfeasible | None,
    *,
    explain: bool,
) -> dict[str, object]:
    facts: dict[str, object] = {
        "stages": _stages(found),
        "batch_size": found.batch_size,
        "num_microbatches": found.num_microbatches,
        "codec": found.codec,
        "draft_tree_size": found.draft_tree_size,
        "prune_threshold": found.prune_threshold,
        "tokens_per_s": found.tokens_per_s,
        "sustained_tokens_per_s": found.sustained_tokens_per_s,
        "step_s": found.step_s,
        "prefill_s": found.prefill_s,
        "bottleneck": found.bottleneck,
        "left_out": list(found.left_out),
        "solve_s": solve_s,
    }
    if explain:
        facts["terms"] = [asdict(term) for term in found.terms]
    if me is not None:
        mine = next((stage.span for stage in found.stages if stage.peer == me), None)
        facts["joining"] = {
            "peer": me,
            "span": None if mine is None else [mine.start, mine.end],
            "sustained_tokens_per_s_without": (
                before.sustained_tokens_per_s if isinstance(before, Plan) else None
            ),
        }
    return facts


def _stages(found: Plan) -> list[dict[str, object]]:
    return [
        {
            "peer": stage.peer,
            "start": stage.span.start,
            "end": stage.span.end,
            "kv_offload_ratio": stage.kv_offload_ratio,
        }
        for stage in found.stages
    ]


def _rival_facts(rival: Rival, ours: Plan) -> dict[str, object]:
    if rival.plan is None:
        return {"name": rival.name, "problem": rival.problem}
    return {
        "name": rival.name,
        "stages": _stages(rival.plan),
        "tokens_per_s": rival.plan.tokens_per_s,
        "sustained_tokens_per_s": rival.plan.sustained_tokens_per_s,
        "ratio": rival.plan.sustained_tokens_per_s / ours.sustained_tokens_per_s,
    }
