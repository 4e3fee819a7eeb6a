"""Cuts Markdown into running text and blocks of code. Pure.

Code is drawn apart from the text around it, with a header and a button; also code in a list, whose
numbers go on after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message."""

    is_code: bool
    text: str
    language: str = ""
    """As the fence says; empty when it says nothing."""
    is_closed: bool = True
    """False for the last part while it may grow."""


def parts(source: str) -> tuple[Part, ...]:
    """The parts of `source`, in order; blank text between them is left out."""
    found: list[Part] = []
    text: list[str] = []
    code: list[str] = []
    fence, indent, language = "", 0, ""

    def end_text() -> None:
        joined = "".join(text)
        if joined.strip():
            found.append(Part(is_code=False, text=joined))
        text.clear()

    for line in source.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if fence:
            mark = bare.strip()
            if mark.startswith(fence) and not mark.strip(fence[0]):
                found.append(Part(True, "".join(code), language))
                code.clear()
                fence = ""
            else:
                code.append(_dedented(line, indent))
        elif opening := _FENCE.match(bare):
            # Without its line end the rest of the fence may still come.
            end_text()
            indent = len(opening[1])
            fence, language = opening[2], opening[3]
        else:
            text.append(line)
    if fence:
        found.append(Part(True, "".join(code), language, is_closed=False))
    else:
        end_text()
        if found and not found[-1].is_code:
            last = found[-1]
            found[-1] = Part(False, last.text, is_closed=False)
    return tuple(found)


def _dedented(line: str, indent: int) -> str:
    """`line` without as many blanks as its fence has before it, if it has so many."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, indent) :]
