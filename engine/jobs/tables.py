"""Tables as people save them: CSV with any delimiter, odd quotes, ragged rows. Pure."""

from __future__ import annotations

import csv
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.core.sentences import Sentence
from engine.jobs.problems import InputUnusable
from engine.jobs.text import MAX_LINE_CHARS, Line, first_lines

_DELIMITERS: Final = ",;\t|"
_SAMPLE_LINES: Final = 50
_MAX_RECORD_LINES: Final = 2000
"""A record that goes on for longer has a quote that was never closed."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How this table is written."""

    delimiter: str
    escapes_quotes: bool
    r"""Quotes within quotes are written `\"` instead of `""`."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the table."""

    line: int
    """Where it begins."""
    values: tuple[str, ...]
    problem: str | None = None


def sniff(lines: Iterable[Line]) -> Dialect:
    """Find the delimiter that cuts the first lines into the same number of values, the most."""
    sample = [line.text for line in first_lines(lines, _SAMPLE_LINES) if line.text.strip()]
    text = "\n".join(sample)
    escapes = '\\"' in text and '""' not in text.replace('\\"', "")
    best, best_score = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        dialect = Dialect(delimiter, escapes)
        counts = Counter(len(record.values) for record in read_records(_numbered(sample), dialect))
        if not counts:
            continue
        width, rows = counts.most_common(1)[0]
        score = (rows / counts.total(), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    return Dialect(best, escapes)


def read_records(lines: Iterable[Line], dialect: Dialect) -> Iterator[Record]:
    """Yield each record; a quote that never closes costs its own line, not the rest of the table."""
    csv.field_size_limit(2 * MAX_LINE_CHARS)
    source = iter(lines)
    again: deque[Line] = deque()
    while True:
        taken: list[Line] = []
        try:
            values = next(_reader(_feed(source, again, taken), dialect))
        except StopIteration:
            return
        except (csv.Error, _Runaway) as error:
            if not taken:
                raise
            again.extendleft(reversed(taken[1:]))
            yield Record(taken[0].number, (), _quote_text(taken[0], error))
            continue
        problem = next((text for line in taken if (text := line_problem(line))), None)
        if problem is not None or any(value.strip() for value in values):
            yield Record(taken[0].number, tuple(values), problem)


def header(record: Record | None) -> tuple[str, ...]:
    """The names of the columns.

    Raises:
        InputUnusable: There is no header, or a name appears twice.
    """
    if record is None:
        raise InputUnusable(Sentence("The table is empty; its first line must name the columns."))
    if record.problem is not None:
        problem = record.problem[0].lower() + record.problem[1:]
        raise InputUnusable(f"The first line, which names the columns, cannot be read: {problem}")
    names = tuple(
        value.strip() or f"column {place}" for place, value in enumerate(record.values, start=1)
    )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputUnusable(
            Sentence(
                "The first line names the column {column} twice; give each column its own name.",
                column=repr(twice[0]),
            )
        )
    return names


def line_problem(line: Line) -> str | None:
    """Why the text of a line cannot be used; None when it can."""
    if line.is_too_long:
        return Sentence(
            "The line is longer than {n} million characters; split it, or leave it out.",
            n=MAX_LINE_CHARS >> 20,
        )
    if line.is_garbled:
        return Sentence(
            "The line holds bytes that are not text in this file's encoding; save it as UTF-8."
        )
    return None


class _Runaway(Exception):
    """A record takes more lines than any should."""


def _feed(source: Iterator[Line], again: deque[Line], taken: list[Line]) -> Iterator[str]:
    size_chars = 0
    while True:
        line = again.popleft() if again else next(source, None)
        if line is None:
            return
        taken.append(line)
        size_chars += len(line.text)
        if len(taken) > _MAX_RECORD_LINES or (len(taken) > 1 and size_chars > MAX_LINE_CHARS):
            raise _Runaway
        yield line.text + "\n"


def _reader(lines: Iterator[str], dialect: Dialect) -> Iterator[list[str]]:
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        doublequote=not dialect.escapes_quotes,
        escapechar="\\" if dialect.escapes_quotes else None,
        skipinitialspace=True,  # `a, "b"` means a quoted b
        strict=True,
    )


def _quote_text(line: Line, error: Exception) -> str:
    if line.is_too_long:
        return line_problem(line) or ""
    if isinstance(error, _Runaway) or "unexpected end" in str(error):
        return Sentence(
            'A quote (") is opened here and never closed; close it, or double it if it is text.'
        )
    return Sentence('Text follows a closing quote ("); double each quote that is part of the text.')


def _numbered(texts: Iterable[str]) -> Iterator[Line]:
    return (Line(number, text) for number, text in enumerate(texts, start=1))
