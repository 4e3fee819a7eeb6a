"""An answerer for tests of jobs: says the prompt backwards, or what the test has set up."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable

from engine.core.errors import EngineError
from engine.http.openai_requests import chat_request, completion_request
from engine.jobs.answerer import Answer
from engine.jobs.requests import CHAT_URL, Body


class BackwardsAnswerer:
    """Answers each chat with its last message backwards."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """How often each prompt was answered to the end."""
        self.failures: dict[str, list[EngineError]] = {}
        """Errors that a prompt meets before it is answered."""
        self.refused: set[str] = set()
        """Prompts that get an error as their answer."""
        self.gate = asyncio.Event()
        self.gate.set()
        """Answers wait while it is not set."""
        self.running = 0
        self.most_running = 0
        self.room: int | None = 1_000_000

    def check(self, url: str, body: Body) -> None:
        if url == CHAT_URL:
            chat_request(body)
        else:
            completion_request(body)

    async def answer(self, url: str, body: Body, on_token: Callable[[], None]) -> Answer:
        prompt = body["messages"][-1]["content"]
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            if self.failures.get(prompt):
                raise self.failures[prompt].pop()
        finally:
            self.running -= 1
        self.asked[prompt] += 1
        on_token()
        if prompt in self.refused:
            return Answer(400, json.dumps({"error": {"message": "No.", "code": "refused"}}))
        message = {"role": "assistant", "content": prompt[::-1]}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Answer(200, json.dumps(answer), 3, len(prompt))

    def free_tokens(self) -> int | None:
        return self.room
