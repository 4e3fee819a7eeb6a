"""How the last stage picks a token: the parameters of one sequence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Parameters of one sequence; the defaults are greedy decoding.

    Everything the last stage needs travels in these fields, so that any stage that holds the last
    block can go on with the sequence. `temperature` 0 is greedy. `seed` and `choice` key the noise
    (design: token = argmax(log p + noise(seed, choice, position))). `logit_bias` and
    `stop_token_ids` are in token ids; stop *strings* are the client's business.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0
    choice: int = 0
    logprobs: int | None = None
    """Alternatives to report beside each token's own log-probability; None reports nothing."""
    stop_token_ids: tuple[int, ...] = ()
    max_new_tokens: int = 256
