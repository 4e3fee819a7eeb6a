"""Tiny seeded models in the layout of a Hub repository, for every family we serve."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

Family = Literal["llama", "qwen2", "qwen3", "mistral"]
FAMILIES: tuple[Family, ...] = ("llama", "qwen2", "qwen3", "mistral")

VOCAB_SIZE = 512
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
EOS_TOKEN_ID = 2

_MODELS: dict[Family, tuple[type[PretrainedConfig], type[PreTrainedModel]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
}

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('Unknown role: ' + message.role) }}"
    "{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_TEXT = """
The herring swims in a shoal because a shoal sees more than a fish. Each one keeps its distance,
matches the speed of its neighbours, and turns when they turn. No one leads. When a predator comes,
the shoal splits, flows around it and closes again behind it, and what looked like a single body
turns out to be thousands of small decisions taken at the same moment. Volunteers lend machines in
the same manner: every machine holds a few blocks of the model, passes hidden states to the next,
and nobody needs to hold the whole. Tokens go round the ring, one after another, until an end is
reached. system user assistant Hello, how are you today? I am fine, thank you. What is the capital
of France? Paris. One two three four five six seven eight nine ten, 0123456789. Naïve café, größer,
日本語の文章, 中文字符, русский текст, emoji 🐟🐠🐡🦈 and 👩‍👩‍👧 too.
"""


def save_tiny(
    family: Family,
    directory: Path,
    *,
    seed: int = 0,
    num_hidden_layers: int = 4,
    sharded: bool = False,
    tie: bool = False,
    max_position_embeddings: int = 512,
) -> Path:
    """Write a random float32 model with its tokenizer to `directory`, which is made if absent.

    Hidden size 64, 4 heads, 2 KV heads, vocabulary 512. The weights are drawn wide enough that
    greedy decoding does not settle on one token. `sharded` splits the weights into several
    safetensors files with an index; the same arguments always give the same bytes.
    """
    config_class, model_class = _MODELS[family]
    config = config_class(
        vocab_size=VOCAB_SIZE,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=max_position_embeddings,
        tie_word_embeddings=tie,
        bos_token_id=0,
        eos_token_id=EOS_TOKEN_ID,
        pad_token_id=None,
        initializer_range=0.2,
        attention_dropout=0.0,
        dtype="float32",
        **({"sliding_window": None} if family == "mistral" else {}),
    )
    directory.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config)
        # Norms and biases start as ones and zeros, which would hide a block that skips them.
        for name, parameter in sorted(model.named_parameters()):
            if "norm" in name or name.endswith(".bias"):
                parameter.data += 0.1 * torch.randn(parameter.shape)
    model.save_pretrained(directory, max_shard_size="200KB" if sharded else "5GB")
    save_tokenizer(directory)
    return directory


def save_tokenizer(directory: Path, *, chat_template: str | None = CHAT_TEMPLATE) -> None:
    """Write a byte-level BPE tokenizer of 512 tokens with a ChatML template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        min_frequency=1,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_TEXT], trainer)
    assert tokenizer.get_vocab_size() == VOCAB_SIZE
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
        clean_up_tokenization_spaces=False,
    )
    if chat_template is not None:
        fast.chat_template = chat_template
    fast.save_pretrained(directory)
