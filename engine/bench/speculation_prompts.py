"""Prompts to speculate on: questions as people ask them, and texts to be copied. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from engine.bench.prompts import SENTENCES

PromptKind = Literal["chat", "copy"]
PROMPT_KINDS: Final[tuple[PromptKind, ...]] = ("chat", "copy")
_COPIED_SENTENCES: Final = 5

QUESTIONS: Final = (
    "How do I keep basil alive on a windowsill in winter?",
    "Explain why the sky is blue to a ten-year-old.",
    "What should I look at before I buy a used bicycle?",
    "Write a short note that thanks a neighbour for watering the plants.",
    "What is the difference between a virus and a bacterium?",
    "Give me three ideas for a rainy Sunday with children.",
    "How does a lock on a canal work?",
    "Summarise what a central bank does.",
    "My bread does not rise. What could be wrong?",
    "Describe a day in the life of a lighthouse keeper.",
    "What are good questions to ask at a job interview?",
    "How do I explain recursion to a beginner?",
    "Plan a two-day trip to a city by the sea.",
    "Why do leaves change colour in autumn?",
    "What is a healthy breakfast that takes five minutes?",
    "Tell me how to clean a cast-iron pan.",
    "Compare trains and planes for a journey of 600 kilometres.",
    "Write four lines about the first snow.",
    "What does inflation mean for my savings?",
    "How can I sleep better in a noisy street?",
)

Encode = Callable[[Sequence[Mapping[str, str]]], Sequence[int]]
"""A conversation to ids, the beginning of the answer included."""


def speculation_prompts(
    encode_chat: Encode, kind: PromptKind, number: int, seed: int
) -> list[list[int]]:
    """So many different prompts; the same arguments always give the same ones.

    Args:
        encode_chat: With the model's tokenizer and template.
        kind: `chat` are questions, `copy` asks for a text to be said again.
        number: How many.
        seed: Another seed gives another order, and other texts to copy.
    """
    random_source = random.Random(seed)  # noqa: S311 - nothing secret about it
    texts: list[str] = []
    while len(texts) < number:
        if kind == "chat":
            texts += random_source.sample(QUESTIONS, len(QUESTIONS))
        else:
            passage = " ".join(random_source.sample(SENTENCES, _COPIED_SENTENCES))
            texts.append(f"Repeat the following text word for word:\n\n{passage}")
    return [list(encode_chat([{"role": "user", "content": text}])) for text in texts[:number]]
