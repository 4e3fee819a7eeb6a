"""The usual measurement: the same generation a few times, undisturbed."""

from __future__ import annotations

import math
from itertools import cycle, islice

from engine.bench.bed import WARM_UP_TOKENS, Bed, say, time_limit_s
from engine.bench.children import Child, Children
from engine.bench.measured import Measured
from engine.bench.placed import placement_fields
from engine.bench.report import Run, local_run, swarm_run
from engine.bench.specs import Question


async def measure_steady(
    bed: Bed, children: Children, local: Child | None
) -> tuple[list[Run], set[str]]:
    """Measure every pair of micro-batch count and batch size that was asked for.

    The local reference, if there is one, is measured in turn with the swarm.

    Returns:
        The runs, and all hashes of ids that must be equal where the batch is.

    Raises:
        BenchFailed: A program failed.
    """
    runs: list[Run] = []
    ids: dict[int, set[str]] = {}
    for micro_batches in bed.bench.micro_batches:
        settings = {"client": {"micro_batches": micro_batches}} if micro_batches else {}
        await bed.swarm.start_client(settings)
        for batch_size in bed.bench.batch_sizes:
            found, hashes = await _measure_one(bed, children, local, micro_batches, batch_size)
            runs += found
            ids.setdefault(batch_size, set()).update(hashes)
    differing = [hashes for hashes in ids.values() if len(hashes) > 1]
    return runs, differing[0] if differing else set(next(iter(ids.values())))


async def _measure_one(
    bed: Bed, children: Children, local: Child | None, micro_batches: int, batch_size: int
) -> tuple[list[Run], set[str]]:
    prompts = bed.model.prompts[:batch_size]
    question = Question(prompts=prompts, new_tokens=bed.bench.new_tokens)
    # Smaller batches too, for the compute bound; in the middle of the answers, so that their
    # caches are as long as those of the steady part on average.
    middle = max(0, bed.bench.new_tokens - WARM_UP_TOKENS) // 2
    longer = [list(islice(cycle(prompt), len(prompt) + middle)) for prompt in prompts]
    sizes = sorted({math.ceil(batch_size / 4), math.ceil(batch_size / 2), batch_size})
    warm_ups = [await bed.warm_up(longer[:rows]) for rows in sizes]
    if local is not None:
        await ask_local(children, local, question.model_copy(update={"new_tokens": 2}))
    ours: list[Measured] = []
    theirs: list[Measured] = []
    for number in range(1, bed.bench.repeat + 1):
        of = f"{number} of {bed.bench.repeat}"
        say(f"Measuring {batch_size} sequences, {of}")
        ours.append(await bed.generate(question))
        if local is not None:
            theirs.append(await ask_local(children, local, question))
    run = swarm_run("shoal", ours, warm_ups, bed.limits(), bed.shape(micro_batches))
    runs = [run.model_copy(update=placement_fields(bed.bench, bed.model.spans, run))]
    if theirs:
        runs.append(local_run("local", theirs))
    return runs, {measured.ids_sha256 for measured in (*ours, *theirs)}


async def ask_local(children: Children, local: Child, question: Question) -> Measured:
    """The same generation by the local reference.

    Raises:
        BenchFailed: It failed.
    """
    answer = await children.first(local.ask(question.model_dump(), time_limit_s(question)))
    return Measured.model_validate(answer)
