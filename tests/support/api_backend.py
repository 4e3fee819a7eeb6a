"""A backend for tests of the local API: real tokenizer, tokens from a rule, no swarm."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from engine.core.errors import EngineError
from engine.core.generation import (
    FinishReason,
    Lossy,
    PrefixUse,
    SpeculationWish,
    TokenEvent,
    TokenLogprobs,
)
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.localapi.measurements import NetworkMeasurement
from engine.localapi.schema import (
    EngineState,
    EngineStatus,
    Measurements,
    MeasureRequest,
    PauseRequest,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.models.tokenizer import ChatTokenizer
from tests.support.tiny_models import EOS_TOKEN_ID, VOCAB_SIZE, save_tokenizer

CONTEXT_TOKENS = 512


def tiny_spec() -> ModelSpec:
    """The sizes of the tiny model, without its weights."""
    return ModelSpec(
        model_id="test/tiny@0123456789ab",
        family="llama",
        num_hidden_layers=4,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=128,
        vocab_size=VOCAB_SIZE,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=False,
        eos_token_ids=(EOS_TOKEN_ID,),
    )


def tiny_tokenizer(directory: Path) -> ChatTokenizer:
    """The tiny model's tokenizer, saved to `directory` first."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(f'{{"eos_token_id": {EOS_TOKEN_ID}}}')
    save_tokenizer(directory)
    return ChatTokenizer.load(directory)


class ScriptedBackend:
    """Says `answer` to everything, one token at a time, each choice with its number in front.

    With `ngram` asked for, it says of each token that one of two drafted ones came before it.

    The end-of-turn token follows the answer unless `max_new_tokens` cuts it first. `step_s` slows
    it down; `hang_after` makes it wait for ever after so many tokens; `fail_after` raises `error`.
    """

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        answer: str = "The shoal turns when they turn.",
        step_s: float = 0.0,
        hang_after: int | None = None,
        fail_after: int | None = None,
        error: EngineError | None = None,
        not_ready: EngineError | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.answer = answer
        self.step_s = step_s
        self.hang_after = hang_after
        self.fail_after = fail_after
        self.error = error
        self.not_ready = not_ready
        self.seen: list[tuple[tuple[int, ...], SamplingParams]] = []
        self.prefixes: PrefixUse | None = None
        self.lossy: Lossy | None = None
        self.speculation: SpeculationWish | None = None
        """These two of the last request."""
        self.reused_tokens = 0
        self.tokens_made = 0
        self.running = 0
        self.closed = asyncio.Event()
        self.hanging = asyncio.Event()
        self.leases = 0
        self.quitting = False
        self.paused: PauseRequest | None = None
        self.swarm_name: str | None = None
        self.measured: MeasureRequest | None = None
        self._changed = asyncio.Event()

    def status(self) -> EngineStatus:
        return EngineStatus(
            state=EngineState.PAUSED if self.paused else EngineState.IDLE,
            reason="You paused it." if self.paused else "",
            model=tiny_spec().model_id,
            span=(0, 4),
            sessions=self.running,
            tokens_used=self.tokens_made,
            version="test",
            api_url="http://127.0.0.1:1",
            can_chat=not self.paused,
        )

    async def watch(self) -> AsyncIterator[EngineStatus]:
        while True:
            self._changed.clear()
            yield self.status()
            await self._changed.wait()

    def lease_opened(self) -> None:
        self.leases += 1

    def lease_closed(self) -> None:
        self.leases -= 1

    async def pause(self, request: PauseRequest) -> None:
        self.paused = request
        self._changed.set()

    async def resume(self) -> None:
        self.paused = None
        self._changed.set()

    def quit(self) -> None:
        self.quitting = True

    def swarm_info(self) -> SwarmInfo:
        invite = f"shoal://{self.swarm_name}" if self.swarm_name else None
        return SwarmInfo(name=self.swarm_name, invite=invite)

    async def swarm_create(self, request: SwarmCreateRequest) -> SwarmInfo:
        self.swarm_name = request.name
        return self.swarm_info()

    async def swarm_join(self, request: SwarmJoinRequest) -> SwarmInfo:
        self.swarm_name = request.invite.removeprefix("shoal://")
        return self.swarm_info()

    async def swarm_leave(self) -> SwarmInfo:
        self.swarm_name = None
        return self.swarm_info()

    async def measurements(self) -> Measurements:
        return Measurements(profile=None)

    async def measure_network(self, request: MeasureRequest) -> NetworkMeasurement:
        self.measured = request
        return NetworkMeasurement(note="Nobody is there.")

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        if self.not_ready is not None:
            raise self.not_ready
        return tiny_spec(), self.tokenizer

    def free_kv_tokens(self) -> int | None:
        return 1_000_000 if self.not_ready is None else None

    async def generate(
        self,
        prompts: Sequence[Sequence[int]],
        params: Sequence[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: SpeculationWish | None = None,
    ) -> AsyncIterator[tuple[int, TokenEvent]]:
        self.seen += [(tuple(prompt), param) for prompt, param in zip(prompts, params, strict=True)]
        self.prefixes, self.lossy, self.speculation = prefixes, lossy, speculation
        self.running += len(prompts)
        scripts = [self.script(param) for param in params]
        try:
            for step in range(max(map(len, scripts))):
                await asyncio.sleep(self.step_s)
                if step == self.fail_after and self.error is not None:
                    raise self.error
                if step == self.hang_after:
                    self.hanging.set()
                    await asyncio.Event().wait()
                for row, script in enumerate(scripts):
                    if step < len(script):
                        self.tokens_made += 1
                        yield row, script[step]
        finally:
            self.running -= len(prompts)
            self.closed.set()

    def script(self, params: SamplingParams) -> list[TokenEvent]:
        drafts = self.speculation is not None and self.speculation.draft == "ngram"
        prefix = f"{params.choice}: " if params.choice else ""
        ids = [*self.tokenizer.encode(prefix + self.answer), EOS_TOKEN_ID]
        ids = ids[: params.max_new_tokens]
        return [
            TokenEvent(
                id=id_,
                logprobs=None if params.logprobs is None else _logprobs(id_, params.logprobs),
                finish=self._finish(id_, last=number == len(ids)),
                reused_tokens=self.reused_tokens if number == 1 else 0,
                drafted_tokens=2 if drafts else 0,
                accepted_tokens=1 if drafts else 0,
            )
            for number, id_ in enumerate(ids, start=1)
        ]

    def _finish(self, id_: int, *, last: bool) -> FinishReason | None:
        if id_ == EOS_TOKEN_ID:
            return FinishReason.STOP
        return FinishReason.LENGTH if last else None


def _logprobs(id_: int, alternatives: int) -> TokenLogprobs:
    others = [id_, *(other for other in range(40, 60) if other != id_)][:alternatives]
    return TokenLogprobs(
        logprob=math.log(0.5),
        top=tuple((other, math.log(0.5 / (rank + 1))) for rank, other in enumerate(others)),
    )
