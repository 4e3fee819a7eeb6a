"""Answers in conversations: they are kept while they grow, whoever follows them or not."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from sqlite3 import Connection
from typing import Final, cast

from engine.chats import conversations, messages
from engine.chats.messages import Growth, Said
from engine.chats.prompting import shown
from engine.core.clock import Clock
from engine.core.errors import EngineError, RequestError, WorkerFailed
from engine.core.generation import DraftingNow, FinishReason, TokenEvent
from engine.core.sampling_params import SamplingParams
from engine.http.backend import Backend
from engine.http.chat_endings import AnswerEnd, ChatEndings
from engine.http.model_limits import DEFAULT_CHAT_TOKENS, check_prompt, sampling_params
from engine.http.openai_requests import chat_request
from engine.localapi.chats import (
    AnswerEvent,
    AnswerRequest,
    ChatInfo,
    DraftingInfo,
    Ending,
    Message,
    Privacy,
    Sampling,
)
from engine.localapi.said import said as parts_of
from engine.localapi.schema import EngineStatus
from engine.models.tokenizer import ChatTokenizer, TextStream
from engine.storage.database import Database

logger = logging.getLogger(__name__)

SAVE_EVERY_S: Final = 0.5
"""A crash loses at most this much of an answer, and the time of one write."""
_ANSWER_SHARE: Final = 4
"""One part in so many of the context is for the answer, at most, unless a limit is set."""


@dataclass(slots=True)
class Running:
    """An answer that is being written."""

    chat: int
    answer: Message
    """As it was when it began."""
    question: Message | None
    text: str
    growth: Growth
    ended: Message | None = None
    drafting: DraftingInfo | None = None
    stop_wanted: bool = False
    task: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Job:
    """What the swarm is asked."""

    prompt: tuple[int, ...]
    params: SamplingParams
    tokenizer: ChatTokenizer


class ChatAnswers:
    """All answers that are being written; one at a time in each conversation."""

    def __init__(self, backend: Backend, database: Database, clock: Clock) -> None:
        self._backend = backend
        self._database = database
        self._clock = clock
        self._running: dict[int, Running] = {}
        self._beginning: set[int] = set()
        self.endings = ChatEndings(database)

    def is_answering(self, chat: int) -> bool:
        """Whether an answer is being written there."""
        return chat in self._running or chat in self._beginning

    def running(self, chat: int) -> Running | None:
        """The answer that is being written there."""
        return self._running.get(chat)

    async def begin(self, chat: int, wanted: AnswerRequest) -> Running:
        """Keep the question, if there is one, and begin to answer.

        Raises:
            EngineError: The model is not ready, the request makes no sense, or nothing can be kept.
        """
        if [wanted.say, wanted.again, wanted.go_on].count(None) != 2:
            raise RequestError("Give exactly one of say, again and go_on.")
        if self.is_answering(chat):
            raise RequestError("This conversation is being answered already; stop that first.")
        self._backend.model()  # nothing is said into the void
        self._beginning.add(chat)
        try:
            await self.endings.catch_up(chat)
            info, question, answer = await self._database.write(
                lambda connection: self._open(connection, chat, wanted)
            )
            growth = Growth(
                tokens=answer.tokens,
                seconds=answer.seconds,
                privacy=_privacy(self._backend.status()),
            )
            running = Running(chat, answer, question, answer.text, growth)
            self._running[chat] = running
        finally:
            self._beginning.discard(chat)
        running.task = asyncio.create_task(self._write(running, info), name=f"chat-{chat}")
        return running

    def _open(
        self, connection: Connection, chat: int, wanted: AnswerRequest
    ) -> tuple[ChatInfo, Message | None, Message]:
        info = conversations.info(connection, chat)
        now = self._clock.unix_s()
        question = None
        if wanted.go_on is not None:
            answer = messages.reopen_answer(connection, chat, wanted.go_on)
        elif wanted.again is not None:
            answer = messages.begin_answer(connection, chat, wanted.again, now)
        else:
            assert wanted.say is not None
            question = messages.say(connection, chat, wanted.say, now)
            answer = messages.begin_answer(connection, chat, question.id, now)
        return info, question, answer

    async def follow(self, running: Running) -> AsyncIterator[AnswerEvent]:
        """What it is so far, what comes, and its end; many may follow, each at its own pace."""
        text, tokens = running.text, running.growth.tokens
        so_far = running.answer.model_copy(update={"text": text, "tokens": tokens})
        yield AnswerEvent(kind="begun", question=running.question, answer=so_far)
        while True:
            # The event is taken before looking, so that no change falls in between.
            changed = running.changed
            if len(running.text) > len(text) or running.growth.tokens > tokens:
                new = running.text[len(text) :]
                text, tokens = running.text, running.growth.tokens
                yield AnswerEvent(kind="text", text=new, tokens=tokens, drafting=running.drafting)
            elif running.ended is not None:
                yield AnswerEvent(kind="ended", answer=running.ended)
                return
            else:
                await changed.wait()

    async def stop(self, chat: int) -> None:
        """End the answer that is being written there, if there is one; what it has stays."""
        running = self._running.get(chat)
        if running is not None and running.task is not None:
            running.stop_wanted = True
            running.task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.shield(running.task)

    async def close(self) -> None:
        """End all of them, because the engine ends."""
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.endings.close()

    async def _write(self, running: Running, info: ChatInfo) -> None:
        """Write the answer to its end; errors become its ending."""
        ending, failure = Ending.INTERRUPTED, ""
        saving = asyncio.create_task(self._keep_saving(running))
        try:
            ending = await self._generate(running, info)
        except asyncio.CancelledError:
            ending = Ending.STOPPED if running.stop_wanted else Ending.INTERRUPTED
        except EngineError as error:
            ending, failure = Ending.FAILED, str(error)
        except Exception as error:  # the top of an answer
            logger.error("an answer failed", exc_info=error)
            ending = Ending.FAILED
            failure = f"Something unexpected went wrong ({type(error).__name__}); see the log."
        finally:
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)
            # A second cancellation must not lose the end of the answer.
            await asyncio.shield(self._end(running, ending, failure))

    async def _end(self, running: Running, ending: Ending, failure: str) -> None:
        try:
            running.ended = await self.endings.keep(
                AnswerEnd(
                    running.chat,
                    running.answer,
                    running.text,
                    running.growth,
                    ending,
                    failure,
                    self._clock.unix_s(),
                )
            )
        finally:
            self._running.pop(running.chat, None)
            _tell(running)

    async def _keep_saving(self, running: Running) -> None:
        kept = len(running.text)
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            text, growth = running.text, running.growth
            if len(text) == kept:
                continue
            try:
                await self._database.write(
                    lambda connection, text=text, growth=growth: messages.keep(  # type: ignore[misc]
                        connection, running.answer.id, text, growth
                    )
                )
                kept = len(text)
            except EngineError as error:
                # The answer goes on; its end is tried again, and told if it cannot be kept.
                logger.warning("an answer is not kept at the moment: %s", error)

    async def _generate(self, running: Running, info: ChatInfo) -> Ending:
        job = await self._prepare(running, info)
        stream = TextStream(job.tokenizer, goes_on=bool(running.text))
        generation = self._backend.generate([job.prompt], [job.params])
        # The contract asks for an iterator that can be closed, which is a generator to the type system.
        events = cast(AsyncGenerator[tuple[int, TokenEvent], None], generation)
        base = running.growth
        first_s: float | None = None
        count = accepted = 0
        async with aclosing(events):
            async for _, event in events:
                now_s = self._clock.monotonic_s()
                first_s = now_s if first_s is None else first_s
                count += 1
                accepted += event.accepted_tokens
                if event.drafting is not None:
                    running.drafting = _drafting_info(event.drafting, count / (count - accepted))
                if event.finish is not FinishReason.STOP:
                    running.text += stream.push(event.id)
                if event.finish is not None:
                    running.text += stream.flush()
                running.growth = replace(
                    base,
                    tokens=base.tokens + count,
                    seconds=base.seconds + now_s - first_s,
                    context_tokens=len(job.prompt) + count,
                )
                _tell(running)
                if event.finish is not None:
                    stopped = event.finish is FinishReason.STOP
                    return Ending.COMPLETE if stopped else Ending.LENGTH
        raise WorkerFailed("The engine stopped before the answer was complete; continue it.")

    async def _prepare(self, running: Running, info: ChatInfo) -> _Job:
        spec, tokenizer = self._backend.model()
        begun = running.text
        said = await self._database.read(
            lambda connection: messages.branch(connection, running.answer.id)
        )
        options = chat_request(
            {**_fields(info.sampling), "messages": [{"role": "user", "content": "…"}]}
        ).options
        context = spec.max_position_embeddings
        answer_tokens = options.max_tokens or min(DEFAULT_CHAT_TOKENS, context // _ANSWER_SHARE)
        room = context - answer_tokens

        def prompt() -> tuple[tuple[int, ...], int]:
            return _prompt(said[:-1], info.system_prompt, begun, tokenizer, room)

        # Beside the event loop: a long conversation takes a while.
        ids, left_out = await asyncio.to_thread(prompt)
        check_prompt(ids, spec, param="say")
        params = sampling_params(
            options,
            spec,
            prompt_tokens=len(ids),
            default_max_tokens=answer_tokens,
            random_seed=secrets.randbits(64),
        )
        status = self._backend.status()
        running.growth = replace(
            running.growth, model=spec.model_id, stages=len(status.plan), left_out=left_out
        )
        return _Job(ids, params[0], tokenizer)


def _prompt(
    said: tuple[Said, ...], system_prompt: str, begun: str, tokenizer: ChatTokenizer, room: int
) -> tuple[tuple[int, ...], int]:
    """Ids of what is shown, and how many messages are left out; templates cost what they cost."""
    begun_ids = tokenizer.encode_more(begun) if begun else []
    room -= len(begun_ids)
    left = room
    while True:
        choice = shown(said, system_prompt, lambda text: len(tokenizer.encode_more(text)), left)
        ids = tokenizer.encode_chat(choice.messages)
        if len(ids) <= room:
            return (*ids, *begun_ids), choice.left_out
        left -= len(ids) - room


def _fields(sampling: Sampling) -> dict[str, object]:
    return sampling.model_dump(exclude_none=True)


def _privacy(status: EngineStatus) -> Privacy:
    if status.swarm is None:
        return Privacy.LOCAL
    return Privacy.PRIVATE if status.private else Privacy.PUBLIC


def _drafting_info(now: DraftingNow, tokens_per_round: float) -> DraftingInfo:
    return DraftingInfo(
        draft=now.draft,
        reason=now.reason,
        said=parts_of(now.reason),
        tokens_per_round=tokens_per_round,
    )


def _tell(running: Running) -> None:
    running.changed.set()
    running.changed = asyncio.Event()
