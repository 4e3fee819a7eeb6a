"""What the bench tells the processes that it measures."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ClientSpec(BaseModel):
    """What the bench writes into the spec file."""

    invite: str
    config: dict[str, Any]
    """Branch → field → value, over the defaults."""
    stages: int
    """The route must have so many before it begins."""
    ready_limit_s: float


class LocalSpec(BaseModel):
    """What the bench writes into the spec file."""

    directory: str
    dtype: str
    device: str
    threads: int


class Question(BaseModel):
    """One generation: prompts of equal length, and how many tokens each shall get."""

    prompts: list[list[int]]
    new_tokens: int
