"""Every pipeline of a small swarm, tried one by one, with the cost model written out again.

Nothing here is shared with `engine.planner`, so that a mistake would have to be made twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

from engine.core.profiles import (
    Calibration,
    Goal,
    ModelSize,
    NetworkMatrix,
    NodeProfile,
    Objective,
)

Pipeline = tuple[tuple[NodeProfile, int], ...]


def pipelines(profiles: Sequence[NodeProfile], num_blocks: int) -> Iterator[Pipeline]:
    """Every order of every set of machines, with every division of the blocks."""
    for count in range(1, len(profiles) + 1):
        for order in permutations(profiles, count):
            for lengths in divisions(num_blocks, count):
                yield tuple(zip(order, lengths, strict=True))


def divisions(num_blocks: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every way to give `count` machines at least one block each."""
    if count == 1:
        yield (num_blocks,)
        return
    for length in range(1, num_blocks - count + 2):
        for rest in divisions(num_blocks - length, count - 1):
            yield (length, *rest)


def step_s(
    pipeline: Pipeline,
    network: NetworkMatrix,
    model: ModelSize,
    objective: Objective,
    num_microbatches: int,
    calibration: Calibration = Calibration(),  # noqa: B008 - frozen
    *,
    form: str = "ring",
) -> float:
    """What the planner minimises for one B and M, in seconds; `inf`: does not fit."""
    batch_size = objective.batch_size
    rows = math.ceil(batch_size / num_microbatches)
    cached = objective.prompt_tokens + objective.new_tokens / 2
    prompt = batch_size * objective.prompt_tokens * objective.counts_prompts
    once = 1 / objective.new_tokens
    owed = prompt * once
    is_alone = objective.goal is Goal.LATENCY
    way, loads = 0.0, []
    for index, (node, length) in enumerate(pipeline):
        is_first, is_last = index == 0, index == len(pipeline) - 1
        weights = length * model.block_bytes
        if is_first and is_last and model.ties_ends:
            weights += max(model.embedding_bytes, model.head_bytes)
        else:
            weights += is_first * model.embedding_bytes + is_last * model.head_bytes
        room = node.memory_bytes - weights
        room -= max(rows, 512) * model.hidden_size * model.element_bytes * 16
        per_token = length * model.kv_bytes_per_token * batch_size
        in_ram = max(0, math.ceil((objective.context_tokens * per_token - room) / per_token))
        ram = node.ram_bytes if node.block.ram_attention else 0
        if room < 0 or in_ram > objective.context_tokens or in_ram * per_token > ram:
            return math.inf
        alpha = min(1.0, in_ram / cached)
        here = node.block.attention.base_s + rows * cached * (1 - alpha) * (
            node.block.attention.unit_s
        )
        there = 0.0
        if alpha > 0 and node.block.ram_attention is not None:
            there = node.block.ram_attention.of(rows * cached * alpha)
        compute = length * (node.block.mlp.of(rows) + max(here, there)) + node.pass_overhead_s
        if is_last:
            compute += node.head.of(rows)
        prefill = owed * node.block.prefill_row_s * length
        handing = handing_s(node, model, rows, is_first, is_last)
        way += compute + handing
        if is_alone and prompt:
            way += prefill + once * (
                node.pass_overhead_s
                + is_last * node.head.of(rows)
                + handing_s(node, model, prompt, is_first, is_last)
            )
        loads.append(num_microbatches * (compute + handing * node.frame_shares_cores) + prefill)
    for (sender, _), (receiver, _) in pairwise(pipeline):
        taken, busy = hop_s(sender, receiver, network, model, objective, rows)
        _, owed_busy = hop_s(sender, receiver, network, model, objective, owed)
        way += taken + delay_s(sender, receiver, network)
        if is_alone and prompt:
            whole, _ = hop_s(sender, receiver, network, model, objective, prompt)
            way += once * (whole + delay_s(sender, receiver, network))
        loads.append(num_microbatches * busy + owed_busy)
    if len(pipeline) > 1:
        last, first = pipeline[-1][0], pipeline[0][0]
        ids_s = (36 + 28 * rows) / rate(last, first, network)
        way += delay_s(last, first, network) + ids_s
        loads.append(num_microbatches * ids_s)
    overhead = calibration.step_overhead_s
    overhead += (num_microbatches - 1) * calibration.micro_batch_overhead_s
    load = max(loads)
    combined = {
        "ring": max(way, load),
        "chain": way + (num_microbatches - 1) * load / num_microbatches,
        "sum": way,
        "bottleneck": load if way < math.inf else math.inf,
    }
    return combined[form] + overhead


def handing_s(
    node: NodeProfile, model: ModelSize, tokens: float, is_first: bool, is_last: bool
) -> float:
    """The agent's part: a frame in, and a frame out; those of ids weigh nothing."""
    heavy = (not is_first) + (not is_last)
    size = tokens * model.hidden_size * model.element_bytes
    return node.frame.base_s + node.frame.unit_s * size * heavy / 2


def hop_s(
    sender: NodeProfile,
    receiver: NodeProfile,
    network: NetworkMatrix,
    model: ModelSize,
    objective: Objective,
    tokens: float,
) -> tuple[float, float]:
    """Hidden states over one line: how long they take, and how long its busiest part is busy."""
    if tokens == 0:
        return 0.0, 0.0
    raw = tokens * model.hidden_size * model.element_bytes
    header = 36 + 28 * tokens
    plain = (raw + header) / rate(sender, receiver, network)
    if not (sender.encode_bytes_per_s and receiver.decode_bytes_per_s):
        return plain, plain
    parts = (
        raw / sender.encode_bytes_per_s,
        (objective.codec_ratio * raw + header) / rate(sender, receiver, network),
        raw / receiver.decode_bytes_per_s,
    )
    return (sum(parts), max(parts)) if sum(parts) < plain else (plain, plain)


def rate(sender: NodeProfile, receiver: NodeProfile, network: NetworkMatrix) -> float:
    """Bytes per second."""
    row, column = network.peers.index(sender.peer), network.peers.index(receiver.peer)
    return min(
        sender.uplink_bytes_per_s, receiver.downlink_bytes_per_s, network.bytes_per_s[row][column]
    )


def delay_s(sender: NodeProfile, receiver: NodeProfile, network: NetworkMatrix) -> float:
    """One way."""
    row, column = network.peers.index(sender.peer), network.peers.index(receiver.peer)
    return network.delay_s[row][column]
