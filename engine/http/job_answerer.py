"""Jobs' requests, answered as the API answers them."""

from __future__ import annotations

from collections.abc import Callable

from engine.core.errors import EngineError
from engine.http.answering import Answering
from engine.http.backend import Backend
from engine.http.errors import engine_error_text, status_of
from engine.http.model_limits import check_model
from engine.http.openai_requests import chat_request, completion_request
from engine.http.openai_responses import dumps
from engine.jobs.answerer import Answer
from engine.jobs.requests import CHAT_URL, Body


class JobAnswerer:
    """See `engine.jobs.answerer.Answerer`."""

    def __init__(self, backend: Backend, answering: Answering) -> None:
        self._backend = backend
        self._answering = answering

    def check(self, url: str, body: Body) -> None:
        """See `Answerer`; whether the prompt fits the context shows only when it is asked."""
        wanted = chat_request(body) if url == CHAT_URL else completion_request(body)
        try:
            spec, _ = self._backend.model()
        except EngineError:
            return  # not ready yet; a wrong name then becomes the row's error
        check_model(wanted.options.model, spec)

    async def answer(self, url: str, body: Body, on_token: Callable[[], None]) -> Answer:
        """See `Answerer`."""
        try:
            if url == CHAT_URL:
                question = await self._answering.chat(chat_request(body))
            else:
                question = await self._answering.completions(completion_request(body))
            whole = await self._answering.answer(question, on_token)
        except EngineError as error:
            if error.retryable:
                raise
            return Answer(status_of(error), engine_error_text(error))
        usage = whole.usage
        return Answer(200, dumps(whole.json), usage.prompt_tokens, usage.completion_tokens)

    def free_tokens(self) -> int | None:
        """See `Answerer`."""
        return self._backend.free_kv_tokens()
