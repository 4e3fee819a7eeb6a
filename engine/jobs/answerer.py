"""What jobs need of the engine: somebody who checks requests and answers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.jobs.requests import Body


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request got."""

    status: int
    """As HTTP has it: 200, or why it cannot be answered as asked."""
    body: str
    """JSON: OpenAI's answer, or its error object."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Answerer(Protocol):
    """Answers requests of `/v1`."""

    def check(self, url: str, body: Body) -> None:
        """Find what is wrong with a request before it is asked.

        Raises:
            EngineError: Something is; the text says what.
        """
        ...

    async def answer(self, url: str, body: Body, on_token: Callable[[], None]) -> Answer:
        """Answer a request; `on_token` is called for each token of the answer.

        Raises:
            EngineError: There is no answer now, but there may be later; `retryable` is true.
        """
        ...

    def free_tokens(self) -> int | None:
        """KV room that is free along the way a request would take; None: there is no way."""
        ...
