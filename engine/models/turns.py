"""Turns on the household's line, for the process that downloads: it asks the agent before it reads on.

What is left unread slows the sender down, so nothing is dropped. The agent owns the cap, which links
share and a person may change meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

Take = Callable[[int], None]
"""Returns when as many more bytes may come as have just come."""


def at_once(num_bytes: int) -> None:
    """There is no line to share."""


class Turns:
    """Asks for every byte, but not one by one.

    Args:
        ask: Waits for the turn of so many bytes; how many may then come before it is asked again.
    """

    def __init__(self, ask: Callable[[int], int]) -> None:
        self._ask = ask
        self._came_bytes = 0
        self._granted_bytes = 0

    def take(self, num_bytes: int) -> None:
        """See `Take`."""
        self._came_bytes += num_bytes
        if self._came_bytes > self._granted_bytes:
            came_bytes, self._came_bytes = self._came_bytes, 0
            self._granted_bytes = self._ask(came_bytes)
