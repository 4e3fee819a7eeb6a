"""The model of a measurement, ready on this machine, with the prompts to measure by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.bench import thin_model
from engine.bench.placed import check_model
from engine.bench.prompts import distinct_ids, make_prompts
from engine.bench.request import SwarmBench
from engine.bench.speculation_prompts import PromptKind, speculation_prompts
from engine.core.errors import ConfigError
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.localapi.running import Home
from engine.localapi.schema import Progress
from engine.models.layout import ModelFiles
from engine.models.prepare import prepare
from engine.models.sources import STARTER
from engine.models.tokenizer import ChatTokenizer
from engine.node import compute
from engine.node.compute import Compute
from engine.planner.placement import even_spans
from engine.protocol.frames import ELEMENT_BYTES


@dataclass(frozen=True, slots=True)
class ReadyModel:
    """The model, ready on this machine."""

    source: str
    files: ModelFiles
    machine: Compute
    models_dir: Path
    spans: list[Span]
    prompts: list[list[int]]
    """As many as the largest batch has sequences."""
    long_prompt: list[int]
    """Empty unless there shall be one."""

    @property
    def element_bytes(self) -> int:
        """Of one number of a hidden state or of the KV cache."""
        return ELEMENT_BYTES[self.machine.dtype]

    def kv_bytes(self, tokens: int, span: Span) -> int:
        """KV caches of so many tokens in the blocks of `span`."""
        return tokens * self.files.spec.kv_bytes_per_token(len(span), self.element_bytes)

    async def prompts_to_draft(
        self, kinds: Iterable[PromptKind], number: int, seed: int
    ) -> dict[PromptKind, list[list[int]]]:
        """See `speculation_prompts`: so many of each kind."""
        tokenizer = await asyncio.to_thread(ChatTokenizer.load, self.files.directory)
        return {
            kind: speculation_prompts(tokenizer.encode_chat, kind, number, seed) for kind in kinds
        }


async def ready_model(bench: SwarmBench, say: Callable[[str], None]) -> ReadyModel:
    """Prepare the model, or make it if it is one of the bench's own.

    Raises:
        ConfigError: What was asked for does not fit the model.
        EngineError: The model cannot be prepared.
    """
    machine = await asyncio.to_thread(compute.choose, bench.model_config)
    models_dir = Home.from_environment().models_dir

    def show(progress: Progress) -> None:
        if progress.total and progress.done >= progress.total:
            say(progress.what.removesuffix("."))

    say(f"Preparing {'an emulated model' if bench.emulate else bench.model}")
    source = await _source(bench, machine, models_dir, say, show)
    files = await prepare(source, models_dir, machine.dtype_name, None, show)
    spec = files.spec
    longest = max(bench.prompt_tokens + bench.new_tokens, bench.long_prompt + 1)
    if longest > spec.max_position_embeddings:
        raise ConfigError(
            f"{bench.long_prompt or bench.prompt_tokens} prompt and {bench.new_tokens} new tokens "
            f"exceed the context of {spec.name}, {spec.max_position_embeddings} tokens; ask for "
            f"fewer, or take --model {thin_model.NAME}."
        )
    if bench.nodes is not None:
        check_model(bench.nodes, spec, ELEMENT_BYTES[machine.dtype])
    spans = _spans(bench, spec)
    files = await prepare(
        source, models_dir, machine.dtype_name, Span(0, spec.num_hidden_layers), show
    )
    tokenizer = await asyncio.to_thread(ChatTokenizer.load, files.directory)

    def prompts(count: int, tokens: int, seed: int) -> list[list[int]]:
        if bench.emulate is not None:
            return distinct_ids(spec.vocab_size, count, tokens, seed)
        try:
            return make_prompts(
                tokenizer.encode,
                spec.vocab_size,
                batch_size=count,
                prompt_tokens=tokens,
                seed=seed,
            )
        except ValueError as error:
            raise ConfigError(
                f"The prompts cannot be made: {error}; ask for longer ones."
            ) from error

    count = max(*bench.batch_sizes, bench.chats if bench.long_prompt else 1)
    return ReadyModel(
        source,
        files,
        machine,
        models_dir,
        spans,
        prompts(count, bench.prompt_tokens, bench.seed),
        prompts(1, bench.long_prompt, bench.seed + 1)[0] if bench.long_prompt else [],
    )


def _spans(bench: SwarmBench, spec: ModelSpec) -> list[Span]:
    """What each stage holds."""
    num_blocks = spec.num_hidden_layers
    if not bench.spans:
        try:
            return even_spans(num_blocks, bench.stages)
        except ValueError as error:
            raise ConfigError(
                f"{spec.name} has {num_blocks} blocks, so it cannot be spread over "
                f"{bench.stages} stages; choose fewer."
            ) from error
    if bench.spans[-1].end != num_blocks:
        raise ConfigError(
            f"{spec.name} has {num_blocks} blocks, but --spans ends at {bench.spans[-1].end}; "
            f"let its last span end at {num_blocks}."
        )
    return list(bench.spans)


async def _source(
    bench: SwarmBench,
    machine: Compute,
    models_dir: Path,
    say: Callable[[str], None],
    show: Callable[[Progress], None],
) -> str:
    if bench.emulate is not None:
        return await _emulated(bench, machine, models_dir, say, show)
    if bench.model == thin_model.NAME:
        return str(await asyncio.to_thread(thin_model.ensure_thin, models_dir))
    return _where_it_is(bench.model)


def _where_it_is(source: str) -> str:
    # The engines may run in another folder.
    return str(Path(source).absolute()) if Path(source).is_dir() else source


async def _emulated(
    bench: SwarmBench,
    machine: Compute,
    models_dir: Path,
    say: Callable[[str], None],
    show: Callable[[Progress], None],
) -> str:
    assert bench.emulate is not None
    row_bytes, rest = divmod(bench.emulate.payload_bytes, bench.rows_of_emulated_pass)
    element_bytes = ELEMENT_BYTES[machine.dtype]
    if rest or row_bytes % element_bytes or element_bytes != 2:
        raise ConfigError(
            f"{bench.emulate.payload_bytes} bytes cannot be {bench.rows_of_emulated_pass} rows of "
            f"hidden states in {machine.dtype_name}; give bytes that can, and --dtype fp16 or bf16."
        )
    from engine.bench.emulated_model import ensure_emulated  # torch takes seconds to import

    starter = await prepare(STARTER, models_dir, "float32", None, show)
    middle = Span(0, starter.spec.num_hidden_layers // 2)
    starter = await prepare(STARTER, models_dir, "float32", middle, show)
    directory = await asyncio.to_thread(
        ensure_emulated,
        models_dir,
        starter,
        width=row_bytes // element_bytes,
        num_blocks=bench.stages,
        dtype=machine.dtype_name,
        say=say,
    )
    return str(directory)
