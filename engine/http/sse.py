"""Server-sent events over aiohttp."""

from __future__ import annotations

from aiohttp import web


class EventStream:
    """A response of `data:` lines."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    @classmethod
    async def open(cls, request: web.Request) -> EventStream:
        """Send the headers; from here on an error can only be an event."""
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(request)
        return cls(response)

    async def send(self, data: str) -> None:
        """Send one event; waits while the client reads too slowly.

        Args:
            data: One line, usually JSON.

        Raises:
            ConnectionResetError: The client is gone.
        """
        await self.response.write(f"data: {data}\n\n".encode())

    async def end(self) -> web.StreamResponse:
        """Finish the response."""
        await self.response.write_eof()
        return self.response
