"""Transfers that fail on purpose, so that a bench can show that nothing is lost with them."""

from __future__ import annotations

import random

from engine.config import LinkFaults


class Faults:
    """Decides which transfers fail: the same seed always condemns the same ones in turn.

    Args:
        config: How often, and the seed.
    """

    def __init__(self, config: LinkFaults) -> None:
        self._fail_rate = config.fail_rate
        self._random = random.Random(config.seed)  # noqa: S311 - nothing secret about it

    def strikes(self) -> bool:
        """Whether the next transfer fails."""
        return self._fail_rate > 0 and self._random.random() < self._fail_rate
