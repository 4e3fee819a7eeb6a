"""Answers with drafts are those without, whatever is drafted and whatever happens on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from engine.client.client import Client
from engine.client.drafting import Drafting
from engine.config import ClientConfig, StageConfig
from engine.core.generation import Speculation, TokenEvent
from engine.core.plans import Span
from engine.core.protocol_window import OURS, ProtocolWindow
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.rows import ROW_BYTES
from engine.speculation.tree import Draft, TokenTree
from tests.support.drafted_answers import Moody, check_same, counts
from tests.support.drafting import Echo, Prophet, Reciter
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.losing_stages import (
    NEW_TOKENS,
    PARAMS,
    PATIENT,
    SPANS,
    SPARE,
    BrokenLinks,
    at,
    lose,
    spared,
)

PROMPTS = [list(range(20, 90)), [5, 6, 7], [9], [3, 1, 4, 1, 5, 9, 2, 6]]
GREEDY = PARAMS[0]
PENALISED = replace(PARAMS[1], logprobs=2)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tiny: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(tiny, *SPANS, config=StageConfig(max_batch_tokens=64)) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    with spared(shared):
        yield shared


PARAMS = [GREEDY, PENALISED, GREEDY, PENALISED]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(shared: LocalSwarm) -> list[list[TokenEvent]]:
    with spared(shared):
        return await collect(shared.client(await shared.node("plain"), PATIENT), PROMPTS, PARAMS)


def prophets(plain: Sequence[Sequence[TokenEvent]], **options: float) -> Callable[[], Draft]:
    """A draft for each of `PROMPTS`, in their order."""
    truths = [
        [*prompt, *(event.id for event in events)]
        for prompt, events in zip(PROMPTS, plain, strict=False)
    ]
    made = iter([Prophet(truth, seed=i, **options) for i, truth in enumerate(truths)])
    return lambda: next(made)


def reciters(plain: Sequence[Sequence[TokenEvent]], **options: float) -> list[Reciter]:
    """The same, whose chunks can set out before there is a verdict on the last one."""
    return [
        Reciter([*prompt, *(event.id for event in events)], seed=i, **options)
        for i, (prompt, events) in enumerate(zip(PROMPTS, plain, strict=False))
    ]


async def generate(
    client: Client,
    make_draft: Callable[[], Draft],
    *,
    num_tokens: int = 12,
    ahead: int = 1,
    beside: bool = False,
    disturb: Callable[[int], None] = lambda tokens: None,
    params: Sequence[SamplingParams] = PARAMS,
    prompts: Sequence[Sequence[int]] = PROMPTS,
) -> list[list[TokenEvent]]:
    drafting = Drafting(make_draft, num_tokens, ahead=ahead, beside=beside)
    return await collect(client, prompts, params, drafting=drafting, disturb=disturb)


@pytest.mark.parametrize("width", [1, 3], ids=["chains", "trees"])
@pytest.mark.parametrize("kv_offload", [0.0, 0.5])
async def test_batch_with_drafts_equals_plain_decoding(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], width: int, kv_offload: float
) -> None:
    config = PATIENT.model_copy(update={"kv_offload": kv_offload})
    client = swarm.client(await swarm.node(f"batch-{width}-{kv_offload}"), config)
    before = swarm.stages[0].handler.pace.forwards
    events = await generate(client, prophets(plain, width=width))
    check_same(events, plain)
    drafted, accepted = counts(events)
    assert 0 < accepted < drafted
    if width == 1:
        assert accepted > len(PROMPTS) * NEW_TOKENS / 3
        assert swarm.stages[0].handler.pace.forwards - before < len(PROMPTS) * NEW_TOKENS / 2


async def test_draft_that_is_always_wrong_changes_nothing(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("wrong"), PATIENT)
    events = await generate(client, prophets(plain, right_share=0.0))
    check_same(events, plain)
    assert counts(events)[1] == 0


async def test_draft_that_says_nothing_is_plain_decoding_led_by_the_client(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("silent"), PATIENT)
    events = await generate(client, Echo, num_tokens=0)
    check_same(events, plain)
    assert counts(events) == (0, 0)


async def test_draft_that_is_always_right_is_several_times_fewer_rounds(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    class Right:
        def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
            truth = [*PROMPTS[0], *(event.id for event in plain[0])]
            return TokenTree.chain(truth[len(ids) : len(ids) + num_tokens])

    client = swarm.client(await swarm.node("right"), PATIENT)
    before = swarm.stages[2].handler.pace.forwards
    events = await generate(client, Right, num_tokens=5, params=[GREEDY], prompts=[PROMPTS[0]])
    check_same(events, plain[:1])
    # The prompt in pieces of 64 tokens, then six tokens a round; the last token needs none of its own.
    assert swarm.stages[2].handler.pace.forwards - before <= 2 + 5


@pytest.mark.parametrize("stages", [1, 3])
async def test_answers_with_several_chunks_on_their_way_equal_plain_decoding(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], stages: int
) -> None:
    if stages == 1:
        swarm.hidden = {stage.peer for stage in swarm.stages} - {SPARE}
    client = swarm.client(await swarm.node(f"ahead-{stages}"), PATIENT)
    drafts = reciters(plain)
    events = await generate(client, iter(drafts).__next__, num_tokens=3, ahead=3)
    check_same(events, plain)
    drafted, accepted = counts(events)
    assert 0 < accepted < drafted
    assert max(draft.longest for draft in drafts) > 6  # more than two chunks were on their way


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("width", [1, 3], ids=["chains", "trees"])
async def test_drafts_beside_the_closed_ring_shorten_answers_and_change_no_token(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], width: int, stages: int
) -> None:
    if stages == 1:
        swarm.hidden = {stage.peer for stage in swarm.stages} - {SPARE}
    client = swarm.client(await swarm.node(f"beside-{width}-{stages}"), PATIENT)
    before = swarm.stages[3 if stages == 1 else 0].handler.pace.tokens
    events = await generate(client, prophets(plain, width=width, right_share=0.9), beside=True)
    check_same(events, plain)
    drafted, accepted = counts(events)
    assert 0 < accepted < drafted
    # What was expected of others' tokens was computed by nobody.
    computed = swarm.stages[3 if stages == 1 else 0].handler.pace.tokens - before
    assert computed <= sum(map(len, PROMPTS)) + len(PROMPTS) * NEW_TOKENS + drafted - accepted


async def test_drafts_beside_the_ring_that_are_never_right_are_as_plain_decoding(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("beside-wrong"), PATIENT)
    before = swarm.stages[0].handler.pace.tokens
    events = await generate(client, prophets(plain, right_share=0.0), beside=True)
    check_same(events, plain)
    assert counts(events) == (0, 0)
    computed = swarm.stages[0].handler.pace.tokens - before
    assert computed <= sum(map(len, PROMPTS)) + len(PROMPTS) * NEW_TOKENS


@pytest.mark.parametrize("old", ["s0", "s1"])
async def test_stages_of_the_release_before_are_not_told_what_may_come(
    tiny: Path, plain: list[list[TokenEvent]], old: str
) -> None:
    before = {old: ProtocolWindow(OURS.oldest, OURS.oldest)}
    async with local_swarm(tiny, Span(0, 2), Span(2, 4), protocols=before) as swarm:
        client = swarm.client(await swarm.node("new"), PATIENT)
        events = await generate(client, prophets(plain), beside=True)
    check_same(events, plain)
    assert counts(events) == (0, 0)


async def test_stop_token_within_a_draft_beside_the_ring_ends_the_answer(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    stop = plain[0][10].id
    end = [event.id for event in plain[0]].index(stop) + 1
    client = swarm.client(await swarm.node("stop-beside"), PATIENT)
    (events,) = await generate(
        client,
        iter(reciters(plain, right_share=1.0)).__next__,
        num_tokens=7,
        beside=True,
        params=[SamplingParams(max_new_tokens=NEW_TOKENS, stop_token_ids=(stop,))],
        prompts=[PROMPTS[0]],
    )
    assert [event.id for event in events] == [event.id for event in plain[0][:end]]
    assert events[-1].finish is not None


async def test_next_turn_finds_what_drafts_beside_the_ring_have_left(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("turns-beside"), ClientConfig(room_wait_s=30.0))
    draft = iter(reciters(plain, right_share=0.9)).__next__
    (first,) = await generate(client, draft, beside=True, params=[GREEDY], prompts=[PROMPTS[0]])
    assert counts([first])[1]
    turn = [*PROMPTS[0], *(event.id for event in first), *range(100, 110)]
    (again,) = await generate(client, Echo, params=[GREEDY], prompts=[turn])
    (alone,) = await collect(swarm.client(await swarm.node("alone-2"), PATIENT), [turn], [GREEDY])
    assert again[0].reused_tokens >= 64
    assert [event.id for event in again] == [event.id for event in alone]


async def test_chunks_that_are_all_right_need_no_row_of_the_sequences_own(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("flows"), PATIENT)
    drafts = reciters(plain, right_share=1.0)
    events = await generate(
        client,
        iter(drafts).__next__,
        num_tokens=4,
        ahead=3,
        params=[GREEDY],
        prompts=[PROMPTS[0]],
    )
    check_same(events, plain[:1])
    drafted, accepted = counts(events)
    # Of each chunk that goes on the first token is the answer to the one before it.
    assert accepted == drafted < NEW_TOKENS - NEW_TOKENS // 5


async def test_stop_token_with_chunks_behind_it_ends_the_answer(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    stop = plain[0][10].id
    end = [event.id for event in plain[0]].index(stop) + 1
    client = swarm.client(await swarm.node("stop-ahead"), PATIENT)
    (events,) = await generate(
        client,
        iter(reciters(plain, right_share=1.0)).__next__,
        num_tokens=3,
        ahead=4,
        params=[SamplingParams(max_new_tokens=NEW_TOKENS, stop_token_ids=(stop,))],
        prompts=[PROMPTS[0]],
    )
    assert [event.id for event in events] == [event.id for event in plain[0][:end]]
    assert events[-1].finish is not None


async def test_ring_is_opened_and_closed_again_within_an_answer_and_no_token_changes(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("moody"), PATIENT)
    moods: list[Moody] = []

    def policy(costs: object, timing: object) -> Moody:
        moods.append(Moody(costs, timing))
        return moods[-1]

    drafting = Drafting(prophets(plain, width=1, right_share=0.9), 4, policy)
    events = await collect(client, PROMPTS, PARAMS, drafting=drafting)
    check_same(events, plain)
    (mood,) = moods
    assert {option.is_plain for option in mood.rounds} == {True, False}
    assert mood.guesses
    assert counts(events)[1]


async def test_drafts_where_they_pay_change_no_token(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("auto"), PATIENT)
    events = await collect(client, PROMPTS, PARAMS, speculation=Speculation("auto"))
    check_same(events, plain)


async def test_stop_token_within_a_draft_ends_the_answer(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    stop = plain[0][10].id
    end = [event.id for event in plain[0]].index(stop) + 1
    params = SamplingParams(max_new_tokens=NEW_TOKENS, stop_token_ids=(stop,))
    client = swarm.client(await swarm.node("stop"), PATIENT)
    (events,) = await generate(
        client,
        prophets(plain, right_share=1.0, width=1),
        params=[params],
        prompts=[PROMPTS[0]],
    )
    assert [event.id for event in events] == [event.id for event in plain[0][:end]]
    assert events[-1].finish is not None


async def test_next_turn_finds_what_a_speculative_answer_has_left(swarm: LocalSwarm) -> None:
    client = swarm.client(await swarm.node("turns"), ClientConfig(room_wait_s=30.0))
    (first,) = await generate(client, Echo, params=[GREEDY], prompts=[PROMPTS[0]])
    turn = [*PROMPTS[0], *(event.id for event in first), *range(100, 110)]
    (again,) = await generate(client, Echo, params=[GREEDY], prompts=[turn])
    (alone,) = await collect(swarm.client(await swarm.node("alone"), PATIENT), [turn], [GREEDY])
    assert again[0].reused_tokens >= 64
    assert [event.id for event in again] == [event.id for event in alone]


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("width", [1, 3], ids=["chains", "trees"])
async def test_stage_that_dies_between_rounds_is_replaced_and_no_token_changes(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], index: int, width: int
) -> None:
    client = swarm.client(await swarm.node(f"loses-{index}-{width}"), PATIENT)
    gone = swarm.stages[index]
    events = await generate(
        client, prophets(plain, width=width), disturb=at(8, lambda: lose(swarm, gone))
    )
    check_same(events, plain)
    assert client.recoveries.seconds
    others = [stage.handler.pace.replayed_tokens for stage in swarm.stages[:index]]
    assert index == 0 or sum(others) > 0  # what was kept went to the spare


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("width", [1, 3], ids=["chains", "trees"])
async def test_stage_that_dies_with_rows_of_expected_tokens_is_replaced_and_no_token_changes(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], index: int, width: int
) -> None:
    client = swarm.client(await swarm.node(f"loses-beside-{index}-{width}"), PATIENT)
    gone = swarm.stages[index]
    events = await generate(
        client,
        prophets(plain, width=width, right_share=0.9),
        beside=True,
        disturb=at(8, lambda: lose(swarm, gone)),
    )
    check_same(events, plain)
    assert client.recoveries.seconds
    assert counts(events)[1]


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_stage_that_dies_with_chunks_on_their_way_is_replaced_and_no_token_changes(
    swarm: LocalSwarm, plain: list[list[TokenEvent]], index: int
) -> None:
    client = swarm.client(await swarm.node(f"loses-ahead-{index}"), PATIENT)
    gone, drafts = swarm.stages[index], reciters(plain)
    events = await generate(
        client,
        iter(drafts).__next__,
        num_tokens=2,
        ahead=4,
        disturb=at(8, lambda: lose(swarm, gone)),
    )
    check_same(events, plain)
    assert client.recoveries.seconds
    assert max(draft.longest for draft in drafts) > 4


async def test_links_that_break_again_and_again_change_no_token(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    client = swarm.client(await swarm.node("flaky"), PATIENT.model_copy(update={"max_attempts": 9}))
    links = BrokenLinks(swarm, times=3)
    events = await generate(client, prophets(plain), disturb=links.see)
    check_same(events, plain)
    assert links.broken == 3


async def test_a_round_takes_few_bytes_each_way(
    swarm: LocalSwarm, plain: list[list[TokenEvent]]
) -> None:
    links = await swarm.node("bytes")
    client = swarm.client(links, PATIENT)
    first, last = swarm.stages[0], swarm.stages[2]
    events = await generate(
        client,
        prophets(plain, right_share=1.0, width=1),
        num_tokens=4,
        params=[GREEDY],
        prompts=[PROMPTS[0]],
    )
    check_same(events, plain[:1])
    rounds = sum(1 for event in events[0] if event.drafted_tokens)
    framing = HEADER_BYTES + ROW_BYTES
    up = links.neighbours.sent_bytes()[first.peer] - framing - 2 * len(PROMPTS[0])
    down = last.links.neighbours.sent_bytes()[links.local_peer] - framing - 2
    assert up <= (NEW_TOKENS - 1) * framing + rounds * 10
    assert rounds < NEW_TOKENS / 2
    assert down / (framing + 2) <= rounds + 2
