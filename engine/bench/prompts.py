"""Prompts to measure with: real text, every row different, all of exactly the same length."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from engine.core.errors import ConfigError

SENTENCES = (
    "The ferry left the harbour before sunrise, and nobody on the quay noticed that it was late.",
    "A good sourdough needs flour, water, salt and more patience than most kitchens have.",
    "Her grandfather repaired clocks for forty years and was never once on time for dinner.",
    "In autumn the river rises by two metres and carries whole trees past the old mill.",
    "Sorting a list twice costs little; explaining to a colleague why it was needed costs more.",
    "The committee agreed on everything except the date, the place and the purpose of the meeting.",
    "Three hundred kilometres north, the railway ends at a wooden platform and a blue door.",
    "If you measure the same thing every day, one morning you will find that it has changed.",
    "The violin was cheap, but in the empty church it sounded like something from another century.",
    "Bees find their way home by the sun, and on cloudy days by what little of it is polarised.",
    "He wrote the letter in pencil, crossed out the last line, and posted it all the same.",
    "Most bridges are inspected at night, when the traffic is thin and the cracks are cold.",
    "The recipe said to wait an hour; we waited twenty minutes and ate it with spoons.",
    "Every village on the coast has its own word for the wind that comes down from the mountains.",
    "A map of the city from 1890 shows a canal where the bus station stands today.",
    "The students built a telescope from a drainpipe, two lenses and a borrowed camera.",
)


def make_prompts(
    encode: Callable[[str], Sequence[int]],
    vocab_size: int,
    *,
    batch_size: int,
    prompt_tokens: int,
    seed: int,
) -> list[list[int]]:
    """Draw the prompts; the same arguments always give the same ones.

    Args:
        encode: Text to ids, with the model's tokenizer.
        vocab_size: Ids are below this.
        batch_size: B rows.
        prompt_tokens: Ids in each row.
        seed: Another seed gives other prompts.

    Returns:
        B rows, no two of them equal.

    Raises:
        ValueError: There are fewer different rows of this length than asked for.
    """
    if batch_size > vocab_size**prompt_tokens:
        raise ValueError("there are not so many different prompts of this length")
    random_source = random.Random(seed)  # noqa: S311 - nothing secret about it
    rows: dict[tuple[int, ...], None] = {}
    while len(rows) < batch_size:
        row = _text_ids(encode, prompt_tokens, random_source)
        # Short rows may begin with the same words.
        while tuple(row) in rows:
            row[random_source.randrange(prompt_tokens)] = random_source.randrange(vocab_size)
        rows[tuple(row)] = None
    return [list(row) for row in rows]


def distinct_ids(
    vocab_size: int, batch_size: int, prompt_tokens: int, seed: int
) -> list[list[int]]:
    """Prompts for an emulated model, which knows no text: no two rows share an id at a position.

    Its hidden states are a function of both, so equal ones would make rows of a payload equal.

    Returns:
        B rows of `prompt_tokens` ids.

    Raises:
        ConfigError: There are more rows than ids.
    """
    if batch_size > vocab_size:
        raise ConfigError(f"An emulated model takes at most {vocab_size} sequences; ask for fewer.")
    random_source = random.Random(seed)  # noqa: S311 - nothing secret about it
    columns = [random_source.sample(range(vocab_size), batch_size) for _ in range(prompt_tokens)]
    return [list(row) for row in zip(*columns, strict=True)]


def _text_ids(
    encode: Callable[[str], Sequence[int]], count: int, random_source: random.Random
) -> list[int]:
    ids: list[int] = []
    while len(ids) < count:
        text = " ".join(random_source.sample(SENTENCES, len(SENTENCES)))
        ids += encode(f" {text}" if ids else text)
    return ids[:count]
