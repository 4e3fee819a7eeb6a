"""What is wrong with an input, said so that a person can mend it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from engine.core.errors import RequestError
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
        return JobProblem(line=line, column=self.column, message=str(self))


def known_columns(name: str, columns: Iterable[str]) -> str:
    """The end of a sentence about a column that is not there: what was meant, or what there is."""
    known = list(columns)
    close = get_close_matches(name, known, 1)
    if close:
        return f"write {close[0]!r} if you mean that column"
    shown = ", ".join(repr(column) for column in known[:_SHOWN_COLUMNS])
    more = " …" if len(known) > _SHOWN_COLUMNS else ""
    return f"write one of those that there are: {shown}{more}"
