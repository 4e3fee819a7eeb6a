"""Token trees: what a draft proposes and the target verifies in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.core.errors import RemoteProtocolError

ROOT = -1
"""Parent of the nodes that follow the last committed token."""


@dataclass(frozen=True, slots=True)
class TokenTree:
    """N proposed tokens; each node follows its parent, and siblings are alternatives.

    Parents come before their children, so a node's index is also a place in the packed row.
    """

    ids: tuple[int, ...]
    parents: tuple[int, ...]
    """`parents[i] < i`; `ROOT` = child of the last committed token."""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def chain(cls, ids: Sequence[int]) -> TokenTree:
        """A tree without alternatives."""
        return cls(tuple(ids), tuple(range(-1, len(ids) - 1)))

    def is_chain(self) -> bool:
        """Whether no node has a sibling."""
        return self.parents == tuple(range(-1, len(self.ids) - 1))

    def depths(self) -> tuple[int, ...]:
        """How far each node is from the last committed token; its children are at 1.

        A node's token takes the position of the last committed token plus its depth.
        """
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    def path_to(self, node: int) -> tuple[int, ...]:
        """Nodes from the root to `node`, itself last; `ROOT`: none."""
        path: list[int] = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return tuple(reversed(path))

    def beyond(self, ids: Iterable[int]) -> TokenTree:
        """What follows nodes that say `ids`, one after another from the root; nothing if none do."""
        tree = self
        for id_ in ids:
            tree = tree._below(id_)
        return tree

    def _below(self, id_: int) -> TokenTree:
        top = next(
            (n for n, p in enumerate(self.parents) if p == ROOT and self.ids[n] == id_), None
        )
        if top is None:
            return EMPTY
        places = {top: ROOT}
        for node, parent in enumerate(self.parents):
            if parent in places:
                places[node] = len(places) - 1
        rest = list(places)[1:]
        return TokenTree(
            tuple(self.ids[node] for node in rest),
            tuple(places[self.parents[node]] for node in rest),
        )

    def pruned(self, kept: Sequence[bool]) -> tuple[TokenTree, tuple[int, ...]]:
        """What is left when some nodes go, each with all that follows it.

        Args:
            kept: For each node, whether it may stay.

        Returns:
            The rest, and for each of its nodes the index it had here.
        """
        places: dict[int, int] = {ROOT: ROOT}
        for node, parent in enumerate(self.parents):
            if kept[node] and parent in places:
                places[node] = len(places) - 1
        del places[ROOT]
        survivors = tuple(places)
        parents = (self.parents[node] for node in survivors)
        return (
            TokenTree(
                tuple(self.ids[node] for node in survivors),
                tuple(ROOT if parent == ROOT else places[parent] for parent in parents),
            ),
            survivors,
        )


EMPTY = TokenTree((), ())
"""Nothing proposed: the round is a plain step."""


class Draft(Protocol):
    """A source of proposals for one sequence."""

    def propose(self, ids: Sequence[int], num_tokens: int) -> TokenTree:
        """Say what may come next.

        Args:
            ids: All tokens committed so far, prompt included; each call's begin with the last
                call's, and only what is new is looked at.
            num_tokens: The most nodes wanted.

        Returns:
            At most `num_tokens` nodes; none when there is nothing to say.
        """
        ...


def check_tree(tree: TokenTree, *, vocab_size: int, max_nodes: int) -> None:
    """Refuse what is no token tree; a peer may send anything.

    A cycle always has a node that names itself or a later one as its parent.

    Args:
        tree: As it came.
        vocab_size: V; ids are below it.
        max_nodes: The most nodes that a row may have.

    Raises:
        RemoteProtocolError: The text says which rule is broken, and at which node.
    """
    if len(tree.ids) != len(tree.parents):
        raise RemoteProtocolError(
            f"A draft has {len(tree.ids)} tokens but {len(tree.parents)} parents; each token must "
            "have one."
        )
    if len(tree.ids) > max_nodes:
        raise RemoteProtocolError(
            f"A draft has {len(tree.ids)} tokens, but at most {max_nodes} are taken; send a smaller "
            "one."
        )
    seen: set[tuple[int, int]] = set()
    for node, (id_, parent) in enumerate(zip(tree.ids, tree.parents, strict=True)):
        if parent < ROOT:
            raise RemoteProtocolError(
                f"Draft token {node} has the parent {parent}, which is no token of the draft."
            )
        if parent >= node:
            raise RemoteProtocolError(
                f"Draft token {node} has the parent {parent}, which does not come before it, so "
                "the draft is no tree."
            )
        if not 0 <= id_ < vocab_size:
            raise RemoteProtocolError(
                f"Draft token {node} has the id {id_}, which the model does not have; its ids end "
                f"at {vocab_size - 1}."
            )
        if (parent, id_) in seen:
            raise RemoteProtocolError(
                f"Draft token {node} says again what another token with its parent says; send each "
                "alternative once."
            )
        seen.add((parent, id_))


def accept(tree: TokenTree, targets: Sequence[int]) -> tuple[int, ...]:
    """The nodes that agree with the target's own tokens: shared noise's rule, exact by itself.

    What a round commits is `targets[0]` and, for each accepted node in order, its target: one more
    token than there are accepted nodes. So everything committed is the target's own choice.

    Args:
        tree: With different ids among siblings.
        targets: [N + 1], what the target says after the last committed token and after each node.

    Returns:
        A path from the root, perhaps empty.
    """
    children = {
        (parent, id_): i for i, (id_, parent) in enumerate(zip(tree.ids, tree.parents, strict=True))
    }
    accepted: list[int] = []
    node: int | None = children.get((ROOT, targets[0]))
    while node is not None:
        accepted.append(node)
        node = children.get((node, targets[node + 1]))
    return tuple(accepted)
