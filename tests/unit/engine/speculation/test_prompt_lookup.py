from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.speculation.prompt_lookup import PromptLookup
from engine.speculation.tree import EMPTY, ROOT, TokenTree, check_tree

sequences = st.lists(st.integers(0, 4), min_size=1, max_size=60)


def test_what_followed_the_last_three_tokens_is_proposed() -> None:
    ids = [1, 2, 3, 4, 5, 6, 9, 3, 7, 1, 2, 3]
    assert PromptLookup().propose(ids, 3) == TokenTree.chain([4, 5, 6])


def test_fewer_tokens_must_match_when_three_do_not() -> None:
    assert PromptLookup().propose([1, 2, 3, 4, 8, 9, 2, 3], 2) == TokenTree.chain([4, 8])
    assert PromptLookup().propose([3, 4, 8, 9, 7, 3], 2) == TokenTree.chain([4, 8])
    assert PromptLookup(min_match=2).propose([3, 4, 8, 9, 7, 3], 2) == EMPTY


def test_the_newest_place_comes_first() -> None:
    assert PromptLookup().propose([1, 2, 5, 1, 2, 6, 1, 2], 1) == TokenTree.chain([6])


def test_nothing_is_proposed_where_nothing_came_before_or_nothing_is_wanted() -> None:
    assert PromptLookup().propose([], 4) == EMPTY
    assert PromptLookup().propose([1, 2, 3], 4) == EMPTY
    assert PromptLookup().propose([1, 1], 0) == EMPTY


def test_a_loop_is_followed_beyond_the_end_of_the_text() -> None:
    assert PromptLookup().propose([7, 1, 2, 1, 2], 5) == TokenTree.chain([1, 2, 1, 2, 1])


def test_places_that_went_on_differently_become_branches() -> None:
    ids = [1, 2, 3, 4, 0, 1, 2, 5, 6, 0, 1, 2]
    tree = PromptLookup(max_branches=2).propose(ids, 6)
    assert tree == TokenTree((5, 6, 0, 3, 4, 0), (ROOT, 0, 1, ROOT, 3, 4))


def _by_rescanning(ids: Sequence[int]) -> int | None:
    for length in (3, 2, 1):
        if length <= len(ids):
            for start in range(len(ids) - length - 1, -1, -1):
                if list(ids[start : start + length]) == list(ids[-length:]):
                    return ids[start + length]
    return None


@given(sequences, st.data())
def test_an_index_that_grew_round_by_round_finds_what_a_search_of_everything_finds(
    ids: list[int], data: st.DataObject
) -> None:
    lookup = PromptLookup()
    end = 0
    while end < len(ids):
        end = data.draw(st.integers(end + 1, len(ids)))
        found = lookup.propose(ids[:end], 1)
        expected = _by_rescanning(ids[:end])
        assert found == (EMPTY if expected is None else TokenTree.chain([expected]))


@given(sequences, st.integers(0, 20), st.integers(1, 4))
def test_every_proposal_is_a_tree_of_the_size_asked_for(
    ids: list[int], num_tokens: int, branches: int
) -> None:
    tree = PromptLookup(max_branches=branches).propose(ids, num_tokens)
    check_tree(tree, vocab_size=5, max_nodes=num_tokens)


@pytest.mark.parametrize("known", [100, 10_000])
def test_a_round_looks_only_at_what_is_new(known: int) -> None:
    class Counted(list[int]):
        reads = 0

        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            self.reads += 1
            return super().__getitem__(index)

    lookup = PromptLookup()
    ids = Counted(range(known))
    lookup.propose(ids, 4)
    ids.reads = 0
    ids.extend([5, 6])
    lookup.propose(ids, 4)
    assert ids.reads == 2
