"""An input file as rows, one after another: each is a request or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Self, cast

from engine.core.sentences import Sentence
from engine.jobs import tables
from engine.jobs.problems import InputUnusable, RowUnusable
from engine.jobs.requests import PROMPT_COLUMNS, Recipe, RowRequest, prompt_column
from engine.jobs.text import Line, detect_encoding, first_lines, read_lines
from engine.localapi.jobs import JobFormat, JobProblem

LINE_COLUMN: Final = "line"
"""The one column of a text file."""
_ENDINGS: Final[dict[str, JobFormat]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "txt",
    ".text": "txt",
}


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row of the input."""

    line: int
    request: RowRequest | None = None
    values: dict[str, str] = field(default_factory=dict)
    """Of a table's columns."""
    problem: JobProblem | None = None
    """Why there is no request."""


class InputReader:
    """An open input; memory does not grow with its length but for the ids of its rows."""

    def __init__(self, stream: BinaryIO, recipe: Recipe, format_: JobFormat, encoding: str) -> None:
        """See `open`."""
        self._stream = stream
        self._recipe = recipe
        self.format = format_
        self.encoding = encoding
        self.delimiter: str | None = None
        self.columns: tuple[str, ...] = ()
        """Known from the beginning for tables and texts; of JSON lines, those of a template."""
        self._dialect = tables.Dialect(",", escapes_quotes=False)
        self._read_head()

    @classmethod
    def open(
        cls, path: Path, recipe: Recipe, *, name: str, format_: JobFormat | None = None
    ) -> Self:
        """Open a file and find out what it is; the caller closes it.

        Args:
            path: Where it lies.
            recipe: Turns its rows into requests.
            name: What the person calls it; its ending tells the format.
            format_: What it is; None: found out.

        Raises:
            InputUnusable: It cannot be read, is no text, or lacks a column that the template wants.
        """
        try:
            stream = cast(BinaryIO, path.open("rb"))
        except OSError as error:
            raise InputUnusable(
                f"{path} cannot be read ({error.strerror}); check the path and its permissions.",
                param="input_path",
            ) from error
        try:
            format_ = format_ or _ENDINGS.get(Path(name).suffix.lower()) or _guess(stream)
            encoding = detect_encoding(stream, is_json=format_ == "jsonl")
            return cls(stream, recipe, format_, encoding)
        except OSError as error:
            stream.close()
            raise InputUnusable(
                f"{path} cannot be read ({error.strerror}); check the disk.", param="input_path"
            ) from error
        except BaseException:
            stream.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def rows(self) -> Iterator[InputRow]:
        """Yield each row from the beginning; empty lines are none.

        An id that appeared before is a problem of its later row.
        """
        self._stream.seek(0)
        known: dict[str, int] = {}
        for row in self._rows():
            if row.request is None:
                yield row
                continue
            first = known.setdefault(row.request.custom_id, row.line)
            if first == row.line:
                yield row
            else:
                shown = row.request.custom_id[:60]
                yield InputRow(
                    row.line,
                    values=row.values,
                    problem=JobProblem.of(
                        Sentence(
                            "custom_id {name} was used in line {line} already; give each row its "
                            "own.",
                            name=repr(shown),
                            line=first,
                        ),
                        line=row.line,
                        column="custom_id",
                    ),
                )

    def _rows(self) -> Iterator[InputRow]:
        match self.format:
            case "csv":
                records = tables.read_records(self._lines(), self._dialect)
                return (self._from_record(record) for record in islice(records, 1, None))
            case "txt":
                return (
                    self._made(line, {LINE_COLUMN: line.text})
                    for line in self._lines()
                    if line.text.strip() or line.is_too_long
                )
            case "jsonl":
                return (
                    self._from_json(line)
                    for line in self._lines()
                    if line.text.strip() or line.is_too_long
                )

    def _lines(self) -> Iterator[Line]:
        return read_lines(self._stream, self.encoding)

    def _read_head(self) -> None:
        """Find the columns, and hold the template against them."""
        template = self._recipe.template
        match self.format:
            case "csv":
                self._dialect = tables.sniff(self._lines())
                self.delimiter = self._dialect.delimiter
                self._stream.seek(0)
                self.columns = tables.header(
                    next(tables.read_records(self._lines(), self._dialect), None)
                )
                if template is None and prompt_column(self.columns) is None:
                    raise InputUnusable(
                        f"No column of the table is called {PROMPT_COLUMNS[0]!r}; give a template "
                        "that says how a row becomes a prompt, such as "
                        f"'Summarize: {{{self.columns[0]}}}'.",
                        param="template",
                    )
            case "txt":
                self.columns = (LINE_COLUMN,)
            case "jsonl":
                self.columns = () if template is None else template.columns
        if template is not None:
            template.check(self.columns)

    def _from_record(self, record: tables.Record) -> InputRow:
        line = record.line
        values = dict(zip(self.columns, record.values, strict=False))
        if record.problem is not None:
            return _bad(line, record.problem)
        if len(record.values) != len(self.columns):
            problem = JobProblem.of(
                Sentence(
                    "The row has {values} values, but the first line names {columns} columns; put "
                    "quotes around a value that holds the delimiter, or fill in what is missing.",
                    values=len(record.values),
                    columns=len(self.columns),
                ),
                line=line,
            )
            return InputRow(line, values=values, problem=problem)
        return self._made(Line(line, ""), values)

    def _made(self, line: Line, values: dict[str, str]) -> InputRow:
        problem = tables.line_problem(line)
        if problem is not None:
            return _bad(line.number, problem)
        if self.format == "txt" and self._recipe.template is None:
            asked = {PROMPT_COLUMNS[0]: line.text}
        else:
            asked = values
        try:
            request = self._recipe.from_values(asked, line.number)
        except RowUnusable as error:
            return InputRow(line.number, values=values, problem=error.at(line.number))
        return InputRow(line.number, request, values)

    def _from_json(self, line: Line) -> InputRow:
        problem = tables.line_problem(line)
        if problem is not None:
            return _bad(line.number, problem)
        try:
            request, values = self._recipe.from_json(line.text, line.number)
        except RowUnusable as error:
            return InputRow(line.number, problem=error.at(line.number))
        return InputRow(line.number, request, values)


def _bad(line: int, message: str) -> InputRow:
    return InputRow(line, problem=JobProblem.of(message, line=line))


def _guess(stream: BinaryIO) -> JobFormat:
    """What a file without a telling name is: JSON lines, a table with a header, or text."""
    encoding = detect_encoding(stream, is_json=True)
    lines = first_lines(read_lines(stream, encoding), 20)
    stream.seek(0)
    texts = [line.text.strip() for line in lines if line.text.strip()]
    if texts and texts[0].startswith("{"):
        return "jsonl"
    dialect = tables.sniff(lines)
    widths = {len(record.values) for record in tables.read_records(lines, dialect)}
    return "csv" if len(widths) == 1 and widths != {1} and len(texts) > 1 else "txt"
