"""Prompts with `{column}` in them. Pure.

Deliberately not `str.format`: a column's name is taken as it is written, dots and colons included, and
nothing but the column's value can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.core.sentences import Sentence
from engine.jobs.problems import InputUnusable, RowUnusable, no_such_column

_TOKENS = re.compile(r"\{\{|\}\}|\{([^{}\n]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: texts and column names in turn, beginning and ending with a text."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template.

        Raises:
            InputUnusable: A brace stands alone, or a name is empty.
        """
        parts, written, at = [], "", 0
        for match in _TOKENS.finditer(text):
            written += text[at : match.start()]
            at = match.end()
            token = match.group()
            if token in ("{{", "}}"):
                written += token[0]
            elif len(token) == 1:
                place = _place(text, match.start())
                raise InputUnusable(
                    f"The template has a single {token!r} at {place}; write {token * 2!r} for a "
                    "brace, or {column} for a column's value.",
                    param="template",
                )
            elif not match.group(1).strip():
                place = _place(text, match.start())
                raise InputUnusable(
                    f"The template has an empty placeholder at {place}; write the name of a column "
                    "between the braces.",
                    param="template",
                )
            else:
                parts += [written, match.group(1).strip()]
                written = ""
        return cls((*parts, written + text[at:]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, each once, in the order of their first use."""
        return tuple(dict.fromkeys(self.parts[1::2]))

    def check(self, columns: Iterable[str]) -> None:
        """Refuse names that no column has.

        Raises:
            InputUnusable: With the columns that there are.
        """
        known = list(columns)
        for name in self.columns:
            if name not in known:
                raise InputUnusable(no_such_column(name, known), param="template")

    def fill(self, values: Mapping[str, str]) -> str:
        """The prompt of one row.

        Raises:
            RowUnusable: The row lacks a value.
        """
        filled = list(self.parts)
        for place in range(1, len(filled), 2):
            name = filled[place]
            if name not in values:
                raise RowUnusable(
                    Sentence(
                        "The row has no value for {column} of the template; add it, or leave the "
                        "row out.",
                        column=f"{{{name}}}",
                    ),
                    column=name,
                )
            filled[place] = values[name]
        return "".join(filled)


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f"character {column}" if "\n" not in text else f"line {line}, character {column}"
