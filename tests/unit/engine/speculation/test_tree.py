from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import RemoteProtocolError
from engine.speculation.tree import EMPTY, ROOT, TokenTree, accept, check_tree

#      root
#     /    \
#    5      6
#   / \      \
#  7   8      7
FORKED = TokenTree((5, 6, 7, 8, 7), (ROOT, ROOT, 0, 0, 1))


@st.composite
def trees(draw: st.DrawFn, vocab_size: int = 6) -> TokenTree:
    ids: list[int] = []
    parents: list[int] = []
    for node in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(ROOT, node - 1))
        id_ = draw(st.integers(0, vocab_size - 1))
        if (parent, id_) not in zip(parents, ids, strict=True) and parent < len(ids):
            ids.append(id_)
            parents.append(parent)
    return TokenTree(tuple(ids), tuple(parents))


def check(tree: TokenTree) -> None:
    check_tree(tree, vocab_size=10, max_nodes=5)


def test_a_tree_a_chain_and_nothing_are_taken() -> None:
    check(FORKED)
    check(TokenTree.chain([1, 1, 1]))
    check(EMPTY)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (TokenTree((1, 2), (ROOT,)), "2 tokens but 1 parents"),
        (TokenTree.chain([1] * 6), "at most 5"),
        (TokenTree((1, 2), (ROOT, 1)), "does not come before it"),
        (TokenTree((1, 2), (1, 0)), "does not come before it"),
        (TokenTree((1, 2), (ROOT, 7)), "does not come before it"),
        (TokenTree((1, 2), (ROOT, -2)), "no token of the draft"),
        (TokenTree((1, 10), (ROOT, 0)), "the model does not have"),
        (TokenTree((-1,), (ROOT,)), "the model does not have"),
        (TokenTree((1, 1), (ROOT, ROOT)), "says again"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_reason(tree: TokenTree, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        check(tree)


def test_a_node_is_as_deep_as_its_path_is_long() -> None:
    assert FORKED.depths() == (1, 1, 2, 2, 2)
    assert [len(FORKED.path_to(node)) for node in range(5)] == [1, 1, 2, 2, 2]
    assert FORKED.path_to(4) == (1, 4)


def test_the_branch_that_the_target_takes_is_accepted_as_far_as_it_goes() -> None:
    #                       root 5 6 7 8 7
    assert accept(FORKED, (6, 7, 7, 0, 0, 3)) == (1, 4)
    assert accept(FORKED, (5, 8, 7, 0, 2, 3)) == (0, 3)
    assert accept(FORKED, (5, 9, 7, 0, 2, 3)) == (0,)
    assert accept(FORKED, (9, 7, 7, 0, 0, 3)) == ()


def test_a_pruned_node_takes_along_what_follows_it() -> None:
    rest, survivors = FORKED.pruned([False, True, True, True, True])
    assert rest == TokenTree((6, 7), (ROOT, 0))
    assert survivors == (1, 4)


@given(trees(), st.data())
def test_acceptance_is_a_path_of_nodes_that_repeat_the_target(
    tree: TokenTree, data: st.DataObject
) -> None:
    size = len(tree) + 1
    targets = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    accepted = accept(tree, targets)
    assert accepted == (tree.path_to(accepted[-1]) if accepted else ())
    committed = [targets[0], *(targets[node + 1] for node in accepted)]
    assert [tree.ids[node] for node in accepted] == committed[:-1]
    last = accepted[-1] if accepted else ROOT
    following = {i for i, p in zip(tree.ids, tree.parents, strict=True) if p == last}
    assert committed[-1] not in following


@given(trees(), st.data())
def test_pruning_keeps_whole_paths(tree: TokenTree, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree)))
    rest, survivors = tree.pruned(kept)
    check_tree(rest, vocab_size=6, max_nodes=12)
    assert list(survivors) == [n for n in range(len(tree)) if all(kept[p] for p in tree.path_to(n))]
    for place, node in enumerate(survivors):
        path = [tree.ids[p] for p in tree.path_to(node)]
        assert [rest.ids[p] for p in rest.path_to(place)] == path
