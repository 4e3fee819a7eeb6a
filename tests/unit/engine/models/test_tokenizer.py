from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from engine.core.errors import ModelCorrupt, RequestError
from engine.models.tokenizer import ChatTokenizer, StopMatcher, TextStream
from tests.support.tiny_models import save_tiny, save_tokenizer


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny("llama", tmp_path_factory.mktemp("tokenizer") / "m", num_hidden_layers=1)


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> ChatTokenizer:
    return ChatTokenizer.load(directory)


def test_chat_is_encoded_as_transformers_does_it(directory: Path, tokenizer: ChatTokenizer) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Größe of a 🐟?"},
    ]
    expected = AutoTokenizer.from_pretrained(directory).apply_chat_template(
        messages, add_generation_prompt=True, return_dict=False
    )
    assert tokenizer.encode_chat(messages) == expected
    continued = tokenizer.encode_chat(messages, add_generation_prompt=False)
    assert continued == expected[: len(continued)]
    assert len(continued) < len(expected)


def test_content_may_come_as_text_parts(tokenizer: ChatTokenizer) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "fish"}]
    assert tokenizer.encode_chat([{"role": "user", "content": parts}]) == tokenizer.encode_chat(
        [{"role": "user", "content": "one fish"}]
    )


def test_image_parts_are_refused(tokenizer: ChatTokenizer) -> None:
    parts = [{"type": "image_url", "image_url": {"url": "data:"}}]
    with pytest.raises(RequestError, match="Only text"):
        tokenizer.encode_chat([{"role": "user", "content": parts}])


def test_empty_conversation_is_refused(tokenizer: ChatTokenizer) -> None:
    with pytest.raises(RequestError, match="empty"):
        tokenizer.encode_chat([])


def test_what_the_template_refuses_is_a_request_error(tokenizer: ChatTokenizer) -> None:
    with pytest.raises(RequestError, match="Unknown role: wizard"):
        tokenizer.encode_chat([{"role": "wizard", "content": "x"}])


def test_message_without_a_role_is_a_request_error(tokenizer: ChatTokenizer) -> None:
    with pytest.raises(RequestError):
        tokenizer.encode_chat([{"content": "x"}])


def test_model_without_chat_template_says_so(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", num_hidden_layers=1)
    (directory / "chat_template.jinja").unlink()
    save_tokenizer(directory, chat_template=None)
    with pytest.raises(RequestError, match="no chat template"):
        ChatTokenizer.load(directory).encode_chat([{"role": "user", "content": "x"}])


def test_eos_ids_come_from_generation_config_and_tokenizer(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", num_hidden_layers=1)
    path = directory / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": [0, 7]}))
    assert ChatTokenizer.load(directory).eos_ids == {0, 7, 2}


def test_damaged_tokenizer_is_reported_as_corrupt(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", num_hidden_layers=1)
    path = directory / "tokenizer.json"
    path.write_text(path.read_text()[:5000])
    with pytest.raises(ModelCorrupt, match=r"tokenizer\.json"):
        ChatTokenizer.load(directory)
    path.write_text("{}")
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        ChatTokenizer.load(directory)


def test_special_tokens_have_no_text(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("<|im_start|>fish<|im_end|>")
    assert ids[0] == 1
    assert ids[-1] == 2
    assert tokenizer.decode(ids) == "fish"


def test_ids_outside_the_vocabulary_have_no_text(tokenizer: ChatTokenizer) -> None:
    assert [tokenizer.token_bytes(id_) for id_ in (-1, 512, 1 << 30)] == [b"", b"", b""]


def test_emoji_appears_whole_with_its_last_token(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("🧿")  # not in the training text, so spelled in bytes
    assert len(ids) > 1
    stream = TextStream(tokenizer)
    assert [stream.push(id_) for id_ in ids] == [""] * (len(ids) - 1) + ["🧿"]
    assert stream.flush() == ""


def test_character_cut_short_shows_as_replacement_at_the_end(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("🧿")[:-1]
    stream = TextStream(tokenizer)
    assert "".join(map(stream.push, ids)) == ""
    assert stream.flush() == "�"


def test_cost_per_token_does_not_grow_with_the_text(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.encode("a shoal of fish ") * 2000
    stream = TextStream(tokenizer)

    def seconds(part: list[int]) -> float:
        start = time.perf_counter()
        for id_ in part:
            stream.push(id_)
        return time.perf_counter() - start

    seconds(ids[:1000])
    early = min(seconds(ids[:1000]) for _ in range(3))
    seconds(ids)
    late = min(seconds(ids[:1000]) for _ in range(3))
    assert late < 5 * early  # a stream that decodes all again would be 30 times slower


@pytest.mark.parametrize(
    ("stops", "pieces", "text", "hit"),
    [
        (["END"], ["hello E", "N", "D more"], "hello ", True),
        (["END"], ["hello E", "NX"], "hello ENX", False),
        (["aab"], ["aa", "a", "b"], "a", True),
        (["\n\n", "User:"], ["Hi Us", "er", "\n", "\nUser:"], "Hi User", True),
        (["bc", "abcd"], ["ab", "cd"], "a", True),
        (["abc", "bc"], ["xabc"], "x", True),
        ([], ["anything"], "anything", False),
        ([""], ["anything"], "anything", False),
    ],
)
def test_text_ends_before_the_stop_string(
    stops: list[str], pieces: list[str], text: str, hit: bool
) -> None:
    matcher = StopMatcher(stops)
    seen = [matcher.push(piece) for piece in pieces]
    assert "".join(safe for safe, _ in seen) + matcher.flush() == text
    assert any(found for _, found in seen) is hit


def test_only_what_may_begin_a_stop_is_held_back() -> None:
    matcher = StopMatcher(["<|end|>"])
    assert matcher.push("plain text") == ("plain text", False)
    assert matcher.push("almost <|e") == ("almost ", False)
    assert matcher.push("cho") == ("<|echo", False)


def test_nothing_follows_a_hit() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("One. Two") == ("One", True)
    assert matcher.push("three") == ("", True)
    assert matcher.flush() == ""
