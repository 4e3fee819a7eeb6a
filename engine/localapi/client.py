"""Calls on a running engine, for the commands and scripts. Standard library only.

Plain `http.client` on purpose: it knows nothing of proxies, which have no business between two
programs on one machine.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from engine.core.errors import ConfigError, EngineError
from engine.localapi.running import read_token
from engine.localapi.schema import ReadyFile

CALL_TIMEOUT_S: Final = 30.0
STREAM_SILENCE_S: Final = 600.0
"""An answer may have to wait for its first token; status streams say something every 10 s."""


class EngineUnreachable(EngineError):
    """The engine's API cannot be reached or broke off."""

    code = "engine_unreachable"
    retryable = True


class ApiFailed(EngineError):
    """The engine answered with an error; the text is the engine's own.

    Args:
        message: The sentence for the person.
        status: HTTP status; 0 for an error in the middle of a stream.
        api_code: The error object's code.
    """

    def __init__(self, message: str, *, status: int, api_code: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.api_code = api_code


class ApiClient:
    """One engine's local API; safe to share between threads, each call has its own connection."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ConfigError(f"{url!r} is not the address of an engine's API.")
        self.url = url
        self._host = parts.hostname
        self._port = parts.port
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    @classmethod
    def of(cls, ready: ReadyFile) -> ApiClient:
        """For the engine that `ready` describes.

        Raises:
            ConfigError: Its token file cannot be read.
        """
        try:
            return cls(ready.url, read_token(Path(ready.token_file)))
        except OSError as error:
            raise ConfigError(
                f"The API token in {ready.token_file} cannot be read ({error.strerror}); run this "
                "as the user who started the engine."
            ) from error

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Send one request and read its JSON answer.

        Raises:
            ApiFailed: The engine refused.
            EngineUnreachable: It did not answer in time, or not at all.
        """
        connection, response = self._send(method, path, body, timeout_s)
        try:
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()
        return answer

    def stream(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        silence_s: float = STREAM_SILENCE_S,
    ) -> EventLines:
        """Send one request and read its server-sent events; the caller closes the result.

        Raises:
            ApiFailed: The engine refused.
            EngineUnreachable: It did not answer in time, or not at all.
        """
        connection, response = self._send(method, path, body, silence_s)
        return EventLines(self.url, connection, response)

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, path, payload, self._headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _failure(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._unreachable(error) from error
        except BaseException:
            connection.close()
            raise
        return connection, response

    def _unreachable(self, error: Exception) -> EngineUnreachable:
        return _unreachable(self.url, error)


class EventLines:
    """The events of one stream, as the text after `data:`; `[DONE]` and errors end it."""

    def __init__(
        self, url: str, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._url = url
        self._connection = connection
        self._response = response
        self._socket: socket.socket | None = connection.sock
        self._closed = False

    def __iter__(self) -> Iterator[str]:
        """Yield each event.

        Raises:
            ApiFailed: An error came instead of the next event.
            EngineUnreachable: The stream broke off, or there was no event for too long.
        """
        try:
            while line := self._response.readline():
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip().decode()
                if data == "[DONE]":
                    return
                if data.startswith('{"error"'):
                    raise _failure(0, data.encode())
                yield data
        except TimeoutError as error:
            raise _unreachable(self._url, error) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            if not self._closed:  # a killed engine resets the connection, or just ends it
                raise EngineUnreachable(
                    f"The engine at {self._url} ended before the answer was complete; see "
                    "`shoal status`, or start it again."
                ) from error

    def hang_up(self) -> None:
        """End an iteration that waits in another thread; `close` once it has ended."""
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):  # the engine hung up first
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up; not while another thread iterates."""
        self.hang_up()
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hang up."""
        self.close()


def _failure(status: int, body: bytes) -> ApiFailed:
    try:
        error = json.loads(body)["error"]
        return ApiFailed(str(error["message"]), status=status, api_code=error.get("code"))
    except (ValueError, KeyError, TypeError):
        return ApiFailed(f"The engine answered with status {status}.", status=status, api_code=None)


def _unreachable(url: str, error: Exception) -> EngineUnreachable:
    reason = "it took too long" if isinstance(error, TimeoutError) else str(error)
    return EngineUnreachable(
        f"The engine at {url} does not answer ({reason}); see `shoal status`, or start it again."
    )
