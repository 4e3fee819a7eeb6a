from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from engine.models.tokenizer import ChatTokenizer, StopMatcher, TextStream
from tests.support.tiny_models import VOCAB_SIZE, save_tokenizer

texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("aé日本🐟🧿👩‍👧 \n▁")))


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("byte_level")
    save_tokenizer(directory)
    return directory


@pytest.fixture(scope="module")
def sentence_piece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary in the manner of Llama 2: `▁` for spaces, `<0x..>` for unknown bytes."""
    directory = tmp_path_factory.mktemp("sentence_piece")
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trained.train_from_iterator(
        ["the shoal of fish and the sea"], trainers.BpeTrainer(show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    tokens = ["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    tokenizer = Tokenizer(
        models.BPE(
            {token: id_ for id_, token in enumerate(tokens)},
            [tuple(merge) for merge in model["merges"]],
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(directory)
    return directory


def streamed(tokenizer: ChatTokenizer, ids: list[int]) -> list[str]:
    stream = TextStream(tokenizer)
    return [*map(stream.push, ids), stream.flush()]


@given(text=texts)
def test_streamed_text_is_the_whole_text(byte_level: Path, text: str) -> None:
    tokenizer = _loaded(byte_level)[0]
    ids = tokenizer.encode(text)
    pieces = streamed(tokenizer, ids)
    assert "".join(pieces) == tokenizer.decode(ids) == text
    assert "�" in text or not any("�" in piece for piece in pieces)


@given(ids=st.lists(st.integers(0, VOCAB_SIZE + 5), max_size=40))
def test_any_ids_give_what_transformers_decodes(byte_level: Path, ids: list[int]) -> None:
    tokenizer, reference = _loaded(byte_level)
    expected = reference.decode(
        [id_ for id_ in ids if id_ < VOCAB_SIZE],
        skip_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )
    assert "".join(streamed(tokenizer, ids)) == expected


@given(text=texts)
def test_sentence_piece_vocabularies_stream_too(sentence_piece: Path, text: str) -> None:
    tokenizer, reference = _loaded(sentence_piece)
    ids = tokenizer.encode(text)
    expected = reference.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert "".join(streamed(tokenizer, ids)) == expected


@given(
    text=st.text("ab\n", max_size=30),
    stops=st.lists(st.text("ab\n", min_size=1, max_size=5), max_size=3),
    cuts=st.lists(st.integers(0, 30), max_size=8),
)
@settings(max_examples=300)
def test_stop_is_found_where_the_whole_text_has_it(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    matcher = StopMatcher(stops)
    seen = [matcher.push(text[a:b]) for a, b in pairwise(places)]
    got = "".join(safe for safe, _ in seen) + matcher.flush()
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    assert seen[-1][1] is bool(found)
    assert got == (text[: min(found)[1]] if found else text)


def _loaded(directory: Path) -> tuple[ChatTokenizer, PreTrainedTokenizerFast]:
    if directory not in _cache:
        _cache[directory] = (
            ChatTokenizer.load(directory),
            AutoTokenizer.from_pretrained(directory),
        )
    return _cache[directory]


_cache: dict[Path, tuple[ChatTokenizer, PreTrainedTokenizerFast]] = {}
