"""The model of `--emulate`: the sizes of a large one, and recorded hidden states of the starter.

They are what leaves the starter's middle block for 16,384 tokens of text, in the precision of the
emulated run. `engine.server.emulation` makes the payloads of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file

from engine.bench.prompts import make_prompts
from engine.bench.thin_model import Sizes, ensure_made, write_config
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import WEIGHTS, Dtype, ModelFiles
from engine.models.tokenizer import ChatTokenizer
from engine.protocol.rows import Row
from engine.server.emulation import RECORDED
from engine.server.stage import Stage

CONTEXT_TOKENS = 131_072
_WINDOWS, _WINDOW_TOKENS = 64, 256
_SEED = 1


def ensure_emulated(
    models_dir: Path,
    starter: ModelFiles,
    *,
    width: int,
    num_blocks: int,
    dtype: Dtype,
    say: Callable[[str], None],
) -> Path:
    """The folder of an emulated model; made if it is not there.

    Args:
        models_dir: Where models are kept.
        starter: The starter in float32, with its weights.
        width: D of the emulated model.
        num_blocks: Its blocks; how many is of no matter but for cutting it into stages.
        dtype: Of its hidden states.
        say: Hears what takes long.

    Raises:
        DiskFull: There is no room for it.
        ModelError: The folder for models is not ours to write to.
    """

    def make(directory: Path) -> None:
        say("Recording hidden states of the starter model")
        write_emulated(
            directory, torch.from_numpy(_record(starter)), width, num_blocks, getattr(torch, dtype)
        )

    name = f"emulated-{width}x{num_blocks}-{dtype}"
    needed_bytes = 2 * _WINDOWS * _WINDOW_TOKENS * starter.spec.hidden_size
    return ensure_made(models_dir, name, needed_bytes, make)


def write_emulated(
    directory: Path, recorded: torch.Tensor, width: int, num_blocks: int, dtype: torch.dtype
) -> None:
    """Write an emulated model around recorded hidden states, [R, D']."""
    write_config(
        directory,
        Sizes(
            hidden_size=width,
            # What there is of heads only gives the KV caches a size.
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=2,
            intermediate_size=1,
            num_hidden_layers=num_blocks,
            max_position_embeddings=CONTEXT_TOKENS,
        ),
    )
    save_file({RECORDED: recorded.to(dtype).contiguous()}, directory / WEIGHTS)


def _record(starter: ModelFiles) -> npt.NDArray[np.float32]:
    """What leaves the starter's middle block, [R, D'], for as many different pieces of text."""
    spec = starter.spec
    span = Span(0, spec.num_hidden_layers // 2)
    stage = Stage(
        starter.directory,
        spec,
        span,
        dtype=torch.float32,
        device=torch.device("cpu"),
        progress=lambda done, total: None,
    )
    prompts = make_prompts(
        ChatTokenizer.load(starter.directory).encode,
        spec.vocab_size,
        batch_size=_WINDOWS,
        prompt_tokens=_WINDOW_TOKENS,
        seed=_SEED,
    )
    recorded = []
    for number, prompt in enumerate(prompts, start=1):
        session = SessionId(number)
        stage.open(session, span, len(prompt), len(prompt), SamplingParams(max_new_tokens=1))
        row = Row(session, 0, len(prompt))
        hidden = stage.forward([row], np.array(prompt, np.int32), None).hidden
        assert hidden is not None, "the span does not end the model"
        recorded.append(hidden.numpy())
        stage.close(session)
    return np.concatenate(recorded)
