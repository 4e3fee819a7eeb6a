"""What the model is shown of a conversation: as much as fits, the newest first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.chats.messages import Said
from engine.core.errors import ContextTooLong
from engine.localapi.chats import Attachment, Speaker

_OVERHEAD_TOKENS: Final = 8
"""What a chat template puts around a message, roughly; the prompt itself is counted in the end."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What goes through the chat template."""

    messages: tuple[dict[str, str], ...]
    left_out: int
    """The oldest messages that are not among them."""


def shown(
    said: Sequence[Said], system_prompt: str, count: Callable[[str], int], room_tokens: int
) -> Shown:
    """Choose the newest messages that fit into `room_tokens`, from a question on.

    Args:
        said: The branch; it ends with the question.
        system_prompt: Always shown, if not empty.
        count: Tokens of a text.
        room_tokens: What the context has for the prompt.

    Raises:
        ContextTooLong: The question does not fit by itself.
    """
    system = [{"role": "system", "content": system_prompt}] if system_prompt.strip() else []
    left = room_tokens - sum(count(turn["content"]) + _OVERHEAD_TOKENS for turn in system)
    first = len(said)
    for at in range(len(said) - 1, -1, -1):
        left -= count(content(said[at])) + _OVERHEAD_TOKENS
        if left < 0:
            break
        if said[at].speaker is Speaker.USER:
            first = at
    if first == len(said):
        raise ContextTooLong(
            "Your message does not fit into the model's context, with its files and the room that "
            "an answer needs; shorten it or attach less.",
            param="say",
        )
    turns = [
        {"role": turn.speaker.value, "content": content(turn)}
        for turn in said[first:]
        if turn.text or turn.attachments
    ]
    return Shown((*system, *turns), first)


def content(turn: Said) -> str:
    """A message with its files in front of it."""
    return "\n\n".join([*map(_file, turn.attachments), *([turn.text] if turn.text else [])])


def _file(attachment: Attachment) -> str:
    fence = "```"
    while fence in attachment.text:
        fence += "`"
    end = "" if attachment.text.endswith("\n") else "\n"
    return f"File {attachment.name}:\n{fence}\n{attachment.text}{end}{fence}"
