"""Server-sent events, as bytes arrive. Pure."""

from __future__ import annotations


class EventReader:
    """Cuts a byte stream into the data of its events.

    Only `data:` lines matter to us; comments and other fields are skipped, as the format asks.
    Chunks may end anywhere, inside a UTF-8 character too.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of every event that `chunk` completes, in order."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        events: list[str] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data).decode("utf-8", errors="replace"))
                self._data.clear()
        return events
