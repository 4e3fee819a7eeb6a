from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.config import ClientConfig, StageConfig
from engine.core.errors import CacheFull, ContextTooLong, EngineError, StageRefused
from engine.core.generation import FinishReason
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import collect, local_swarm
from tests.support.tiny_models import save_tiny

WHOLE = (Span(0, 4),)
THREE = (Span(0, 1), Span(1, 3), Span(3, 4))
PROMPTS = [[5, 6, 7], list(range(20, 60)), [9], [3, 1, 4, 1, 5, 9, 2, 6]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=2048)
    return directory


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


@pytest.mark.parametrize("spans", [WHOLE, THREE], ids=["one-stage", "three-stages"])
async def test_batch_of_mixed_lengths_equals_local_greedy(
    tiny: Path, spans: tuple[Span, ...]
) -> None:
    async with local_swarm(tiny, *spans) as swarm:
        client = await swarm.add_client()
        events = await collect(client, PROMPTS, [greedy(12)] * len(PROMPTS))
    for prompt, got in zip(PROMPTS, events, strict=True):
        assert [event.id for event in got] == reference(tiny, prompt, 12)
        assert got[-1].finish is FinishReason.LENGTH
        assert all(event.finish is None for event in got[:-1])


async def test_stop_token_ends_the_row_and_frees_its_room(tiny: Path) -> None:
    expected = reference(tiny, PROMPTS[0], 12)
    stop = expected[3]
    params = SamplingParams(max_new_tokens=12, stop_token_ids=(stop,))
    async with local_swarm(tiny, *THREE) as swarm:
        client = await swarm.add_client()
        (events,) = await collect(client, [PROMPTS[0]], [params])
        assert [event.id for event in events] == expected[: expected.index(stop) + 1]
        assert events[-1].finish is FinishReason.STOP
        await asyncio.sleep(0.2)
        assert [stage.handler.num_sessions for stage in swarm.stages] == [0, 0, 0]


async def test_fixed_seed_gives_the_same_sample_on_one_and_on_three_stages(tiny: Path) -> None:
    params = [
        SamplingParams(temperature=1.0, top_p=0.9, seed=7, choice=c, max_new_tokens=12)
        for c in range(2)
    ]
    outputs = []
    for spans in (WHOLE, THREE):
        async with local_swarm(tiny, *spans) as swarm:
            client = await swarm.add_client()
            outputs.append(await collect(client, [PROMPTS[0]] * 2, params))
    assert outputs[0] == outputs[1]
    assert [e.id for e in outputs[0][0]] != [e.id for e in outputs[0][1]]


async def test_logprobs_arrive_with_the_tokens(tiny: Path) -> None:
    params = SamplingParams(max_new_tokens=3, logprobs=2)
    async with local_swarm(tiny, *THREE) as swarm:
        client = await swarm.add_client()
        (events,) = await collect(client, [PROMPTS[0]], [params])
    for event in events:
        assert event.logprobs is not None
        assert event.logprobs.top[0] == (event.id, pytest.approx(event.logprobs.logprob))
        assert len(event.logprobs.top) == 2


async def test_closing_the_generator_frees_the_session_at_every_stage(tiny: Path) -> None:
    async with local_swarm(tiny, *THREE) as swarm:
        client = await swarm.add_client()
        generation = client.generate([PROMPTS[0]], [greedy(400)])
        async with contextlib.aclosing(generation) as events:
            await anext(events)
            assert [stage.handler.num_sessions for stage in swarm.stages] == [1, 1, 1]
        await asyncio.sleep(0.2)
        assert [stage.handler.num_sessions for stage in swarm.stages] == [0, 0, 0]


async def test_long_prompt_is_prefilled_in_chunks_with_the_same_result(tiny: Path) -> None:
    prompt = [token % 500 for token in range(3, 203)]
    async with local_swarm(tiny, *THREE, config=StageConfig(max_batch_tokens=32)) as swarm:
        client = await swarm.add_client()
        (events,) = await collect(client, [prompt], [greedy(5)])
        assert swarm.stages[1].handler.pace.forwards >= 200 // 32 + 5
    assert [event.id for event in events] == reference(tiny, prompt, 5)


async def test_killed_worker_is_routed_around_without_changing_a_token(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), Span(2, 4)) as swarm:
        client = await swarm.add_client()
        ids = []
        async for _, event in client.generate([PROMPTS[0]], [greedy(40)]):
            ids.append(event.id)
            if len(ids) == 5:  # s1 is in use: its id comes before s2's
                os.kill(swarm.stages[1].worker.pid, signal.SIGKILL)
        assert swarm.stages[1].serving.done()
    assert ids == reference(tiny, PROMPTS[0], 40)


async def test_vanished_node_is_routed_around_without_changing_a_token(tiny: Path) -> None:
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), Span(2, 4)) as swarm:
        client = await swarm.add_client()
        ids = []
        async for _, event in client.generate([PROMPTS[0]], [greedy(40)]):
            ids.append(event.id)
            if len(ids) == 5:
                swarm.network.kill(swarm.stages[1].peer)
        await asyncio.sleep(0)
    assert ids == reference(tiny, PROMPTS[0], 40)


async def test_without_a_spare_the_error_says_what_is_missing(tiny: Path) -> None:
    async with local_swarm(
        tiny, Span(0, 2), Span(2, 4), client=ClientConfig(max_attempts=2)
    ) as swarm:
        client = await swarm.add_client()
        generation = client.generate([PROMPTS[0]], [greedy(400)])
        await anext(generation)
        os.kill(swarm.stages[1].worker.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"Nobody serves blocks 2–3|compute process ended"):
            [_ async for _ in generation]


async def test_prompt_beyond_the_context_is_refused_with_both_numbers(tiny: Path) -> None:
    async with local_swarm(tiny, *WHOLE) as swarm:
        client = await swarm.add_client()
        context = swarm.spec.max_position_embeddings
        with pytest.raises(ContextTooLong, match=f"{context + 5} tokens.*{context} tokens"):
            await collect(client, [[1] * (context + 5)], [greedy(1)])


async def test_requests_wait_for_room_and_then_run(tiny: Path) -> None:
    config = StageConfig(kv_budget_bytes=1 << 20)  # 1024 tokens of this model
    async with local_swarm(tiny, *WHOLE, config=config) as swarm:
        clients = [await swarm.add_client(f"c{n}") for n in range(3)]
        results = await asyncio.gather(
            *(collect(client, [PROMPTS[0]], [greedy(700)]) for client in clients)
        )
    assert {len(events) for (events,) in results} == {700}


async def test_request_that_never_fits_is_told_so_and_one_that_waits_too_long_too(
    tiny: Path,
) -> None:
    config = StageConfig(kv_budget_bytes=1 << 20)
    quick = ClientConfig(room_wait_s=0.2, max_attempts=2)
    async with local_swarm(tiny, *WHOLE, config=config, client=quick) as swarm:
        client = await swarm.add_client()
        with pytest.raises(StageRefused, match="room for 1024 in all"):
            await collect(client, [PROMPTS[0]] * 2, [greedy(600)] * 2)
        async with contextlib.aclosing(client.generate([[1]], [greedy(800)])) as holder:
            await anext(holder)
            with pytest.raises(CacheFull, match="No KV room"):
                await collect(await swarm.add_client("late"), [PROMPTS[0]], [greedy(400)])


async def test_decoding_goes_on_while_a_long_prompt_is_prefilled(tiny: Path) -> None:
    prompt = [token % 500 for token in range(1800)]
    async with local_swarm(tiny, *THREE) as swarm:
        chatting, long = await swarm.add_client("a"), await swarm.add_client("b")
        order: list[str] = []

        async def chat() -> None:
            async for index, _ in chatting.generate([[5, 6]], [greedy(60)]):
                order.append("chat" if index == 0 else "wrong")

        async def read() -> None:
            async for index, _ in long.generate([prompt], [greedy(1)]):
                order.append("long" if index == 0 else "wrong")

        chat_task = asyncio.create_task(chat())
        await asyncio.sleep(0.1)
        await asyncio.gather(chat_task, read())
    before_long = order[: order.index("long")]
    assert len(before_long) > 10
