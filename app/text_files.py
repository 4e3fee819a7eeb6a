"""Text files that go with a message. No Qt; reads what a person has chosen, at most a megabyte."""

from __future__ import annotations

import codecs
from pathlib import Path

from app.words import Tr, size
from engine.localapi.chats import MAX_TEXT_CHARS, Attachment

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ALLOWED_CONTROLS = frozenset(b"\t\n\r\f\x1b")


class NotAttached(Exception):
    """A file cannot go with a message; the text is a sentence that says why."""


def read_text_file(path: Path, tr: Tr) -> Attachment:
    """Read a file as text.

    Raises:
        NotAttached: It is too large, no text, or cannot be read.
    """
    try:
        if path.stat().st_size > MAX_TEXT_CHARS:
            raise NotAttached(
                tr("{name} has more than {limit}; attach the part that matters.").format(
                    name=path.name, limit=size(MAX_TEXT_CHARS, tr)
                )
            )
        data = path.read_bytes()
    except OSError as error:
        raise NotAttached(
            tr("{name} cannot be read ({reason}).").format(name=path.name, reason=error.strerror)
        ) from error
    text = _decoded(data)
    if text is None:
        raise NotAttached(
            tr("{name} is not a text file; the model reads only text.").format(name=path.name)
        )
    return Attachment(name=path.name[-255:], text=text.replace("\r\n", "\n"))


def _decoded(data: bytes) -> str | None:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                return None
    if any(byte < 0x20 and byte not in _ALLOWED_CONTROLS for byte in data):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")
