"""Where a plan's numbers come from, and what binds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from engine.core.plans import Term
from engine.core.profiles import Calibration, Goal, ModelSize, Objective
from engine.planner.account import Account, share_in_ram
from engine.planner.costs import block_s, ends_bytes, workspace_bytes
from engine.planner.fleet import Fleet
from engine.planner.flow import overhead_s
from engine.planner.speculation import break_even_bytes_per_s


def bottleneck(done: Account) -> str:
    """What binds, in words."""
    if not done.is_bound_by_way:
        return _part(done, *done.busiest)
    index, is_line = done.longest
    times = done.times[index]
    part_s = times.way_s - times.stage_s if is_line else times.stage_s
    share = part_s / done.way_s
    return f"the way round, most of all {_part(done, index, is_line)} ({share:.0%})"


def _part(done: Account, index: int, is_line: bool) -> str:
    peer = done.stages[index].peer
    if not is_line:
        return f"the compute of {peer}"
    return f"the line from {peer} to {done.stages[(index + 1) % len(done.stages)].peer}"


def terms(
    done: Account, fleet: Fleet, model: ModelSize, objective: Objective, calibration: Calibration
) -> tuple[Term, ...]:
    """Every number, in the order in which one follows from another."""
    parts = [
        (
            _pass(done, fleet, index),
            *_memory(done, fleet, model, index),
            *_line(done, fleet, model, index),
        )
        for index in range(len(done.stages))
    ]
    return (
        *itertools.chain(*parts),
        *_step(done, calibration),
        *_prefill(done, objective),
        *_sustained(done, objective),
        *_goal(done, objective),
        *_drafting(done, fleet, model),
        *_left_out(done, fleet),
    )


def _pass(done: Account, fleet: Fleet, index: int) -> Term:
    work, stage, times = done.work, done.stages[index], done.times[index]
    profile = fleet.profiles[fleet.peers.index(stage.peer)]
    tokens = work.first_tokens if index == 0 else work.later_tokens
    in_ram = share_in_ram(stage, work)
    mlp_s = profile.block.mlp.of(tokens)
    whole_s = block_s(profile, float(tokens), work.cached_tokens, in_ram)
    where = f", {in_ram:.0%} of them in RAM" if in_ram else ""
    why = (
        f"{_count(len(stage.span), 'block')} × ({_ms(mlp_s)} for {_count(tokens, 'token')} + "
        f"{_ms(whole_s - mlp_s)} attention over {work.cached_tokens:g} cached tokens a row{where}) "
        f"+ {_ms(profile.pass_overhead_s)} a pass"
    )
    if index == len(done.stages) - 1:
        why += f" + {_ms(profile.head.of(tokens))} norm, head and sampling"
    if times.frames_s:
        where = "the same cores" if profile.frame_shares_cores else "other cores"
        why += f" + {_ms(times.frames_s)} for taking a frame in and sending one, on {where}"
    return Term(f"{stage.peer}: pass", 1e3 * times.stage_s, "ms", why)


def _memory(done: Account, fleet: Fleet, model: ModelSize, index: int) -> Iterator[Term]:
    work, stage = done.work, done.stages[index]
    profile = fleet.profiles[fleet.peers.index(stage.peer)]
    is_first, is_last = index == 0, index == len(done.stages) - 1
    ends = ends_bytes(model, is_first=is_first, is_last=is_last)
    tokens = work.first_tokens if index == 0 else work.later_tokens
    weights = len(stage.span) * model.block_bytes + ends
    why = f"{_count(len(stage.span), 'block')} of {_gb(model.block_bytes)}"
    if ends:
        names = " and ".join(["embedding"] * is_first + ["head"] * is_last)
        why += f" + {_gb(ends)} {names}"
    yield Term(f"{stage.peer}: weights", weights / 1e9, "GB", why)
    cache = work.batch_size * work.capacity_tokens * len(stage.span) * model.kv_bytes_per_token
    room = profile.memory_bytes - weights - workspace_bytes(model, tokens)
    why = (
        f"{_count(work.batch_size, 'row')} × {work.capacity_tokens} tokens × "
        f"{_count(len(stage.span), 'block')} × {model.kv_bytes_per_token} B; weights and a pass's "
        f"own values leave {_gb(room)} of {_gb(profile.memory_bytes)}"
    )
    if stage.kv_offload_ratio:
        why += f", so α = {stage.kv_offload_ratio:.2f} of it lies in RAM"
    yield Term(f"{stage.peer}: cache", cache / 1e9, "GB", why)


def _line(done: Account, fleet: Fleet, model: ModelSize, index: int) -> Iterator[Term]:
    if len(done.stages) == 1:
        return
    work, times = done.work, done.times[index]
    is_last = index == len(done.stages) - 1
    sender = fleet.peers.index(done.stages[index].peer)
    receiver = fleet.peers.index(done.stages[(index + 1) % len(done.stages)].peer)
    raw = work.later_tokens * model.hidden_size * model.element_bytes
    if is_last:
        what = f"ids of {_count(work.rows, 'row')}"
    else:
        what = f"{raw / 1e3:.1f} KB hidden states of {_count(work.later_tokens, 'token')}"
    if done.is_encoded[index]:
        what += (
            f", encoded to {work.codec_ratio:.0%} in {_ms(times.encode_s)} and decoded in "
            f"{_ms(times.decode_s)}"
        )
    why = f"{what}, {_ms(times.line_s)} at {_rate(fleet, sender, receiver)} + {_ms(times.delay_s)} delay"
    name = f"{fleet.peers[sender]} → {fleet.peers[receiver]}"
    yield Term(name, 1e3 * (times.way_s - times.stage_s), "ms", why)


def _rate(fleet: Fleet, sender: int, receiver: int) -> str:
    rate = float(fleet.bytes_per_s[sender, receiver])
    if not math.isfinite(rate):
        return "no limit"
    if rate == fleet.profiles[sender].uplink_bytes_per_s:
        whose = f"{fleet.peers[sender]}'s uplink"
    elif rate == fleet.profiles[receiver].downlink_bytes_per_s:
        whose = f"{fleet.peers[receiver]}'s downlink"
    else:
        whose = "the line between them"
    return f"{rate / 1e6:.3g} MB/s ({whose})"


def _step(done: Account, calibration: Calibration) -> Iterator[Term]:
    work = done.work
    more_s = overhead_s(work.num_microbatches, calibration)
    yield Term(
        "way round",
        1e3 * done.way_s,
        "ms",
        f"all passes and lines for one micro-batch of {_count(work.rows, 'row')}",
    )
    yield Term(
        "busiest part",
        1e3 * done.load_s,
        "ms",
        f"{_part(done, *done.busiest)} for all {_count(work.num_microbatches, 'micro-batch')}",
    )
    yield Term(
        "overhead",
        1e3 * more_s,
        "ms",
        f"calibration: {_ms(calibration.step_overhead_s)} a step + {work.num_microbatches - 1} × "
        f"{_ms(calibration.micro_batch_overhead_s)}",
    )
    yield Term("step", 1e3 * done.step_s, "ms", "the longer of the two, and the overhead")
    yield Term(
        "rate",
        done.tokens_per_s,
        "tokens/s",
        f"{_count(work.batch_size, 'row')} × {work.committed_tokens:g} a step",
    )


def _sustained(done: Account, objective: Objective) -> Iterator[Term]:
    if not objective.prompt_tokens or not objective.counts_prompts:
        return
    if objective.goal is Goal.LATENCY:
        why = f"prompt and answer of {objective.new_tokens} tokens together"
    else:
        why = (
            f"when each step also computes {done.work.owed_tokens:.4g} prompt tokens, for rows that "
            "take the place of those that have ended"
        )
    yield Term("rate with prompts", done.sustained_tokens_per_s, "tokens/s", why)


def _goal(done: Account, objective: Objective) -> Iterator[Term]:
    if objective.goal is Goal.ENERGY:
        why = f"{done.power_w:g} W of all stages together"
        yield Term("energy", done.power_w / done.sustained_tokens_per_s, "J/token", why)
    if objective.goal is Goal.COST:
        why = f"{done.euro_per_hour:g} EUR an hour for all stages together"
        price = done.euro_per_hour / 3600 / done.sustained_tokens_per_s
        yield Term("cost", 1e6 * price, "EUR/million tokens", why)


def _prefill(done: Account, objective: Objective) -> Iterator[Term]:
    if objective.prompt_tokens:
        yield Term(
            "prefill",
            done.prefill_s,
            "s",
            f"{_count(done.work.batch_size, 'prompt')} of {objective.prompt_tokens} tokens, in "
            "parts that follow one another through the stages",
        )


def _drafting(done: Account, fleet: Fleet, model: ModelSize) -> Iterator[Term]:
    """S* of [BB] eq. 9 for this pipeline, in the mean of its stages and lines."""
    work, num = done.work, len(done.stages)
    if not work.tree_size or num < 2:
        return
    plain = done.plain_times
    compute_s = sum(times.stage_s for times in plain) / num
    needed = break_even_bytes_per_s(
        work.rows,
        work.later_tokens / work.rows,
        work.committed_tokens,
        model.hidden_size * model.element_bytes,
        sum(times.delay_s for times in plain) / num,
        compute_s,
        sum(times.stage_s for times in done.times) / num / compute_s,
        work.draft_s / num,
    )
    if not math.isfinite(needed):
        return  # the mean of uneven stages says nothing: these gain where they are bound by load
    yield Term(
        "break-even line",
        needed / 1e6,
        "MB/s",
        f"from there on trees of {work.tree_size} tokens pay, of which {work.committed_tokens:g} "
        "are kept a step",
    )


def _left_out(done: Account, fleet: Fleet) -> Iterator[Term]:
    """What speaks against each machine without blocks: its speed, and its nearest way in."""
    used = [fleet.peers.index(stage.peer) for stage in done.stages]
    slowest_s = max(
        times.stage_s / len(stage.span)
        for times, stage in zip(done.times, done.stages, strict=True)
    )
    for place, profile in enumerate(fleet.profiles):
        if place in used:
            continue
        detour_s = float(fleet.delay_s[used, place].min() + fleet.delay_s[place, used].min())
        if math.isfinite(detour_s):
            more = f"its lines' delays and a pass would add {_ms(detour_s + profile.pass_overhead_s + profile.frame.base_s)}"
        else:
            more = "it and the stages do not reach each other"
        one_s = block_s(profile, float(done.work.later_tokens), done.work.cached_tokens, 0.0)
        yield Term(
            f"{profile.peer}: left out",
            1e3 * one_s,
            "ms",
            f"a block there, at most {_ms(slowest_s)} in the plan; {more}, and it has "
            f"{_gb(profile.memory_bytes)}",
        )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _gb(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"
