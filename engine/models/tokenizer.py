"""Text to token ids and back: chat templates, incremental text, stop strings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import jinja2
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from engine.core.errors import ModelCorrupt, RequestError
from engine.models.layout import TOKENIZER, read_eos_token_ids, read_json

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class ChatTokenizer:
    """The model's own tokenizer, as `transformers` loads it, and its chat template.

    Two kinds of vocabulary exist. Byte-level ones spell every byte as a printable character;
    SentencePiece ones write a space as `▁` and unknown bytes as `<0xE2>`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, eos_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self.eos_ids = eos_ids
        backend = tokenizer.backend_tokenizer
        self._byte_level = "ByteLevel" in repr(backend.decoder)
        self._skipped = {
            id_
            for id_, token in backend.get_added_tokens_decoder().items()
            if token.special or id_ in tokenizer.all_special_ids
        }
        self._bytes: dict[int, bytes] = {}
        self.strips_leading_space = not self._byte_level and self._decoding_strips_a_space()

    @classmethod
    def load(cls, directory: Path) -> ChatTokenizer:
        """Load the tokenizer of a model directory.

        Raises:
            ModelCorrupt: Its files are missing or unreadable.
        """
        read_json(directory / TOKENIZER)
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False, use_fast=True
            )
        except Exception as error:  # tokenizers raises bare Exceptions on bad files
            raise ModelCorrupt(
                f"The tokenizer in {directory} cannot be read ({error}); fetch the model again."
            ) from error
        eos_ids = set(read_eos_token_ids(directory))
        if tokenizer.eos_token_id is not None:
            eos_ids.add(int(tokenizer.eos_token_id))
        return cls(cast(PreTrainedTokenizerFast, tokenizer), frozenset(eos_ids))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, with what the model wants before it (a BOS token, for some)."""
        return list(self._tokenizer(text, verbose=False)["input_ids"])

    def encode_more(self, text: str) -> list[int]:
        """Ids of text that goes on after others: nothing is put before it."""
        return list(self._tokenizer(text, verbose=False, add_special_tokens=False)["input_ids"])

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Ids of a conversation through the model's chat template.

        Args:
            messages: OpenAI's: `role`, and `content` as text or as a list of text parts.
            add_generation_prompt: Let the assistant speak next.

        Raises:
            RequestError: No messages, content that is not text, or what the template refuses.
        """
        if not messages:
            raise RequestError(
                "The conversation is empty; send one message or more.", param="messages"
            )
        if not self._tokenizer.chat_template:
            raise RequestError(
                "This model has no chat template; use /v1/completions, or choose a chat model.",
                param="messages",
            )
        conversation = [_with_text_content(message) for message in messages]
        try:
            ids = self._tokenizer.apply_chat_template(
                conversation,
                tokenize=True,
                add_generation_prompt=add_generation_prompt,
                return_dict=False,
            )
        except (jinja2.TemplateError, TypeError, KeyError, AttributeError, ValueError) as error:
            raise RequestError(
                f"The model's chat template refuses this conversation: {error}", param="messages"
            ) from error
        return list(cast(list[int], ids))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; special tokens, such as end-of-turn marks, have none."""
        stream = TextStream(self)
        return "".join(map(stream.push, ids)) + stream.flush()

    def token_bytes(self, id_: int) -> bytes:
        """The bytes that one id adds to the text, perhaps part of a character; b"" if none."""
        known = self._bytes.get(id_)
        if known is None:
            known = self._bytes[id_] = self._spell(id_)
        return known

    @property
    def utf8_errors(self) -> str:
        """How this tokenizer shows bytes that are no UTF-8, as a name for `bytes.decode`."""
        return "replace" if self._byte_level else "shoal-replace-each-byte"

    def _spell(self, id_: int) -> bytes:
        token = self._tokenizer.backend_tokenizer.id_to_token(id_) if id_ >= 0 else None
        if token is None or id_ in self._skipped:
            return b""
        if self._byte_level:
            # Tokens that were added by hand may hold characters that spell no byte.
            spelled = [_BYTE_OF_CHARACTER.get(character) for character in token]
            return token.encode() if None in spelled else bytes(cast(list[int], spelled))
        if byte := _BYTE_TOKEN.fullmatch(token):
            return bytes([int(byte[1], 16)])
        return token.replace("▁", " ").encode()

    def _decoding_strips_a_space(self) -> bool:
        vocabulary = self._tokenizer.get_vocab()
        token = min((token for token in vocabulary if re.fullmatch(r"▁\w+", token)), default=None)
        if token is None:
            return False
        return not str(self._tokenizer.decode([vocabulary[token]])).startswith(" ")


class TextStream:
    """Text of one sequence as its tokens arrive; each token costs its own length.

    What has been pushed and flushed together equals `ChatTokenizer.decode` of all ids. Characters
    spread over several tokens come out whole, with the last of them. With `goes_on` the text has
    begun before, so that its first space is one.
    """

    def __init__(self, tokenizer: ChatTokenizer, *, goes_on: bool = False) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(tokenizer.utf8_errors)
        self._strip_next = tokenizer.strips_leading_space and not goes_on

    def push(self, id_: int) -> str:
        """The text that is certain now."""
        return self._strip(self._decoder.decode(self._tokenizer.token_bytes(id_)))

    def flush(self) -> str:
        """The rest: a character that was cut short shows as replacement characters."""
        return self._strip(self._decoder.decode(b"", final=True))

    def _strip(self, text: str) -> str:
        if self._strip_next and text:
            self._strip_next = False
            return text.removeprefix(" ")
        return text


class StopMatcher:
    """Cuts text before the first stop string, wherever the pieces of text are cut.

    Of several stops the one that is complete first counts (of two at once, the longer). Each
    character costs constant time per stop, by Knuth, Morris and Pratt's automaton.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [(stop, _fallbacks(stop)) for stop in stops if stop]
        self._matched = [0] * len(self._stops)
        self._held = ""
        self._hit = False

    def push(self, text: str) -> tuple[str, bool]:
        """Add text.

        Returns:
            The text that no stop can begin in, and whether a stop was hit: then nothing follows.
        """
        if self._hit:
            return "", True
        buffer = self._held + text
        for position, character in enumerate(text, start=len(self._held) + 1):
            if lengths := self._advance(character):
                self._hit, self._held = True, ""
                return buffer[: position - max(lengths)], True
        safe = len(buffer) - max(self._matched, default=0)
        self._held = buffer[safe:]
        return buffer[:safe], False

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        rest, self._held = self._held, ""
        return rest

    def _advance(self, character: str) -> list[int]:
        """Take one character; the lengths of the stops that it completes."""
        completed = []
        for i, (stop, fallbacks) in enumerate(self._stops):
            matched = self._matched[i]
            while matched and stop[matched] != character:
                matched = fallbacks[matched]
            if stop[matched] == character:
                matched += 1
            self._matched[i] = matched
            if matched == len(stop):
                completed.append(matched)
        return completed


def _fallbacks(stop: str) -> list[int]:
    """For each n: the longest prefix of `stop` that ends its first n characters, n excluded."""
    table = [0, 0]
    for character in stop[1:]:
        matched = table[-1]
        while matched and stop[matched] != character:
            matched = table[matched]
        table.append(matched + 1 if stop[matched] == character else 0)
    return table


def _with_text_content(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its content as one text."""
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            raise RequestError("Only text can be sent to this model.", param="messages")
        content = "".join(str(part.get("text", "")) for part in content)
    if content is not None and not isinstance(content, str):
        raise RequestError("The content of a message must be text.", param="messages")
    return {**message, "content": content or ""}


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    """SentencePiece's way to show bytes that are no UTF-8: one mark for each."""
    assert isinstance(error, UnicodeDecodeError)
    return "�" * (error.end - error.start), error.end


codecs.register_error("shoal-replace-each-byte", _replace_each_byte)


def _byte_level_alphabet() -> dict[str, int]:
    """GPT-2's spelling: printable Latin-1 stands for itself, the rest for U+0100 and up."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + i): byte for i, byte in enumerate(others)
    }


_BYTE_OF_CHARACTER = _byte_level_alphabet()
