"""The Hub's HTTP client, taking turns on the household's line with everything that it receives."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
from huggingface_hub import set_client_factory
from huggingface_hub.utils._http import default_client_factory

from engine.core.errors import ModelUnavailable
from engine.models.turns import Take


class _TakingTurns(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, take: Take) -> None:
        self._stream = stream
        self._take = take

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._take(len(chunk))
            yield chunk

    def close(self) -> None:
        self._stream.close()


def take_turns(take: Take) -> None:
    """Let listings, small files and weights alike keep to the line, from now on."""

    def slow_down(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.SyncByteStream), "a client that does not await"
        response.stream = _TakingTurns(response.stream, take)

    def client() -> httpx2.Client:
        try:
            made = default_client_factory()
        except ImportError as error:  # of what it would need for that
            raise ModelUnavailable(
                "The environment names a SOCKS proxy, but downloads pass HTTP proxies alone; let "
                "model.proxy name one."
            ) from error
        made.event_hooks["response"].append(slow_down)
        return made

    set_client_factory(client)
