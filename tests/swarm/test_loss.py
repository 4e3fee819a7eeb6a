"""Stages and links are lost at any moment; no token changes, and little is computed again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from engine.client.client import Client
from engine.config import ClientConfig, StageConfig
from engine.core.errors import EngineError, PeerDropped, PeerUnreachable
from engine.core.generation import TokenEvent
from engine.core.ids import PeerId
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import StageState
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import message_frame, parse
from engine.protocol.recovery import Notice, RouteRequest
from engine.swarm.links import Links
from tests.support.local_swarm import LocalSwarm, collect, local_swarm
from tests.support.losing_stages import (
    LONG,
    NEW_TOKENS,
    PARAMS,
    PATIENT,
    PROMPTS,
    SPANS,
    SPARE,
    Counted,
    at,
    lose,
    spared,
)

IMPATIENT = ClientConfig(reuse_prefixes=False, room_wait_s=0.5, max_attempts=2)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tiny: Path) -> AsyncIterator[LocalSwarm]:
    async with local_swarm(tiny, *SPANS, config=StageConfig(max_batch_tokens=32)) as swarm:
        yield swarm


@pytest_asyncio.fixture(loop_scope="module")
async def swarm(shared: LocalSwarm) -> AsyncIterator[LocalSwarm]:
    with spared(shared):
        yield shared


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(shared: LocalSwarm) -> list[list[TokenEvent]]:
    with spared(shared):
        client = shared.client(await shared.node("undisturbed"), PATIENT)
        return await collect(client, PROMPTS, PARAMS)


async def generate(
    client: Client,
    disturb: Callable[[int], None],
    prompts: list[list[int]] = PROMPTS,
    params: list[SamplingParams] = PARAMS,
    into: list[list[TokenEvent]] | None = None,
) -> list[list[TokenEvent]]:
    """Generate to the end; `disturb` is told after each token of the first answer how many it has.

    Its prompt is the longest: the others decode, too, or are done, however fast this machine is.
    """
    return await collect(client, prompts, params, disturb=disturb, into=into)


async def newcomer(
    swarm: LocalSwarm, name: str, config: ClientConfig = PATIENT
) -> tuple[Links, Client]:
    links = await swarm.node(name)
    return links, swarm.client(links, config)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("when", [6, 15])
async def test_stage_that_dies_while_decoding_is_replaced_and_it_alone_computes_again(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]], index: int, when: int
) -> None:
    links, client = await newcomer(swarm, f"decode-{index}-{when}")
    counted = Counted(swarm)
    got = await generate(client, at(when, lambda: lose(swarm, swarm.stages[index])))
    assert got == undisturbed
    once = sum(map(len, PROMPTS)) + 2 * NEW_TOKENS
    survivors = [other for other in range(3) if other != index]
    assert all(counted.computed(other) <= once + 6 for other in survivors)
    held = len(PROMPTS[0]) + when - 1
    assert [counted.replayed(other) >= held for other in range(3)] == [
        other == index - 1 for other in range(3)
    ]
    assert client.recoveries.stages_replaced == 1
    assert len(client.recoveries.seconds) == 1
    assert links.hidden_bytes == 0


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_stage_that_dies_in_the_middle_of_a_prompt_is_replaced(
    swarm: LocalSwarm, index: int
) -> None:
    params = [SamplingParams(max_new_tokens=4)]
    expected = await collect((await newcomer(swarm, f"whole-{index}"))[1], [LONG], params)
    _, client = await newcomer(swarm, f"prefill-{index}")
    counted = Counted(swarm)

    async def lose_midway() -> None:
        while counted.computed(index) < len(LONG) // 3:
            await asyncio.sleep(0)
        assert counted.computed(index) < len(LONG)
        lose(swarm, swarm.stages[index])

    losing = asyncio.create_task(lose_midway())
    assert await generate(client, lambda tokens: None, [LONG], params) == expected
    await losing
    assert client.recoveries.stages_replaced == 1
    if index:
        under_way = 2 * 32  # two passes, whose results came too late to count
        assert counted.computed(0) <= len(LONG) + 4 + under_way


async def test_two_stages_die_at_once(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    links, client = await newcomer(swarm, "two")

    def lose_two() -> None:
        swarm.vanish(swarm.stages[2].peer)
        lose(swarm, swarm.stages[1])

    assert await generate(client, at(5, lose_two)) == undisturbed
    assert links.hidden_bytes == 0


async def test_replacement_dies_too_and_the_first_one_returns(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "again")

    def disturb(tokens: int) -> None:
        if tokens == 3:
            lose(swarm, swarm.stages[1])
        elif tokens == 10:
            swarm.restore(swarm.stages[1].peer)
            swarm.vanish(SPARE)

    assert await generate(client, disturb) == undisturbed
    assert client.recoveries.stages_replaced == 2


async def test_link_that_breaks_though_nobody_died_is_opened_again_and_nobody_replaced(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "broken")
    swarm.hidden = set()
    pairs = [("s0", "s1"), ("s1", "s2"), ("s2", "s0"), ("broken", "s2"), ("broken", "s0")]
    counted = Counted(swarm)

    def disturb(tokens: int) -> None:
        if tokens == 1:
            swarm.hidden = set()
        if tokens % 4 == 2 and pairs:
            one, other = (PeerId(name) for name in pairs.pop())
            swarm.network.cut(one, other)
            swarm.network.heal(one, other)

    swarm.hidden = {SPARE}
    assert await generate(client, disturb) == undisturbed
    assert not pairs
    assert client.recoveries.stages_replaced == 0
    assert counted.computed(3) == 0


async def test_stage_that_notices_a_loss_just_after_it_was_led_is_led_once_more(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    patient = ClientConfig(reuse_prefixes=False, step_timeout_s=3600.0)
    _, client = await newcomer(swarm, "led twice", patient)
    stage = swarm.stages[1]
    attempts = []

    def routed(_: PeerId, frame: Frame) -> None:
        attempts.append(parse(frame, RouteRequest).attempt)
        if attempts == [1]:
            # Behind the answer to ROUTE, so that the client finds both at once.
            late = PeerUnreachable("The connection broke some time ago.")
            asyncio.get_running_loop().call_soon(stage.handler._on_lost, PeerId("s0"), late)

    def part() -> None:
        swarm.network.cut(PeerId("s2"), PeerId("s0"))
        swarm.network.heal(PeerId("s2"), PeerId("s0"))

    stage.links.on([Kind.ROUTE], routed)
    async with asyncio.timeout(30):
        assert await generate(client, at(5, part)) == undisturbed
    assert attempts == [1, 2]
    assert client.recoveries.stages_replaced == 0


async def test_two_stages_that_cannot_reach_each_other_are_led_around(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "pair")

    def part() -> None:
        swarm.network.cut(PeerId("s1"), PeerId("s2"))
        swarm.hidden = set()

    assert await generate(client, at(3, part)) == undisturbed
    assert client.recoveries.stages_replaced == 1


async def test_link_that_swallows_everything_is_led_around(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "hole")

    def swallow() -> None:
        swarm.network.blackhole(PeerId("s0"), PeerId("s1"))
        swarm.hidden = set()

    assert await generate(client, at(3, swallow)) == undisturbed
    assert client.recoveries.stages_replaced == 1


async def test_client_that_loses_all_its_links_goes_on_when_it_is_back(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    links, client = await newcomer(swarm, "cut-off")
    counted = Counted(swarm)

    def vanish() -> None:
        swarm.vanish(links.local_peer)
        asyncio.get_running_loop().call_later(1.0, swarm.restore, links.local_peer)

    assert await generate(client, at(5, vanish)) == undisturbed
    assert client.recoveries.stages_replaced == 0
    once = sum(map(len, PROMPTS)) + 2 * NEW_TOKENS
    assert counted.computed(1) < once + 2 * NEW_TOKENS


async def test_without_a_spare_the_finished_part_is_delivered_and_the_error_says_what_is_missing(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "alone", IMPATIENT)
    events: list[list[TokenEvent]] = [[], []]
    disturb = at(6, lambda: swarm.vanish(swarm.stages[1].peer))
    with pytest.raises(EngineError, match=r"cannot be reached|have just failed"):
        await generate(client, disturb, into=events)
    assert len(events[0]) >= 6
    for got, whole in zip(events, undisturbed, strict=True):
        assert got == whole[: len(got)]


async def test_without_a_spare_the_answer_goes_on_when_the_stage_returns(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "waiting")
    counted = Counted(swarm)

    def vanish() -> None:
        swarm.vanish(swarm.stages[1].peer)
        asyncio.get_running_loop().call_later(1.5, swarm.restore, swarm.stages[1].peer)

    assert await generate(client, at(6, vanish)) == undisturbed
    once = sum(map(len, PROMPTS)) + 2 * NEW_TOKENS
    assert all(counted.computed(index) <= once + 16 for index in range(3))


async def test_request_that_finds_a_stage_gone_as_it_begins_waits_for_another(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    config = PATIENT.model_copy(update={"max_attempts": 2})
    _, client = await newcomer(swarm, "late", config)
    missing = swarm.stages[1].peer
    swarm.vanish(missing)
    answer = asyncio.create_task(collect(client, PROMPTS, PARAMS))
    await asyncio.sleep(0.2)  # it has been asked in vain
    swarm.hidden = {SPARE, missing}
    await asyncio.sleep(2.0)
    swarm.hidden = {missing}
    assert await answer == undisturbed


async def test_stage_that_wants_to_leave_is_let_go_by_who_waits_for_other_blocks(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    _, client = await newcomer(swarm, "let-go")
    gone, leaver = swarm.stages[1], swarm.stages[2]
    events: list[list[TokenEvent]] = [[], []]

    def vanish() -> None:
        swarm.vanish(gone.peer)
        swarm.hidden = {SPARE, gone.peer}

    answer = asyncio.create_task(generate(client, at(6, vanish), into=events))
    while len(events[0]) < 6:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    leaver.state = StageState.DRAINING
    try:
        while leaver.handler.num_sessions:  # at once, not after the limit of two minutes
            await asyncio.sleep(0.01)
        assert not answer.done()
        swarm.hidden = set()
        assert await answer == undisturbed
    finally:
        leaver.state = StageState.ONLINE


async def test_stage_that_hangs_without_losing_its_links_is_replaced(
    swarm: LocalSwarm, undisturbed: list[list[TokenEvent]]
) -> None:
    hasty = PATIENT.model_copy(update={"step_timeout_s": 3.0})
    _, client = await newcomer(swarm, "hanging", hasty)
    worker = swarm.stages[1].worker.pid

    def hang() -> None:
        os.kill(worker, signal.SIGSTOP)
        swarm.hidden = set()

    try:
        assert await generate(client, at(5, hang)) == undisturbed
    finally:
        os.kill(worker, signal.SIGCONT)
    assert client.recoveries.stages_replaced == 1


async def test_stage_can_tell_nothing_of_peers_that_it_has_no_link_to(swarm: LocalSwarm) -> None:
    _, client = await newcomer(swarm, "not to be misled")
    liar = swarm.stages[0]

    def lie() -> None:
        sessions = tuple(client._journeys)
        notice = Notice(
            sessions=sessions, attempt=0, code=PeerDropped.code, peer=SPARE, reason="No."
        )
        liar.links.send(PeerId("not to be misled"), message_frame(Kind.NOTICE, notice))

    events = await generate(client, at(3, lie))
    assert [len(each) for each in events] == [NEW_TOKENS, NEW_TOKENS]
    assert not client.recoveries.seconds
