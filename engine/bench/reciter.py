"""A text instead of a model: the backend of the engine that `shoal bench desktop` starts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

import engine
from engine.core.clock import SystemClock
from engine.core.errors import ConfigError
from engine.core.generation import FinishReason, Lossy, PrefixUse, SpeculationWish, TokenEvent
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.localapi.measurements import NetworkMeasurement
from engine.localapi.schema import (
    EngineState,
    EngineStatus,
    Measurements,
    MeasureRequest,
    PauseRequest,
    PipelineStage,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.models.tokenizer import ChatTokenizer

ANSWER = """\
### What a shoal is

A **shoal** is a group of fish that stay together because each of them does a little for it. No fish
leads: every one follows *three or four* neighbours, and a turn runs through the whole group faster
than any fish could swim.

1. **Keep close** to those beside you, so that nobody is alone.
2. **Keep apart** from them, so that nobody collides.
3. **Turn** as they turn; see [the rule](https://example.org/boids) in `steer()` below.

```python
def steer(fish, neighbours, share=0.1):
    if not neighbours:
        return fish.heading
    average = sum(other.heading for other in neighbours) / len(neighbours)
    return fish.heading + share * (average - fish.heading)
```

- A predator can follow one fish, but a turning shoal is hard to aim at.
- Danger is noticed earlier when everyone keeps watch.
- Swimming in a neighbour's wake costs less strength, about 20 % by some measurements.

| group | fish | speed |
|---|---|---|
| herring | 4,000 | 1.2 m/s |
| sardines | 10,000 | 0.9 m/s |

> Together they go where none of them would dare to go alone.

"""
QUESTION = (
    "Please tell me more of how fish find their way when the water is dark and deep, number {n}."
)
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
CONTEXT_TOKENS = 1 << 16
KV_TOKENS = 1 << 17
END = "<|end|>"
STATUS_EVERY_S = 1.0


class Reciter:
    """See `engine.http.backend.Backend`: recites `ANSWER`, over and over, at a steady rate."""

    def __init__(self, tokens_per_s: float, *, leased: bool) -> None:
        self._step_s = 1 / tokens_per_s
        self._leased = leased
        self._leases = 0
        self._tokenizer = _tokenizer()
        self._ids = self._tokenizer.encode(ANSWER)
        self._spec = ModelSpec(
            model_id="bench/reciter@0", family="llama", num_hidden_layers=30, hidden_size=64,
            num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=128,
            vocab_size=1024, max_position_embeddings=CONTEXT_TOKENS, tie_word_embeddings=False,
            eos_token_ids=(0,),
        )  # fmt: skip
        self._sessions = 0
        self._tokens = 0
        self.api_url = ""
        self.ended = asyncio.Event()

    def status(self) -> EngineStatus:
        """See `Backend`."""
        return EngineStatus(
            state=EngineState.SERVING if self._sessions else EngineState.IDLE,
            span=(0, 30),
            model=self._spec.model_id,
            num_blocks=30,
            plan=(PipelineStage(peer="QmBench", start=0, end=30, is_self=True),),
            sessions=self._sessions,
            tokens_used=self._tokens,
            tokens_served=self._tokens,
            kv_total_tokens=KV_TOKENS,
            kv_free_tokens=KV_TOKENS,
            leased=self._leased,
            can_chat=True,
            version=engine.__version__,
            api_url=self.api_url,
        )

    async def watch(self) -> AsyncIterator[EngineStatus]:
        """See `Backend`; changes are told once a second."""
        shown: EngineStatus | None = None
        while not self.ended.is_set():
            status = self.status()
            if status != shown:
                shown = status
                yield status
            await asyncio.sleep(STATUS_EVERY_S)

    def lease_opened(self) -> None:
        """See `Backend`."""
        self._leases += 1

    def lease_closed(self) -> None:
        """See `Backend`."""
        self._leases -= 1
        self.end_unless_leased()

    def end_unless_leased(self) -> None:
        """End when nobody holds a lease, if we were started for one."""
        if self._leased and not self._leases:
            self.ended.set()

    def quit(self) -> None:
        """See `Backend`."""
        self.ended.set()

    async def pause(self, request: PauseRequest) -> None:
        """See `Backend`."""
        raise _no_such_thing()

    async def resume(self) -> None:
        """See `Backend`."""
        raise _no_such_thing()

    def swarm_info(self) -> SwarmInfo:
        """See `Backend`."""
        return SwarmInfo(name=None, invite=None)

    async def swarm_create(self, request: SwarmCreateRequest) -> SwarmInfo:
        """See `Backend`."""
        raise _no_such_thing()

    async def swarm_join(self, request: SwarmJoinRequest) -> SwarmInfo:
        """See `Backend`."""
        raise _no_such_thing()

    async def swarm_leave(self) -> SwarmInfo:
        """See `Backend`."""
        raise _no_such_thing()

    async def measurements(self) -> Measurements:
        """See `Backend`."""
        return Measurements(profile=None)

    async def measure_network(self, request: MeasureRequest) -> NetworkMeasurement:
        """See `Backend`."""
        raise _no_such_thing()

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        """See `Backend`."""
        return self._spec, self._tokenizer

    def free_kv_tokens(self) -> int | None:
        """See `Backend`."""
        return KV_TOKENS

    async def generate(
        self,
        prompts: Sequence[Sequence[int]],
        params: Sequence[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: SpeculationWish | None = None,
    ) -> AsyncIterator[tuple[int, TokenEvent]]:
        """See `Backend`; each token comes when it is due, however long the one before took."""
        clock = SystemClock()
        begun_s = clock.monotonic_s()
        self._sessions += len(prompts)
        try:
            for step in itertools.count():
                due_s = begun_s + (step + 1) * self._step_s
                await asyncio.sleep(max(due_s - clock.monotonic_s(), 0))
                open_rows = [row for row, one in enumerate(params) if step < one.max_new_tokens]
                for row in open_rows:
                    self._tokens += 1
                    last = step + 1 == params[row].max_new_tokens
                    finish = FinishReason.LENGTH if last else None
                    yield row, TokenEvent(id=self._ids[step % len(self._ids)], finish=finish)
                if not open_rows:
                    return
        finally:
            self._sessions -= len(prompts)


def _tokenizer() -> ChatTokenizer:
    """Of whole words, as large models have it: learned from the text that is recited."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        min_frequency=1,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([ANSWER, QUESTION], trainer)
    fast: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token=END
    )
    fast.chat_template = CHAT_TEMPLATE
    return ChatTokenizer(fast, frozenset({0}))


def _no_such_thing() -> ConfigError:
    return ConfigError("This engine is for measurements and only answers; start a real one.")
