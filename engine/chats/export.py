"""Conversations for other programs and for reading. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from engine.localapi.chats import ChatInfo, Message, Speaker


def as_markdown(info: ChatInfo, branch: Sequence[Message]) -> str:
    """The branch that is shown, as a document."""
    parts = [f"# {info.title or 'Conversation'}"]
    if info.system_prompt:
        parts.append("## System\n\n" + info.system_prompt)
    for message in branch:
        name = "You" if message.speaker is Speaker.USER else message.model or "Answer"
        files = "".join(f"*{file.name}*\n\n" for file in message.attachments)
        parts.append(f"## {name}\n\n{files}{message.text}")
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def as_json(info: ChatInfo, messages: Sequence[Message]) -> str:
    """Everything, with all branches; the keys are those of the API."""
    kept = {"id", "title", "system_prompt", "leaf"}
    document = {
        "format": "shoal-chat-1",
        **info.model_dump(mode="json", include=kept),
        "created": _moment(info.created_unix_s),
        "sampling": info.sampling.model_dump(exclude_none=True),
        "messages": [
            message.model_dump(mode="json", exclude={"siblings", "created_unix_s"})
            | {"created": _moment(message.created_unix_s)}
            for message in messages
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, tz=UTC).isoformat(timespec="seconds")
