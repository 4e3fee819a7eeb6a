"""What happens to a swarm while it answers: at a chosen token, and the loss of a stage."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.local_swarm import LocalStage, LocalSwarm


def at(count: int, action: Callable[[], object]) -> Callable[[int], None]:
    """Do it once, when an answer has `count` tokens or more, which drafts may make several at once."""
    done = False

    def disturb(tokens: int) -> None:
        nonlocal done
        if tokens >= count and not done:
            done = True
            action()

    return disturb


def lose(swarm: LocalSwarm, stage: LocalStage) -> None:
    """A stage is gone, and a spare is announced."""
    swarm.vanish(stage.peer)
    swarm.hidden = set()
