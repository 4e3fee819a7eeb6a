import pytest

from engine.bench.prompts import SENTENCES, distinct_ids, make_prompts
from engine.core.errors import ConfigError

VOCAB_SIZE = 256


def encode(text: str) -> list[int]:
    return list(text.encode())


def prompts(batch_size: int, prompt_tokens: int, seed: int = 0) -> list[list[int]]:
    return make_prompts(
        encode, VOCAB_SIZE, batch_size=batch_size, prompt_tokens=prompt_tokens, seed=seed
    )


@pytest.mark.parametrize(("batch_size", "prompt_tokens"), [(1, 5), (32, 128), (8, 5000), (40, 1)])
def test_rows_have_the_asked_length_and_differ(batch_size, prompt_tokens):
    rows = prompts(batch_size, prompt_tokens)
    assert [len(row) for row in rows] == [prompt_tokens] * batch_size
    assert len({tuple(row) for row in rows}) == batch_size
    assert all(0 <= token < VOCAB_SIZE for row in rows for token in row)


def test_rows_are_real_text():
    (row,) = prompts(1, 40)
    assert any(sentence.startswith(bytes(row).decode()) for sentence in SENTENCES)


def test_the_seed_decides():
    assert prompts(4, 64) == prompts(4, 64)
    assert prompts(4, 64) != prompts(4, 64, seed=1)


def test_more_rows_than_can_differ_are_refused():
    with pytest.raises(ValueError, match="different prompts"):
        prompts(257, 1)


def test_prompts_of_an_emulated_model_share_no_id_at_any_position():
    rows = distinct_ids(64, 64, 10, seed=1)
    assert [len(row) for row in rows] == [10] * 64
    assert all(sorted(column) == list(range(64)) for column in zip(*rows, strict=True))
    assert rows == distinct_ids(64, 64, 10, seed=1) != distinct_ids(64, 64, 10, seed=2)
    with pytest.raises(ConfigError, match="at most 64 sequences"):
        distinct_ids(64, 65, 10, seed=1)
