from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest
import pytest_asyncio

from engine.client.client import Client
from engine.config import ClientConfig, StageConfig
from engine.core.generation import PrefixUse, TokenEvent
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import LocalSwarm, local_swarm
from tests.support.stages import prompts as random_prompts

TWO = (Span(0, 2), Span(2, 4))
GREEDY = SamplingParams(max_new_tokens=8)
PENALISED = SamplingParams(
    temperature=0.9,
    top_p=0.95,
    seed=5,
    repetition_penalty=1.3,
    presence_penalty=0.4,
    frequency_penalty=0.3,
    max_new_tokens=8,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tiny: Path) -> AsyncIterator[LocalSwarm]:
    # 2048 tokens of this model per stage, of which 512 may be kept.
    async with local_swarm(
        tiny, *TWO, config=StageConfig(kv_budget_bytes=1 << 20, max_batch_tokens=64)
    ) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def client(two: LocalSwarm, request: pytest.FixtureRequest) -> Client:
    """Another client for each test: nobody sees what others have left."""
    return await two.add_client(request.node.name)


def prompt(length: int, seed: int) -> list[int]:
    return random_prompts(length, seed=seed)[0]


class Counted:
    """What a stage has computed and reused in a `with` block."""

    def __init__(self, swarm: LocalSwarm) -> None:
        self._paces = [stage.handler.pace for stage in swarm.stages]

    def __enter__(self) -> Self:
        self._before = [(pace.tokens, pace.reused_tokens) for pace in self._paces]
        return self

    def __exit__(self, *_: object) -> None:
        now = [(pace.tokens, pace.reused_tokens) for pace in self._paces]
        self.computed = [n[0] - b[0] for n, b in zip(now, self._before, strict=True)]
        self.reused = [n[1] - b[1] for n, b in zip(now, self._before, strict=True)]


async def ask(
    client: Client,
    prompts: list[list[int]],
    params: SamplingParams | list[SamplingParams] = GREEDY,
    use: PrefixUse | None = None,
) -> list[list[TokenEvent]]:
    many = params if isinstance(params, list) else [params] * len(prompts)
    events: list[list[TokenEvent]] = [[] for _ in prompts]
    async for index, event in client.generate(prompts, many, use):
        events[index].append(event)
    return events


async def fill(client: Client) -> None:
    """Take all the room of both stages for a moment, so that nothing is kept."""
    all_of_it = SamplingParams(max_new_tokens=2048 - 1)
    async with contextlib.aclosing(client.generate([[1]], [all_of_it])) as generation:
        await anext(generation)


def ids(events: list[list[TokenEvent]]) -> list[list[int]]:
    return [[event.id for event in row] for row in events]


@pytest.mark.parametrize("params", [GREEDY, PENALISED], ids=["greedy", "sampled"])
async def test_next_turn_computes_only_what_is_new_and_says_the_same(
    two: LocalSwarm, client: Client, params: SamplingParams
) -> None:
    first = prompt(100, seed=1)
    (answer,) = ids(await ask(client, [first], params))
    second = [*first, *answer, *prompt(20, seed=2)]
    with Counted(two) as plainly:
        expected = await ask(client, [second], params, PrefixUse.NONE)
    with Counted(two) as again:
        events = await ask(client, [second], params)
    assert ids(events) == ids(expected)
    assert plainly.reused == [0, 0]
    assert again.reused == [96, 96]
    assert [a + 96 for a in again.computed] == plainly.computed
    assert [event.reused_tokens for event in events[0]] == [96, *[0] * 7]


async def test_same_prompt_again_computes_its_last_tokens(two: LocalSwarm, client: Client) -> None:
    words = prompt(64, seed=3)
    once = await ask(client, [words])
    with Counted(two) as again:
        assert ids(await ask(client, [words])) == ids(once)
    assert again.reused == [32, 32]


@pytest.mark.parametrize("params", [GREEDY, PENALISED], ids=["greedy", "sampled"])
async def test_rows_that_begin_alike_compute_it_once(
    two: LocalSwarm, client: Client, params: SamplingParams
) -> None:
    common = prompt(70, seed=4)
    rows = [[*common, *prompt(5 + n, seed=50 + n)] for n in range(6)]
    rows += [[*rows[0], *prompt(9, seed=60)], prompt(40, seed=61)]
    with Counted(two) as plainly:
        expected = await ask(client, rows, params, PrefixUse.NONE)
    with Counted(two) as shared:
        got = await ask(client, rows, params)
    assert ids(got) == ids(expected)
    saved = 5 * 70 + 75
    assert shared.reused == [saved, saved]
    assert [computed + saved for computed in shared.computed] == plainly.computed


async def test_choices_of_one_prompt_compute_it_once(two: LocalSwarm, client: Client) -> None:
    words = prompt(90, seed=5)
    params = [
        SamplingParams(temperature=1.0, seed=3, choice=choice, max_new_tokens=6)
        for choice in range(4)
    ]
    expected = await ask(client, [words] * 4, params, PrefixUse.NONE)
    with Counted(two) as shared:
        assert ids(await ask(client, [words] * 4, params)) == ids(expected)
    assert shared.computed == [90 + 3 + 4 * 5] * 2


async def test_answers_that_run_at_the_same_time_share_their_beginning(
    two: LocalSwarm, client: Client
) -> None:
    words, long = prompt(100, seed=20), SamplingParams(max_new_tokens=200)
    second = [*words, *prompt(30, seed=21)]
    expected = ids(await ask(client, [second], use=PrefixUse.NONE))
    with Counted(two) as beside:
        async with contextlib.aclosing(client.generate([words], [long])) as generation:
            await anext(generation)
            assert ids(await ask(client, [second])) == expected
    assert beside.reused == [100, 100]


async def test_answers_asked_for_one_by_one_at_once_compute_their_prompt_once(
    two: LocalSwarm, client: Client
) -> None:
    words = prompt(90, seed=26)
    params = [
        SamplingParams(temperature=1.0, seed=3, choice=choice, max_new_tokens=8)
        for choice in range(3)
    ]
    expected = ids(await ask(client, [words] * 3, params, PrefixUse.NONE))
    with Counted(two) as beside:
        found = await asyncio.gather(*(ask(client, [words], [param]) for param in params))
    assert [ids(events)[0] for events in found] == expected
    assert beside.reused == [2 * 89, 2 * 89]


async def test_answer_that_has_ended_is_reused_while_another_still_runs(
    two: LocalSwarm, client: Client
) -> None:
    words = [prompt(60, seed=24), prompt(20, seed=25)]
    short, long = SamplingParams(max_new_tokens=8), SamplingParams(max_new_tokens=300)
    answer: list[int] = []
    async with contextlib.aclosing(client.generate(words, [short, long])) as generation:
        while len(answer) < 8:
            index, event = await anext(generation)
            answer += [event.id] * (index == 0)
        events = await ask(client, [[*words[0], *answer, 5, 6]])
    assert events[0][0].reused_tokens == 60 + 7  # the last one was never computed


async def test_each_of_many_chats_goes_on_from_its_own_last_turn(
    two: LocalSwarm, client: Client
) -> None:
    await fill(client)
    system = prompt(40, seed=22)
    first = [[*system, *prompt(90, seed=30 + n)] for n in range(3)]
    answers = ids(await ask(client, first))
    second = [[*row, *answer, 7, 8, 9] for row, answer in zip(first, answers, strict=True)]
    expected = ids(await ask(client, second, use=PrefixUse.NONE))
    events = await ask(client, second)
    assert ids(events) == expected
    assert [row[0].reused_tokens for row in events] == [128, 128, 128]


async def test_others_find_nothing_unless_both_share(two: LocalSwarm) -> None:
    words = prompt(80, seed=6)
    private, stranger = [await two.add_client(name) for name in ("private", "stranger")]
    expected = ids(await ask(private, [words]))
    with Counted(two) as seen:
        assert ids(await ask(stranger, [words], use=PrefixUse.SHARED)) == expected
    assert seen.reused == [0, 0]
    with Counted(two) as seen:  # the stranger shares, but this one does not
        await ask(await two.add_client("shy"), [words], use=PrefixUse.OWN)
    assert seen.reused == [0, 0]
    sharing = two.client(await two.node("sharing"), ClientConfig(share_prefixes=True))
    with Counted(two) as seen:
        assert ids(await ask(sharing, [words])) == expected
    assert seen.reused == [64, 64]


async def test_what_is_kept_gives_way_to_a_session(two: LocalSwarm, client: Client) -> None:
    words = prompt(120, seed=7)
    expected = ids(await ask(client, [words]))
    await fill(client)
    with Counted(two) as again:
        assert ids(await ask(client, [words])) == expected
    assert again.reused == [0, 0]


async def test_chat_that_leaves_no_room_for_a_copy_is_still_reused(
    two: LocalSwarm, client: Client
) -> None:
    words = prompt(200, seed=9)
    (answer,) = ids(await ask(client, [words]))
    second, long = [*words, *answer, 3], SamplingParams(max_new_tokens=2048 - 209)
    with Counted(two) as again:
        async with contextlib.aclosing(client.generate([second], [long])) as generation:
            _, event = await anext(generation)
    assert again.reused == [192, 192]
    assert [[event.id]] == ids(
        await ask(client, [second], SamplingParams(max_new_tokens=1), PrefixUse.NONE)
    )


async def test_on_a_gpu_a_chat_that_leaves_no_room_for_a_copy_is_computed_again(tiny: Path) -> None:
    # 2048 tokens of this model. A GPU's KV lies in pages, which cannot become another session's.
    config = StageConfig(kv_budget_bytes=2 << 20, max_batch_tokens=64)
    async with local_swarm(tiny, config=config) as swarm:
        await swarm.add_stage("s0", Span(0, 4), decides_as_on="cuda")
        client = await swarm.add_client()
        words = prompt(200, seed=21)
        for tokens, reused in ((2048 - 201, 0), (512, 192)):
            await ask(client, [words])
            long = SamplingParams(max_new_tokens=tokens)
            async with contextlib.aclosing(client.generate([[*words, 3]], [long])) as generation:
                _, event = await anext(generation)
            assert event.reused_tokens == reused


async def test_kept_prefixes_stay_within_their_share(two: LocalSwarm, client: Client) -> None:
    words = [prompt(200, seed=seed) for seed in range(10, 14)]
    one = SamplingParams(max_new_tokens=1)
    for row in words:
        await ask(client, [row], one)
    events = await ask(client, words, one)
    assert [row[0].reused_tokens for row in events] == [0, 0, 192, 192]


async def test_what_came_of_rounded_states_is_kept_for_nobody(
    two: LocalSwarm, client: Client
) -> None:
    words = prompt(80, seed=70)
    with Counted(two) as seen:
        async for _ in client.generate([words], [GREEDY], lossy="rows8"):
            pass
        exact = await ask(client, [words])
        async for _ in client.generate([words], [GREEDY], lossy="rows8"):
            pass
    assert seen.reused == [0, 0]
    assert ids(exact) == ids(await ask(client, [words], use=PrefixUse.NONE))


async def test_lost_stage_changes_no_token_of_sequences_that_share(tiny: Path) -> None:
    long = SamplingParams(max_new_tokens=40)
    async with local_swarm(tiny, *TWO, Span(2, 4)) as swarm:
        client = await swarm.add_client()
        common = prompt(80, seed=80)
        rows = [[*common, *prompt(10, seed=81 + n)] for n in range(3)]
        expected = ids(await ask(client, rows, long, PrefixUse.NONE))
        await ask(client, [common])
        found: list[list[int]] = [[] for _ in rows]
        async for index, event in client.generate(rows, [long] * 3):
            found[index].append(event.id)
            if index == 0 and len(found[0]) == 5:  # s1 is in use: its id comes before s2's
                os.kill(swarm.stages[1].worker.pid, signal.SIGKILL)
    assert swarm.stages[1].serving.done()
    assert found == expected
