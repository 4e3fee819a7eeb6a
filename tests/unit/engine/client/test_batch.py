from __future__ import annotations

import pytest

from engine.client.batch import AnswerMisfits, Batch, Failure, Recoveries, Sequence
from engine.core.clock import SystemClock
from engine.core.errors import PeerUnreachable, RemoteProtocolError
from engine.core.generation import FinishReason
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags
from engine.speculation.tree import TokenTree


def batch() -> tuple[Batch, Sequence]:
    sequence = Sequence(0, [1, 2, 3], 3, 10, SamplingParams())
    news = Batch({sequence.session: sequence}, SystemClock(), Recoveries())
    news.begin_attempt()
    return news, sequence


def test_tokens_are_appended_in_order_and_repeated_ones_ignored() -> None:
    news, sequence = batch()
    for position, token in [(3, 7), (3, 8), (4, 9), (9, 1)]:
        news.receive(Row(sequence.session, position, 1), token)
    assert sequence.ids == [1, 2, 3, 7, 9]
    assert news.news.qsize() == 2


def test_last_token_finishes_the_sequence() -> None:
    news, sequence = batch()
    news.receive(Row(sequence.session, 3, 1, 0, RowFlags.EOS), 2)
    news.receive(Row(sequence.session, 4, 1), 5)
    assert sequence.finished
    _, event = news.news.get_nowait()
    assert event.finish is FinishReason.STOP
    assert news.news.empty()


def test_token_that_arrives_after_the_failure_is_left_for_the_next_attempt() -> None:
    news, sequence = batch()
    news.fail(PeerUnreachable("gone"))
    news.fail(PeerUnreachable("gone too"))
    news.receive(Row(sequence.session, 3, 1), 7)
    assert sequence.ids == [1, 2, 3]
    assert isinstance(news.news.get_nowait(), Failure)
    assert news.news.empty()


def test_token_of_an_older_attempt_is_ignored_and_recovery_ends_with_the_first_new_one() -> None:
    news, sequence = batch()
    news.fail(PeerUnreachable("gone"))
    news.begin_attempt()
    news.receive(Row(sequence.session, 3, 1, 0), 7)
    assert sequence.ids == [1, 2, 3]
    assert not news.recoveries.seconds
    for position in (3, 4):
        news.receive(Row(sequence.session, position, 1, 1), 7)
    assert sequence.ids == [1, 2, 3, 7, 7]
    assert len(news.recoveries.seconds) == 1


OPEN = RowFlags.OPEN


def with_three_chunks() -> tuple[Batch, Sequence]:
    """7 8 is proposed behind the 3; then 9 10, and 11 12."""
    news, sequence = batch()
    sequence.leads = True
    sequence.next_row(0, TokenTree.chain([7, 8]))
    rows = [sequence.row_ahead(0, chunk) for chunk in ((9, 10), (11, 12))]
    assert [(row.position, row.count, row.accepted) for row in rows] == [(5, 2, 1), (7, 2, 2)]
    assert all(row.goes_on for row in rows)
    return news, sequence


def drafted(news: Batch) -> list[tuple[int, int, int]]:
    """Token, drafted and accepted ones of each event."""
    events = [news.news.get_nowait()[1] for _ in range(news.news.qsize())]
    return [(event.id, event.drafted_tokens, event.accepted_tokens) for event in events]


def test_chunks_on_their_way_are_judged_one_after_the_other() -> None:
    news, sequence = with_three_chunks()
    answers = [
        (Row(sequence.session, 5, 1, 0, OPEN, accepted=2), 9),
        (Row(sequence.session, 7, 1, 0, OPEN, accepted=2), 11),
        (Row(sequence.session, 8, 1, 0, OPEN, accepted=1), 20),
    ]
    for row, token in answers:
        assert news.receive(row, token)
    assert sequence.ids == [1, 2, 3, 7, 8, 9, 10, 11, 20]
    assert drafted(news) == [(7, 0, 0), (8, 0, 0), (9, 2, 2), (10, 0, 0), (11, 1, 1), (20, 1, 0)]
    row, ids = sequence.next_row(0, TokenTree.chain([21]))
    assert (row.position, row.accepted, ids) == (8, 1, [20, 21])


def test_token_that_was_not_guessed_makes_all_that_goes_on_from_it_worthless() -> None:
    news, sequence = with_three_chunks()
    assert news.receive(Row(sequence.session, 5, 1, 0, OPEN, accepted=2), 13)
    assert sequence.ids == [1, 2, 3, 7, 8, 13]
    assert drafted(news)[-1] == (13, 6, 2)
    row, ids = sequence.next_row(0, TokenTree.chain([]))
    assert (row.position, row.accepted, ids) == (5, 2, [13])


def test_answer_that_fits_no_chunk_is_ignored() -> None:
    news, sequence = with_three_chunks()
    assert news.receive(Row(sequence.session, 5, 1, 0, OPEN, accepted=2), 9)
    for position, accepted in [(6, 0), (6, 1), (5, 0), (8, 1), (8, 2)]:
        if (position, accepted) != (6, 1):
            assert not news.receive(
                Row(sequence.session, position, 1, 0, OPEN, accepted=accepted), 4
            )
    assert sequence.ids == [1, 2, 3, 7, 8, 9]


def test_new_attempt_forgets_what_was_on_its_way() -> None:
    news, sequence = with_three_chunks()
    news.receive(Row(sequence.session, 5, 1, 0, OPEN, accepted=2), 9)
    news.fail(PeerUnreachable("gone"))
    news.begin_attempt()
    assert sequence.assumed == []
    news.receive(Row(sequence.session, 6, 1, 1, OPEN), 10)
    assert sequence.ids == [1, 2, 3, 7, 8, 9, 10]


def test_bitmap_on_a_row_without_a_draft_says_nothing() -> None:
    news, sequence = batch()
    news.receive(Row(sequence.session, 3, 1, kept=(False, False)), 7)
    assert sequence.ids == [1, 2, 3, 7]
    assert news.news.get_nowait()[1].pruned_tokens == 0


def test_answers_of_a_closed_ring_bring_the_expected_tokens_that_were_right() -> None:
    news, sequence = batch()
    sequence.draft_tokens, sequence.expects = 5, True
    news.receive(Row(sequence.session, 3, 1), 7)
    row = Row(sequence.session, 6, 3, 0, RowFlags.EXPECTED, accepted=5)
    for _ in range(2):
        assert not news.receive(row, 10, (), [8, 9])
    assert sequence.ids == [1, 2, 3, 7, 8, 9, 10]
    events = [news.news.get_nowait() for _ in range(news.news.qsize())]
    assert [event.id for _, event in events] == [7, 8, 9, 10]
    assert (events[-1][1].drafted_tokens, events[-1][1].accepted_tokens) == (5, 2)


@pytest.mark.parametrize(("drafted", "expected"), [(1, [8, 9]), (6, [8]), (0, [8])])
def test_answers_of_more_expected_tokens_than_a_draft_may_have_are_against_the_rules(
    drafted: int, expected: list[int]
) -> None:
    news, sequence = batch()
    sequence.draft_tokens, sequence.expects = 5, True
    position, count = 3 + len(expected), 1 + len(expected)
    row = Row(sequence.session, position, count, 0, RowFlags.EXPECTED, accepted=drafted)
    with pytest.raises(RemoteProtocolError, match="more than a draft may have"):
        news.receive(row, 10, (), expected)
    assert sequence.ids == [1, 2, 3]


@pytest.mark.parametrize(
    ("accepted", "kept"),
    [(0, (False,)), (1, (False, True)), (0, (True,) * 3), (3, ())],
    ids=["shorter-bitmap", "dropped-one-accepted", "longer-bitmap", "more-than-drafted"],
)
def test_answer_to_another_draft_is_no_token_and_may_be_any_stages_doing(
    accepted: int, kept: tuple[bool, ...]
) -> None:
    news, sequence = batch()
    sequence.leads = True
    sequence.next_row(0, TokenTree.chain([7, 8]))
    row = Row(sequence.session, 3 + accepted, 1, 0, OPEN, accepted=accepted, kept=kept)
    with pytest.raises(AnswerMisfits):
        news.receive(row, 9)
    assert sequence.ids == [1, 2, 3]


def test_draft_of_what_nobody_expected_is_no_token_and_may_be_any_stages_doing() -> None:
    news, sequence = batch()
    sequence.draft_tokens = 5
    with pytest.raises(AnswerMisfits):
        news.receive(Row(sequence.session, 4, 2, 0, RowFlags.EXPECTED, accepted=1), 10, (), [8])
    assert sequence.ids == [1, 2, 3]
