from __future__ import annotations

import numpy as np

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.frames import Dtype
from engine.protocol.rows import Row
from engine.server.forks import Forks
from engine.server.scheduler import Work

ONE, TWO, THREE = SessionId(1), SessionId(2), SessionId(3)


def work(session: SessionId, position: int, count: int = 4) -> Work:
    row = Row(session, position, count)
    ids = np.zeros(count, np.int32)
    return Work((PeerId("client"), 1), Span(0, 1), row, ids, (), Dtype.NONE, 0, 0.0)


def test_rows_wait_until_the_other_has_come_far_enough() -> None:
    forks = Forks()
    forks.add(TWO, ONE, 100)
    row = work(TWO, 100)
    assert forks.holds_back(row)
    assert forks.waiting_tokens(TWO) == 4
    assert forks.ready(ONE, 99) == []
    (fork,) = forks.ready(ONE, 100)
    assert (fork.session, fork.tokens, fork.rows) == (TWO, 100, [row])
    assert not forks.holds_back(work(TWO, 104))
    assert not forks.is_waiting(TWO)


def test_those_that_share_less_go_first() -> None:
    forks = Forks()
    forks.add(TWO, ONE, 50)
    forks.add(THREE, ONE, 100)
    assert [fork.session for fork in forks.ready(ONE, 64)] == [TWO]
    assert [fork.session for fork in forks.ready(ONE, 128)] == [THREE]


def test_row_from_the_beginning_makes_a_fork_independent() -> None:
    forks = Forks()
    forks.add(TWO, ONE, 100)
    assert not forks.holds_back(work(TWO, 0))
    assert forks.drop(ONE) == []


def test_end_of_the_other_leaves_orphans() -> None:
    forks = Forks()
    forks.add(TWO, ONE, 100)
    forks.add(THREE, ONE, 100)
    assert forks.drop(THREE) == []
    assert forks.drop(ONE) == [TWO]
    assert not forks.holds_back(work(TWO, 100))
