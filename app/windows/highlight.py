"""Colours for code, by Pygments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QTextCharFormat, QTextDocument, QTextLayout

MAX_CHARS = 60_000
"""Longer code stays without colours: they would take longer than a person notices."""

_LIGHT = {
    Token.Keyword: "#8a1fa0",
    Token.Name.Function: "#1f5fb0",
    Token.Name.Class: "#1f5fb0",
    Token.Name.Decorator: "#7a5200",
    Token.Name.Builtin: "#0b6a75",
    Token.Name.Tag: "#1f5fb0",
    Token.Name.Attribute: "#7a5200",
    Token.Literal.String: "#2a6b2a",
    Token.Literal.Number: "#a03c10",
    Token.Comment: "#666c75",
    Token.Operator.Word: "#8a1fa0",
    Token.Generic.Deleted: "#a02020",
    Token.Generic.Inserted: "#2a6b2a",
}
_DARK = {
    Token.Keyword: "#d49af0",
    Token.Name.Function: "#86b8ff",
    Token.Name.Class: "#86b8ff",
    Token.Name.Decorator: "#e2c07b",
    Token.Name.Builtin: "#6fd0dc",
    Token.Name.Tag: "#86b8ff",
    Token.Name.Attribute: "#e2c07b",
    Token.Literal.String: "#98d08c",
    Token.Literal.Number: "#f0a878",
    Token.Comment: "#9aa0a8",
    Token.Operator.Word: "#d49af0",
    Token.Generic.Deleted: "#ff9a94",
    Token.Generic.Inserted: "#98d08c",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters of one line in one colour."""

    start: int
    length: int
    colour: str
    is_italic: bool


class Colourist(QObject):
    """Finds colours beside the main thread: a language that is met first takes 50 ms to load.

    Signals:
        found: The number of the wish, and the coloured stretches of each line.
    """

    found = Signal(int, object)

    def __init__(self) -> None:
        super().__init__()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="colours")
        self._wishes = 0

    def wish(self, code: str, language: str, *, dark: bool) -> int:
        """Ask for colours; the answer comes as `found` with the number that this returns."""
        self._wishes += 1
        number = self._wishes
        self._worker.submit(lambda: self.found.emit(number, stretches(code, language, dark=dark)))
        return number


@cache
def colourist() -> Colourist:
    """The one that all windows share."""
    return Colourist()


def stretches(code: str, language: str, *, dark: bool) -> list[list[Stretch]]:
    """The coloured stretches of each line of `code`; none for a language that nobody knows."""
    lexer = _lexer(language.lower())
    if lexer is None or len(code) > MAX_CHARS:
        return []
    colours = _DARK if dark else _LIGHT
    lines: list[list[Stretch]] = [[]]
    column = 0
    for kind, text in lexer.get_tokens(code):
        colour = _colour(kind, colours)
        for number, piece in enumerate(text.split("\n")):
            if number:
                lines.append([])
                column = 0
            if piece and colour:
                lines[-1].append(Stretch(column, len(piece), colour, kind in Token.Comment))
            column += len(piece)
    return lines


def paint(document: QTextDocument, lines: list[list[Stretch]]) -> None:
    """Colour a document without changing it."""
    block = document.begin()
    for line in lines:
        if not block.isValid():
            break
        ranges = []
        for stretch in line:
            span = QTextLayout.FormatRange()
            span.start, span.length = stretch.start, stretch.length
            look = QTextCharFormat()
            look.setForeground(QColor(stretch.colour))
            if stretch.is_italic:
                look.setFontItalic(True)
            span.format = look
            ranges.append(span)
        block.layout().setFormats(ranges)
        block = block.next()
    document.markContentsDirty(0, document.characterCount())


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        found: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return found


def _colour(kind: _TokenType, colours: dict[_TokenType, str]) -> str:
    while kind is not Token:
        if kind in colours:
            return colours[kind]
        kind = kind.parent
    return ""
