"""Which cards of a conversation stay when it is another one, or has grown. No widgets here."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from engine.localapi.chats import Message


@dataclass(frozen=True, slots=True)
class Staying:
    """Cards that are neighbours before and after."""

    start: int
    """The first of them among the cards."""
    count: int
    first: int
    """Where it is among the fresh messages; after the last one if no card stays."""


def staying(shown: Sequence[Message], fresh: Sequence[Message]) -> Staying:
    """Find the cards that are still neighbours: a branch keeps the messages before it.

    Args:
        shown: The cards' messages, in order.
        fresh: All messages that there are now.
    """
    at = {message.id: index for index, message in enumerate(fresh)}
    start = next((index for index, message in enumerate(shown) if message.id in at), len(shown))
    first = at[shown[start].id] if start < len(shown) else len(fresh)
    count = 0
    for message in shown[start:]:
        if at.get(message.id) != first + count:
            break
        count += 1
    return Staying(start, count, first)


def are_same(ones: tuple[Message, ...], others: tuple[Message, ...]) -> bool:
    """Whether both hold the same values, not only equal ones; from the end, where they change."""
    return len(ones) == len(others) and all(map(operator.is_, reversed(ones), reversed(others)))
