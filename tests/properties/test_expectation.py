"""What a first stage finds of its client's expectations, however late they come."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.server.expectation import Expectation
from engine.speculation.tree import EMPTY, ROOT, TokenTree

TOKENS = st.integers(0, 2)
"""So few that guesses are often right."""


@st.composite
def trees(draw: st.DrawFn) -> TokenTree:
    ids: list[int] = []
    parents: list[int] = []
    for id_ in draw(st.lists(TOKENS, max_size=12)):
        parent = draw(st.integers(ROOT, len(ids) - 1))
        if (parent, id_) not in zip(parents, ids, strict=True):
            ids.append(id_)
            parents.append(parent)
    return TokenTree(tuple(ids), tuple(parents))


def paths(tree: TokenTree) -> set[tuple[int, ...]]:
    """All that it says, token by token."""
    return {tuple(tree.ids[step] for step in tree.path_to(node)) for node in range(len(tree))}


def behind(tree: TokenTree, ids: Sequence[int]) -> set[tuple[int, ...]]:
    """What of it goes on from some tokens."""
    start = tuple(ids)
    return {path[len(start) :] for path in paths(tree) if path[: len(start)] == start} - {()}


@given(trees(), st.lists(TOKENS, max_size=4))
def test_what_is_beyond_some_tokens_is_a_tree_of_all_that_follows_them(
    tree: TokenTree, ids: list[int]
) -> None:
    rest = tree.beyond(ids)
    assert paths(rest) == behind(tree, ids)
    assert all(parent < node for node, parent in enumerate(rest.parents))
    assert len(rest) == len(paths(rest))


@given(
    st.lists(
        st.tuples(st.integers(-6, 4), trees()) | st.lists(TOKENS, min_size=1, max_size=4),
        max_size=25,
    )
)
def test_newest_expectation_is_followed_from_wherever_it_began(
    events: list[tuple[int, TokenTree] | list[int]],
) -> None:
    expectation, sequence = Expectation(), [0]
    assert expectation.beyond(0, sequence) == EMPTY
    position, newest = 0, EMPTY
    for event in events:
        if isinstance(event, tuple):
            position, newest = max(0, len(sequence) + event[0]), event[1]
            expectation.take(position, newest)
        else:
            found = expectation.beyond(len(sequence), event)
            sequence += event
            known = position <= len(sequence)
            assert paths(found) == (behind(newest, sequence[position:]) if known else set())


@given(trees())
def test_nothing_is_found_behind_tokens_that_did_not_pass(tree: TokenTree) -> None:
    expectation = Expectation()
    expectation.beyond(0, [1])
    expectation.take(1, tree)
    assert expectation.beyond(5, [1]) == EMPTY
    assert expectation.beyond(6, [1]) == EMPTY
