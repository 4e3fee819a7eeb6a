"""What is wrong with an input, said so that a person can mend it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from engine.core.errors import RequestError
from engine.core.sentences import Sentence
from engine.localapi.jobs import JobProblem

_SHOWN_COLUMNS = 12


class InputUnusable(RequestError):
    """The input as a whole cannot be read as rows."""

    code = "invalid_input_file"


class RowUnusable(Exception):
    """One row cannot become a request.

    Args:
        message: What is wrong and what to do, as a sentence.
        column: Where in the row.
    """

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column

    def at(self, line: int) -> JobProblem:
        """The problem, with its place."""
        return JobProblem.of(self.args[0], line=line, column=self.column)


def no_such_column(name: str, columns: Iterable[str]) -> Sentence:
    """What is wrong with a template that asks for `name`: what was meant, or what there is."""
    known = list(columns)
    asked = f"{{{name}}}"
    if close := get_close_matches(name, known, 1):
        return Sentence(
            "The template asks for {asked}, but no column has this name; write {column} if you "
            "mean that column.",
            asked=asked,
            column=repr(close[0]),
        )
    shown = ", ".join(repr(column) for column in known[:_SHOWN_COLUMNS])
    return Sentence(
        "The template asks for {asked}, but no column has this name; write one of those that there "
        "are: {columns}.",
        asked=asked,
        columns=shown + (" …" if len(known) > _SHOWN_COLUMNS else ""),
    )
