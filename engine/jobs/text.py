"""Bytes to lines of text, whatever wrote them, within bounded memory. Pure but for the stream."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Final

from engine.core.sentences import Sentence
from engine.jobs.problems import InputUnusable

MAX_LINE_CHARS: Final = 4 << 20
"""Far beyond any model's context; a longer line is a mistake, and is not kept in memory."""
_HEAD_CHARS: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 16
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STRAY_BYTES: Final = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of bytes that are not UTF-8."""
_TEXT_CONTROLS: Final = frozenset(b"\t\n\r\f\x1b\x1a")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end."""

    number: int
    """Counted from 1."""
    text: str
    """Empty when the line is too long."""
    is_too_long: bool = False
    is_garbled: bool = False
    """Bytes in it do not belong to the encoding, or to any text."""


def detect_encoding(stream: BinaryIO, *, is_json: bool) -> str:
    """Find out how the text is encoded, reading all of it; leaves the stream at its beginning.

    Args:
        stream: Seekable.
        is_json: JSON is UTF-8: a stray byte is then an error in its line, not another encoding.

    Raises:
        InputUnusable: It is no text.
    """
    head = stream.read(_CHUNK_BYTES)
    stream.seek(0)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    wide = _without_mark(head)
    if wide is not None:
        return wide
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    if b"\0" in head or controls > len(head) // 50:
        raise InputUnusable(
            Sentence(
                "The input is not text (it holds bytes that no text has); save it as JSONL, CSV or "
                "plain text first."
            )
        )
    if is_json or _is_utf8(stream):
        return "utf-8"
    # What Windows and old programs write. The five bytes that cp1252 leaves open are rare.
    return "cp1252"


def read_lines(
    stream: BinaryIO, encoding: str, *, max_chars: int = MAX_LINE_CHARS
) -> Iterator[Line]:
    """Yield each line; every kind of line end counts. Too long ones are passed over.

    Args:
        stream: Read from where it is.
        encoding: As `detect_encoding` has found it.
        max_chars: Longer lines come without their text.
    """
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(encoding)(errors), translate=True
    )
    number, held, dropped = 1, "", False
    ended = False
    while not ended:
        chunk = stream.read(_CHUNK_BYTES)
        ended = not chunk
        *lines, rest = (decoder.decode(chunk, final=ended)).split("\n")
        for text in lines:
            yield _line(number, held + text, max_chars, dropped=dropped)
            number, held, dropped = number + 1, "", False
        if not dropped:
            held += rest
            if len(held) > max_chars:
                held, dropped = "", True
    if held or dropped:
        yield _line(number, held, max_chars, dropped=dropped)


def first_lines(lines: Iterable[Line], most: int) -> list[Line]:
    """A few lines from which to guess what the rest is like, however long they are."""
    taken: list[Line] = []
    size_chars = 0
    for line in islice(lines, most):
        taken.append(line)
        size_chars += len(line.text)
        if size_chars > _HEAD_CHARS:
            break
    return taken


def _line(number: int, text: str, max_chars: int, *, dropped: bool) -> Line:
    if dropped or len(text) > max_chars:
        return Line(number, "", is_too_long=True)
    stray = not text.isascii() and bool(_STRAY_BYTES.search(text))
    return Line(number, text, is_garbled=stray or "\0" in text)


def _without_mark(head: bytes) -> str | None:
    """UTF-16 without its mark: every other byte of most texts is zero."""
    pairs = len(head) // 2
    if pairs < 2:
        return None
    even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if odd > pairs * 0.7 and even < pairs * 0.1:
        return "utf-16-le"
    if even > pairs * 0.7 and odd < pairs * 0.1:
        return "utf-16-be"
    return None


def _is_utf8(stream: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := stream.read(_CHUNK_BYTES):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    finally:
        stream.seek(0)
    return True
