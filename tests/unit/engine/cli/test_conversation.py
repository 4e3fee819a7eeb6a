"""What the terminal makes of a stream."""

from __future__ import annotations

import socket
import threading

import pytest

from engine.cli.conversation import Conversation
from engine.core.errors import EngineError
from engine.localapi.client import ApiClient

CHUNK = b'data: {"choices": [{"delta": {"content": "The sea"}, "finish_reason": null}]}\n\n'
HALF_AN_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    + f"{len(CHUNK):x}\r\n".encode()
    + CHUNK
    + b"\r\n"
)


def test_answer_that_a_killed_engine_cut_short_is_no_answer(capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def die_in_mid_answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(HALF_AN_ANSWER)

        engine = threading.Thread(target=die_in_mid_answer)
        engine.start()
        conversation = Conversation(ApiClient(f"http://127.0.0.1:{server.getsockname()[1]}", "t"))
        with pytest.raises(EngineError, match="before the answer was complete"):
            conversation.ask("Tell me of the sea.")
        engine.join()
    assert capsys.readouterr().out == "The sea\n"
    assert conversation.turns == []
