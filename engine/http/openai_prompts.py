"""Conversations and prompts of OpenAI's requests, checked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.core.errors import RequestError
from engine.http.fields import check_range, text_value, type_name, wrong_type

Prompt: TypeAlias = str | tuple[int, ...]
"""Text, or token ids."""

_MAX_TOKEN_ID: Final = (1 << 31) - 1
_ROLES: Final = {
    "system": "system",
    "developer": "system",  # OpenAI's newer name; chat templates know the older one
    "user": "user",
    "assistant": "assistant",
}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


def chat_messages(value: object) -> tuple[ChatMessage, ...]:
    """Check the conversation of a chat request.

    Raises:
        RequestError: It is empty, or a turn is not text that somebody said.
    """
    if not isinstance(value, list):
        raise wrong_type("messages", "a list", value)
    if not value:
        raise RequestError("messages is empty: there is nothing to answer.", param="messages")
    return tuple(_message(item, f"messages[{index}]") for index, item in enumerate(value))


def _message(value: object, param: str) -> ChatMessage:
    if not isinstance(value, dict):
        raise wrong_type(param, "an object", value)
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        shown = repr(role[:40]) if isinstance(role, str) else type_name(role)
        raise RequestError(
            f"{param}.role must be system, developer, user or assistant, not {shown}.",
            param=f"{param}.role",
        )
    if value.get("tool_calls") or value.get("function_call"):
        raise RequestError(f"{param} holds tool calls, which are not supported.", param=param)
    return ChatMessage(_ROLES[role], _content(value.get("content"), f"{param}.content"))


def _content(value: object, param: str) -> str:
    if not isinstance(value, list):
        return text_value(value, param)
    texts = []
    for index, part in enumerate(value):
        if not isinstance(part, dict) or part.get("type") != "text":
            raise RequestError(
                f"{param}[{index}] is not a text part, and the model reads only text.", param=param
            )
        texts.append(text_value(part.get("text"), f"{param}[{index}].text"))
    return "".join(texts)


def completion_prompts(value: object) -> tuple[Prompt, ...]:
    """Check the prompts of a completion request: OpenAI allows four shapes.

    Raises:
        RequestError: There are none, or one is neither text nor token ids.
    """
    if isinstance(value, str):
        return (text_value(value, "prompt"),)
    if not isinstance(value, list):
        raise wrong_type("prompt", "a string or a list", value)
    if not value:
        raise RequestError("prompt is empty: there is nothing to continue.", param="prompt")
    if isinstance(value[0], int):
        return (_token_ids(value, "prompt"),)
    return tuple(
        _token_ids(item, f"prompt[{index}]")
        if isinstance(item, list)
        else text_value(item, f"prompt[{index}]")
        for index, item in enumerate(value)
    )


def _token_ids(values: list[object], param: str) -> tuple[int, ...]:
    ids = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(param, "a list of token ids", value)
        check_range(param, value, 0, _MAX_TOKEN_ID)
        ids.append(value)
    return tuple(ids)
