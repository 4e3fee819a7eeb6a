"""A conversation in the terminal: one question, or as many as the person likes."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Final

from engine.cli.terminal import printable, say
from engine.core.errors import EngineError
from engine.localapi.client import ApiClient

_HELP: Final = "/new forgets the conversation, /exit leaves; Ctrl-C stops an answer."


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, as far as it came."""

    text: str
    finish_reason: str | None
    """None: the person stopped it."""
    prompt_tokens: int | None
    completion_tokens: int
    first_token_s: float
    total_s: float

    @property
    def tokens_per_s(self) -> float | None:
        """Rate after the first token; None for answers too short to have one."""
        decode_s = self.total_s - self.first_token_s
        if self.completion_tokens < 2 or decode_s <= 0:
            return None
        return (self.completion_tokens - 1) / decode_s

    def json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "answer": self.text,
            "finish_reason": self.finish_reason,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "first_token_s": round(self.first_token_s, 4),
            "total_s": round(self.total_s, 4),
            "tokens_per_s": self.tokens_per_s and round(self.tokens_per_s, 3),
        }

    def rate_line(self) -> str:
        """The line after an answer."""
        rate = self.tokens_per_s
        return f"{self.completion_tokens} tokens" + (f", {rate:.1f} tokens/s" if rate else "")


@dataclass(slots=True)
class Conversation:
    """The turns so far and how to ask."""

    client: ApiClient
    options: dict[str, object] = field(default_factory=dict)
    """More fields of the request: temperature, max_tokens …"""
    system: str | None = None
    turns: list[dict[str, object]] = field(default_factory=list)

    def ask(self, question: str, *, show: bool = True) -> Reply:
        """Ask, and stream the answer to standard output; Ctrl-C stops it.

        Raises:
            EngineError: No answer; the conversation is as before.
        """
        system = [{"role": "system", "content": self.system}] if self.system else []
        asked: dict[str, object] = {"role": "user", "content": question}
        body: dict[str, object] = {
            "model": "default",
            "messages": [*system, *self.turns, asked],
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.options,
        }
        reply = _stream(self.client, body, show=show)
        self.turns += [asked, {"role": "assistant", "content": reply.text}]
        return reply

    def forget(self) -> None:
        """Begin anew."""
        self.turns.clear()


def repl(conversation: Conversation) -> None:
    """Ask the person for questions until they leave; the conversation goes on."""
    # Line editing and history come with this import, where the platform has it.
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401

    say(f"Ask something. {_HELP}")
    interrupted = False
    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            say()
            return
        except KeyboardInterrupt:
            say()
            if interrupted:
                return
            interrupted = True
            say("Ctrl-C again leaves, and so does /exit.")
            continue
        interrupted = False
        if question in ("/exit", "/quit"):
            return
        if question == "/new":
            conversation.forget()
        elif question.startswith("/"):
            say(_HELP)
        elif question:
            try:
                say_rate(conversation.ask(question))
            except EngineError as error:
                say(f"{error}")


def say_rate(reply: Reply) -> None:
    """Tell a person at a terminal how fast it was."""
    if sys.stderr.isatty():
        say(reply.rate_line())


def _stream(client: ApiClient, body: dict[str, object], *, show: bool) -> Reply:
    texts: list[str] = []
    finish_reason = None
    usage: dict[str, int] = {}
    pieces = 0
    start_s = time.monotonic()
    first_s = last_s = start_s
    try:
        with client.stream("POST", "/v1/chat/completions", body) as events:
            for event in events:
                chunk = json.loads(event)
                usage = chunk.get("usage") or usage
                for choice in chunk["choices"]:
                    last_s = time.monotonic()
                    if text := choice["delta"].get("content"):
                        first_s = first_s if pieces else last_s
                        pieces += 1
                        texts.append(text)
                        if show:
                            print(printable(text), end="", flush=True)
                    finish_reason = choice["finish_reason"] or finish_reason
        if finish_reason is None:
            raise EngineError("The engine ended before the answer was complete; ask again.")
    except KeyboardInterrupt:
        finish_reason = None
    finally:
        if show and texts:
            print(flush=True)
    return Reply(
        text="".join(texts),
        finish_reason=finish_reason,
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens", pieces),
        first_token_s=first_s - start_s,
        total_s=last_s - start_s,
    )
