"""What the bench tells the processes that it measures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from engine.core.generation import PrefixUse, Speculation


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
    """One generation: prompts, and how many tokens each shall get."""

    kind: Literal["generate"] = "generate"
    prompts: list[list[int]]
    new_tokens: int
    steady: bool = True
    """Ask the stages for their counters before and after the steady part."""
    prefixes: PrefixUse = PrefixUse.NONE
    """Nothing is reused unless that is what is measured."""
    speculation: Speculation = Speculation("off")
    prunes: bool = True
    """Whether the first stage may leave out drafted tokens, where it finds that worth it."""
    temperature: float = 0.0
    """Above 0, tokens are drawn, each sequence's by a seed of its own."""
    limit_s: float = 0.0
    """Stop so long after every sequence has its first token, but not before more have come; 0: at the
    end."""
    notify_at: list[int] = []
    """Say `reached` when so many tokens have come, of all sequences together; ascending."""


class AwaitPeers(BaseModel):
    """Look at the swarm until all of these stages are online; the result is `true`."""

    kind: Literal["await"] = "await"
    peers: list[str]
    limit_s: float


class Crowd(BaseModel):
    """Chats that run, and a long prompt that comes among them."""

    kind: Literal["crowd"] = "crowd"
    chats: list[list[int]]
    """A prompt each."""
    chat_tokens: int
    """New tokens of a chat; then it begins again."""
    long_prompt: list[int]
    before_tokens: int
    """So many of each chat are timed before the long prompt comes."""


class Load(BaseModel):
    """Work for the whole swarm, again and again for a while."""

    kind: Literal["load"] = "load"
    chats: list[list[int]]
    """A prompt each, with this answer:"""
    new_tokens: int
    prompts: list[list[int]]
    """These get a single token each."""
    probed: str
    """The peer whose line is measured meanwhile."""
    lasts_s: float


ClientOrder = Annotated[Question | AwaitPeers | Crowd | Load, Field(discriminator="kind")]
CLIENT_ORDERS: TypeAdapter[ClientOrder] = TypeAdapter(ClientOrder)
