from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import torch
from scipy.stats import chisquare
from transformers import AutoModelForCausalLM

from engine.client.client import Client
from engine.config import ClientConfig, StageConfig
from engine.core.errors import CacheFull, ContextTooLong, EngineError, StageRefused
from engine.core.generation import FinishReason, Lossy
from engine.core.kv_room import kv_room
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import FAST, LocalSwarm, collect, local_swarm

WHOLE = (Span(0, 4),)
THREE = (Span(0, 1), Span(1, 3), Span(3, 4))
PROMPTS = [[5, 6, 7], list(range(20, 60)), [9], [3, 1, 4, 1, 5, 9, 2, 6]]


# Starting a worker takes longer than most of the tests, so those that break nothing share swarms.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tiny: Path) -> AsyncIterator[LocalSwarm]:
    config = StageConfig(kv_budget_bytes=1 << 20)  # 1024 tokens of this model
    impatient = ClientConfig(room_wait_s=20.0, max_attempts=2)
    async with local_swarm(tiny, *WHOLE, config=config, client=impatient) as swarm:
        yield swarm


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def three(tiny: Path) -> AsyncIterator[LocalSwarm]:
    config = StageConfig(max_batch_tokens=32)
    # Encoded, so that every test with it shows too that encoding changes nothing.
    links = FAST.model_copy(update={"codec": "lossless"})
    async with local_swarm(tiny, *THREE, config=config, links=links) as swarm:
        yield swarm


def reference(directory: Path, prompt: list[int], new_tokens: int) -> list[int]:
    """What `transformers` generates greedily."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    output = model.generate(
        torch.tensor([prompt]),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return output[0, len(prompt) :].tolist()


def greedy(new_tokens: int) -> SamplingParams:
    return SamplingParams(max_new_tokens=new_tokens)


async def idle(swarm: LocalSwarm) -> None:
    """Wait until no stage holds a session, which is soon."""
    async with asyncio.timeout(15):
        while any(stage.handler.num_sessions for stage in swarm.stages):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("swarm_name", ["whole", "three"])
async def test_batch_of_mixed_lengths_equals_local_greedy(
    tiny: Path, swarm_name: str, whole: LocalSwarm, three: LocalSwarm
) -> None:
    swarm = {"whole": whole, "three": three}[swarm_name]
    client = await swarm.add_client(f"batch-{swarm_name}")
    events = await collect(client, PROMPTS, [greedy(12)] * len(PROMPTS))
    for prompt, got in zip(PROMPTS, events, strict=True):
        assert [event.id for event in got] == reference(tiny, prompt, 12)
        assert got[-1].finish is FinishReason.LENGTH
        assert all(event.finish is None for event in got[:-1])


async def test_rounded_hidden_states_are_only_for_requests_that_allow_them(
    three: LocalSwarm, tiny: Path
) -> None:
    prompts = [PROMPTS[1], PROMPTS[1][::-1]]
    exact, allowed = three.client(await three.node("exact")), await three.add_client("allowed")
    links = three.stages[0].links

    async def run(client: Client, lossy: Lossy) -> list[list[int]]:
        answers: list[list[int]] = [[] for _ in prompts]
        async for index, event in client.generate(prompts, [greedy(8)] * 2, lossy=lossy):
            answers[index].append(event.id)
        return answers

    rounded = await run(allowed, "rows8")
    assert links.neighbours.link_facts()[three.stages[1].peer].codec == "rows8"
    assert [len(answer) for answer in rounded] == [8, 8]
    beside, again = await asyncio.gather(run(exact, ""), run(allowed, "rows8"))
    assert beside == [reference(tiny, prompt, 8) for prompt in prompts]
    assert [len(answer) for answer in again] == [8, 8]
    assert await run(exact, "") == beside
    assert links.neighbours.link_facts()[three.stages[1].peer].codec in {"lossless", "raw"}


async def test_rows_of_a_batch_share_their_forward_passes(whole: LocalSwarm) -> None:
    before = whole.stages[0].handler.pace.forwards
    await collect(await whole.add_client("sharing"), PROMPTS, [greedy(20)] * len(PROMPTS))
    assert whole.stages[0].handler.pace.forwards - before <= 20 + 2


async def test_stop_token_ends_the_row_and_frees_its_room(tiny: Path, three: LocalSwarm) -> None:
    expected = reference(tiny, PROMPTS[0], 12)
    stop = expected[3]
    params = SamplingParams(max_new_tokens=12, stop_token_ids=(stop,))
    (events,) = await collect(await three.add_client("stop"), [PROMPTS[0]], [params])
    assert [event.id for event in events] == expected[: expected.index(stop) + 1]
    assert events[-1].finish is FinishReason.STOP
    await idle(three)


async def test_fixed_seed_gives_the_same_sample_on_one_and_on_three_stages(
    whole: LocalSwarm, three: LocalSwarm
) -> None:
    params = [
        SamplingParams(temperature=1.0, top_p=0.9, seed=7, choice=choice, max_new_tokens=12)
        for choice in range(2)
    ]
    one, other = [
        await collect(await swarm.add_client("seed"), [PROMPTS[0]] * 2, params)
        for swarm in (whole, three)
    ]
    assert one == other
    assert [event.id for event in one[0]] != [event.id for event in one[1]]


async def test_next_token_frequencies_match_softmax_of_the_models_logits(
    tiny: Path, whole: LocalSwarm
) -> None:
    draws, prompt = 3000, PROMPTS[3]
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1].double()
    client = await whole.add_client("frequencies")
    counts = np.zeros(len(logits))
    for first_seed in range(0, draws, 100):
        params = [
            SamplingParams(temperature=1.0, seed=seed, max_new_tokens=1)
            for seed in range(first_seed, first_seed + 100)
        ]
        for (event,) in await collect(client, [prompt] * 100, params):
            counts[event.id] += 1

    def p_value(temperature: float) -> float:
        expected = draws * (logits / temperature).softmax(-1).numpy()
        often = expected >= 5  # what chi-square needs of each cell
        observed = np.append(counts[often], counts[~often].sum())
        return float(chisquare(observed, np.append(expected[often], expected[~often].sum())).pvalue)

    assert p_value(1.0) > 1e-3
    assert p_value(1.2) < 1e-3, "a sampler that is off by a fifth in temperature must fail"


async def test_logprobs_arrive_with_the_tokens(three: LocalSwarm) -> None:
    params = SamplingParams(max_new_tokens=3, logprobs=2)
    (events,) = await collect(await three.add_client("logprobs"), [PROMPTS[0]], [params])
    for event in events:
        assert event.logprobs is not None
        assert event.logprobs.top[0] == (event.id, pytest.approx(event.logprobs.logprob))
        assert len(event.logprobs.top) == 2


async def test_closing_the_generator_frees_the_session_at_every_stage(three: LocalSwarm) -> None:
    client = await three.add_client("closing")
    async with contextlib.aclosing(client.generate([PROMPTS[0]], [greedy(400)])) as events:
        await anext(events)
        assert [stage.handler.num_sessions for stage in three.stages] == [1, 1, 1]
    await idle(three)


async def test_long_prompt_is_prefilled_in_chunks_with_the_same_result(
    tiny: Path, three: LocalSwarm
) -> None:
    prompt = [token % 500 for token in range(3, 203)]
    before = three.stages[1].handler.pace.forwards
    (events,) = await collect(await three.add_client("chunks"), [prompt], [greedy(5)])
    assert three.stages[1].handler.pace.forwards - before >= 200 // 32 + 4
    assert [event.id for event in events] == reference(tiny, prompt, 5)


async def test_decoding_goes_on_while_a_long_prompt_is_prefilled(three: LocalSwarm) -> None:
    prompt = [token % 500 for token in range(1800)]
    chatting, long = await three.add_client("chat"), await three.add_client("long")
    order: list[str] = []

    async def run(name: str, client: Client, ids: list[int], new_tokens: int) -> None:
        async for _ in client.generate([ids], [greedy(new_tokens)]):
            order.append(name)  # noqa: PERF401 - the order of the two is the point

    chat = asyncio.create_task(run("chat", chatting, [5, 6], 60))
    await asyncio.sleep(0.1)
    await asyncio.gather(chat, run("long", long, prompt, 1))
    assert order[: order.index("long")].count("chat") > 10


async def test_requests_wait_for_room_and_then_run(whole: LocalSwarm) -> None:
    clients = [await whole.add_client(f"waiting-{number}") for number in range(3)]
    results = await asyncio.gather(
        *(collect(client, [PROMPTS[0]], [greedy(700)]) for client in clients)
    )
    assert {len(events) for (events,) in results} == {700}


async def test_request_that_never_fits_is_told_the_limit(whole: LocalSwarm) -> None:
    client = await whole.add_client("too-much")
    with pytest.raises(StageRefused, match="room for 1024 in all"):
        await collect(client, [PROMPTS[0]] * 2, [greedy(600)] * 2)


async def test_request_that_waits_too_long_is_told_why(whole: LocalSwarm) -> None:
    holder = whole.client(await whole.node("holder"))
    hurried = whole.client(await whole.node("hurried"), ClientConfig(room_wait_s=0, max_attempts=1))
    async with contextlib.aclosing(holder.generate([[1]], [greedy(900)])) as generation:
        await anext(generation)
        with pytest.raises(CacheFull, match="No KV room"):
            await collect(hurried, [PROMPTS[0]], [greedy(400)])


async def test_a_share_of_the_cache_in_ram_changes_no_token_and_takes_room_there(
    tiny: Path, three: LocalSwarm
) -> None:
    config = ClientConfig(kv_offload=0.5)
    client = three.client(await three.node("offloading"), config)
    totals = [stage.handler.kv_tokens[1] for stage in three.stages]
    answers: list[list[int]] = [[] for _ in PROMPTS]
    async for index, event in client.generate(PROMPTS, [greedy(12)] * len(PROMPTS)):
        answers[index].append(event.id)
        if sum(map(len, answers)) == 1:
            near, far = kv_room(len(PROMPTS[1]) + 12, 0.5)
            for stage, total in zip(three.stages, totals, strict=True):
                free = stage.handler.kv_tokens[0]
                assert total.device - free.device > near
                assert total.ram - free.ram > far
    assert answers == [reference(tiny, prompt, 12) for prompt in PROMPTS]
    await idle(three)
    assert [stage.handler.kv_tokens[0].ram for stage in three.stages] == [t.ram for t in totals]


async def test_share_in_ram_that_no_stage_has_room_for_is_refused(tiny: Path) -> None:
    config, client = StageConfig(kv_ram_budget_bytes=0), ClientConfig(kv_offload=0.5)
    async with local_swarm(tiny, *WHOLE, config=config, client=client) as swarm:
        with pytest.raises(StageRefused, match=r"lower client\.kv_offload"):
            await collect(await swarm.add_client(), PROMPTS[:1], [greedy(5)])


async def test_prompt_beyond_the_context_is_refused_with_both_numbers(whole: LocalSwarm) -> None:
    client = await whole.add_client("beyond")
    context = whole.spec.max_position_embeddings
    with pytest.raises(ContextTooLong, match=f"{context + 5} tokens.*{context} tokens"):
        await collect(client, [[1] * (context + 5)], [greedy(1)])


async def test_killed_worker_is_routed_around_until_there_is_no_spare(tiny: Path) -> None:
    impatient = ClientConfig(max_attempts=2, room_wait_s=1.0)
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), Span(2, 4), client=impatient) as swarm:
        client = await swarm.add_client()
        ids = []
        async for _, event in client.generate([PROMPTS[0]], [greedy(40)]):
            ids.append(event.id)
            if len(ids) == 5:  # s1 is in use: its id comes before s2's
                os.kill(swarm.stages[1].worker.pid, signal.SIGKILL)
        assert swarm.stages[1].serving.done()
        assert ids == reference(tiny, PROMPTS[0], 40)
        generation = client.generate([PROMPTS[0]], [greedy(400)])
        await anext(generation)
        os.kill(swarm.stages[2].worker.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"Nobody serves blocks 2–3|compute process ended"):
            [_ async for _ in generation]


async def test_vanished_node_is_routed_around_without_changing_a_token(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), Span(2, 4)) as swarm:
        client = await swarm.add_client()
        ids = []
        async for _, event in client.generate([PROMPTS[0]], [greedy(40)]):
            ids.append(event.id)
            if len(ids) == 5:
                swarm.network.kill(swarm.stages[1].peer)
    assert ids == reference(tiny, PROMPTS[0], 40)
