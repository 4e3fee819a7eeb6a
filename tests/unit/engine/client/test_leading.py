"""Rows that wait for a model's draft, and what becomes of them when something happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from engine.client.asking import Asker
from engine.client.batch import AnswerMisfits, Batch, Failure, Recoveries
from engine.client.batch import Sequence as Answer
from engine.client.drafter import Drafter, Wanted
from engine.client.drafting import Drafting
from engine.client.leading import Leading
from engine.core.clock import SystemClock
from engine.core.errors import PeerUnreachable, RemoteProtocolError
from engine.core.generation import DraftMode
from engine.core.plans import Hop, Route, Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.protocol.rows import Row, RowFlags
from engine.speculation.tree import EMPTY, TokenTree
from engine.speculation.worker_process import DraftOrder, Drawn
from tests.support.api_backend import tiny_spec
from tests.support.swarm import ALICE, BOB, Node, eventually, memory_swarm

CLOCK = SystemClock()
ROUTE = Route((Hop(BOB, Span(0, 4)),))
WEIGHTS = np.array([0.5, 0.5], "<f2").tobytes()
TARGET = np.full(8, 1 / 8, "<f2").tobytes()


class Late(Drafter):
    """Draws 4 5, but only when it may, and cannot draw again."""

    def __init__(self) -> None:
        files = ModelFiles(tiny_spec(), Path(), "tiny")
        super().__init__(DraftOrder(files, files), CLOCK)
        self.may = asyncio.Event()
        self.drawn_again = 0

    async def draw(
        self, wanted: Sequence[Wanted], num_tokens: Sequence[int], *, whole: bool
    ) -> list[Drawn]:
        await self.may.wait()
        return [Drawn((4, 5), WEIGHTS, 0.0) for _ in wanted]

    async def draw_again(self, sequence: object, place: int, target: bytes) -> int:
        self.drawn_again += 1
        raise ValueError("a number that is none")


@dataclass(slots=True)
class Bed:
    batch: Batch
    answer: Answer
    leading: Leading
    drafter: Late
    stage: Node

    async def sent(self) -> Row:
        """The row that has come to the stage."""
        await eventually(lambda: self.stage.got)
        ((_, frame),) = self.stage.got
        return frame.rows[0]


@pytest_asyncio.fixture
async def bed() -> AsyncIterator[Bed]:
    async with memory_swarm(ALICE, BOB) as swarm:
        drafter = Late()
        answer = Answer(0, [1, 2, 3], 3, 20, SamplingParams(temperature=1.0, max_new_tokens=10))
        answer.leads = True
        drafting = Drafting(None, 2, drafter=drafter, mode=DraftMode.DSSD)
        batch = Batch({answer.session: answer}, CLOCK, Recoveries(), drafting)
        batch.begin_attempt()
        links = swarm[ALICE].links
        leading = Leading(batch, links, Asker(links))
        yield Bed(batch, answer, leading, drafter, swarm[BOB])
        leading.end()


async def test_weights_go_with_the_chain_that_was_drawn_by_them(bed: Bed) -> None:
    bed.leading.go_on(ROUTE, [bed.answer])
    bed.drafter.may.set()
    row = await bed.sent()
    assert (row.count, row.parents, row.mode, row.weights) == (3, (-1, 0), DraftMode.DSSD, WEIGHTS)


async def test_chain_that_comes_after_its_attempt_leaves_nothing_behind(bed: Bed) -> None:
    bed.leading.go_on(ROUTE, [bed.answer])
    await asyncio.sleep(0)
    bed.batch.fail(PeerUnreachable("gone"))
    bed.batch.begin_attempt()
    bed.drafter.may.set()
    for _ in range(5):
        await asyncio.sleep(0)
    for tree in (EMPTY, TokenTree.chain([7])):
        row, _ = bed.answer.next_row(bed.batch.attempt, tree)
        assert (row.mode, row.weights) == (DraftMode.SHARED, b"")
    assert not bed.stage.got


async def test_weights_of_an_empty_chain_are_not_sent(bed: Bed) -> None:
    row, ids = bed.answer.next_row(0, EMPTY, WEIGHTS)
    assert (row.parents, row.mode, row.weights, ids) == ((), DraftMode.SHARED, b"", [3])


async def refused(bed: Bed, **fields: object) -> Row:
    """A chain is sent, and its first token comes back refused."""
    bed.leading.go_on(ROUTE, [bed.answer])
    bed.drafter.may.set()
    await bed.sent()
    flags = RowFlags.OPEN | RowFlags.REFUSED
    return Row(bed.answer.session, 3, 1, 0, flags, weights=TARGET, **fields)


async def test_refusal_with_a_bitmap_is_against_the_rules(bed: Bed) -> None:
    row = await refused(bed, kept=(False,))
    with pytest.raises(RemoteProtocolError, match="makes no sense"):
        bed.leading.draw_again(ROUTE, bed.answer, row, 8)


@pytest.mark.parametrize("mode", [DraftMode.SHARED, DraftMode.DSD])
async def test_refusal_that_the_mode_does_not_know_may_be_any_stages_doing(
    bed: Bed, mode: DraftMode
) -> None:
    row = await refused(bed)
    bed.answer.option = replace(bed.answer.option, mode=mode)
    with pytest.raises(AnswerMisfits):
        bed.leading.draw_again(ROUTE, bed.answer, row, 8)


async def test_refusal_of_more_than_was_drafted_may_be_any_stages_doing(bed: Bed) -> None:
    row = replace(await refused(bed), position=5, accepted=2)
    with pytest.raises(AnswerMisfits):
        bed.leading.draw_again(ROUTE, bed.answer, row, 8)


async def test_refusal_that_comes_twice_is_answered_once(bed: Bed) -> None:
    row = await refused(bed)
    for _ in range(2):
        bed.leading.draw_again(ROUTE, bed.answer, row, 8)
    await asyncio.wait_for(bed.batch.news.get(), 20)
    assert bed.drafter.drawn_again == 1


async def test_draft_that_goes_wrong_in_a_way_nobody_thought_of_ends_drafting_not_the_answer(
    bed: Bed,
) -> None:
    row = await refused(bed)
    bed.leading.draw_again(ROUTE, bed.answer, row, 8)
    failure = await asyncio.wait_for(bed.batch.news.get(), 20)
    assert isinstance(failure, Failure)
    assert failure.error.retryable
    assert "goes on without" in str(failure.error)
    assert bed.batch.drafting is None
    assert not bed.answer.leads
