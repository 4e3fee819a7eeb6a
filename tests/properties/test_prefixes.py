from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.client.prefixes import plan_forks
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop, Span
from engine.protocol.prefixes import MARK_TOKENS, MAX_MARKS, digests, marks
from engine.server.prefixes import Entry, PrefixIndex, Way

WAYS: list[Way] = [
    (Hop(PeerId("me"), Span(0, 4)),),
    (Hop(PeerId("one"), Span(0, 2)), Hop(PeerId("me"), Span(2, 4))),
    (Hop(PeerId("two"), Span(0, 2)), Hop(PeerId("me"), Span(2, 4))),
]
BUDGET_BYTES = 400
IDLE_S = 50.0

# Few different pieces, so that many sequences begin alike.
sequences = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(
    lambda pieces: [piece * 100 + n for piece in pieces for n in range(MARK_TOKENS)]
)
owners = st.sampled_from([PeerId("alice"), PeerId("bob")])


def common(one: list[int], other: list[int]) -> int:
    """Tokens that both begin with."""
    same = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(same, min(len(one), len(other)))


class IndexMachine(RuleBasedStateMachine):
    """The index beside a list of everything it was ever given."""

    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(BUDGET_BYTES, IDLE_S)
        self.given: dict[SessionId, Entry] = {}
        self.held: set[SessionId] = set()
        """What the worker would hold."""
        self.now_s = 0.0

    def freed(self, sessions: list[SessionId]) -> None:
        assert len(set(sessions)) == len(sessions)
        assert set(sessions) <= self.held
        self.held -= set(sessions)

    @rule(ids=sequences, owner=owners, shared=st.booleans(), way=st.sampled_from(WAYS))
    def add(self, ids: list[int], owner: PeerId, shared: bool, way: Way) -> None:
        session = SessionId(len(self.given))
        entry = Entry(
            session, owner, shared, way, np.array(ids, np.int32), tuple(digests(ids)), len(ids)
        )
        self.given[session] = entry
        self.held.add(session)
        self.freed(self.index.add(entry, self.now_s))

    @rule(ids=sequences, owner=owners, shares=st.booleans(), way=st.sampled_from(WAYS))
    def find(self, ids: list[int], owner: PeerId, shares: bool, way: Way) -> None:
        match = self.index.find(owner, way, digests(ids), self.now_s, shares=shares)
        allowed = [
            entry
            for entry in map(self.given.__getitem__, self.held)
            if entry.way == way and (entry.owner == owner or (entry.shared and shares))
        ]
        best = max((common(entry.ids.tolist(), ids) for entry in allowed), default=0)
        assert (0 if match is None else match.tokens) == max(marks(best), default=0)
        if match is not None:
            assert match.entry.session in {entry.session for entry in allowed}
            assert match.entry.ids[: match.tokens].tolist() == ids[: match.tokens]

    @rule(room_bytes=st.integers(0, BUDGET_BYTES))
    def shrink(self, room_bytes: int) -> None:
        self.freed(self.index.shrink(room_bytes))
        assert self.index.used_bytes <= room_bytes

    @rule(passed_s=st.floats(0.0, 30.0))
    def expire(self, passed_s: float) -> None:
        self.now_s += passed_s
        self.freed(self.index.expired(self.now_s))

    @invariant()
    def budget_holds_and_nothing_is_forgotten(self) -> None:
        assert self.index.used_bytes == sum(self.given[s].room_bytes for s in self.held)
        assert self.index.used_bytes <= BUDGET_BYTES
        assert len(self.index) == len(self.held)


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.integers(0, 200_000))
def test_little_lies_behind_the_last_mark(tokens):
    found = list(marks(tokens))
    assert len(found) <= MAX_MARKS
    assert all(a < b for a, b in pairwise(found))
    assert tokens - max(found, default=0) < max(MARK_TOKENS, tokens / 32 + 1)


@given(sequences, sequences)
def test_digests_agree_exactly_as_far_as_the_ids_do(one, other):
    alike = [a == b for a, b in zip(digests(one), digests(other), strict=False)]
    shared = common(one, other)
    assert alike == [mark <= shared for mark, _ in zip(marks(1 << 20), alike, strict=False)]


@given(
    st.lists(st.tuples(sequences, st.integers(0, 40)), min_size=1, max_size=8), st.integers(0, 4)
)
def test_each_fork_shares_as_much_as_anybody_and_waits_for_no_more(drawn, num_live):
    rows = [ids[: max(1, len(ids) - cut)] for ids, cut in drawn]
    named = [(SessionId(number), row) for number, row in enumerate(rows)]
    live, new = named[:num_live], named[num_live:]
    forks = dict(zip([session for session, _ in new], plan_forks(new, live), strict=True))
    for session, fork in forks.items():
        if fork is None:
            continue
        source, tokens = fork
        assert MARK_TOKENS <= tokens < len(rows[session])
        assert rows[source][:tokens] == rows[session][:tokens]
        above = forks.get(source)
        assert above is None or above[1] < tokens
    # What is computed is what is different, but for the last token of every row.
    known = {tuple(row[:n]) for _, row in live for n in range(1, len(row) + 1)}
    beginnings = {tuple(row[:n]) for _, row in new for n in range(1, len(row) + 1)} - known
    computed = sum(len(rows[s]) - (fork[1] if fork else 0) for s, fork in forks.items())
    assert computed <= len(beginnings) + MARK_TOKENS * len(new)
