from __future__ import annotations

from engine.client.batch import Batch, Failure, Recoveries, Sequence
from engine.core.clock import SystemClock
from engine.core.errors import PeerUnreachable
from engine.core.generation import FinishReason
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags


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
