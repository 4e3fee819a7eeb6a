"""The form for a new batch, and its first rows, as words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.batch_state import Batches
from app.words import Tr, counted, in_words, number
from engine.localapi.jobs import JobPreview, JobProblem, PreviewRow

MAX_PROMPT_CHARS = 400
"""Of a row in the preview."""


@dataclass(frozen=True, slots=True)
class FormView:
    """What the form for a new batch shows beside what the person has written."""

    detected: str
    """What kind of file it is; empty while there is none."""
    columns: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bad_rows: frozenset[int]
    note: str
    """What to do next, or how many of the rows shown are bad."""
    problem: str
    can_start: bool


def form_view(batches: Batches, *, linked: bool, tr: Tr) -> FormView:
    """The form, beside what the person has written."""
    preview = batches.preview
    problem = batches.preview_error
    if preview is not None and preview.problem is not None:
        problem = problem_words(preview.problem, tr)
    has_input = batches.preview_wanted is not None
    rows = () if preview is None else preview.rows
    bad = frozenset(at for at, row in enumerate(rows) if row.problem is not None)
    if not has_input:
        note = tr("Choose a file, or drop one here; then you see its first rows as they are asked.")
    elif bad:
        note = counted(
            len(bad),
            tr(
                "{n} of the first {total} rows cannot be asked; the table says why."
                "|{n} of the first {total} rows cannot be asked; the table says why."
            ),
            tr,
            total=number(len(rows), tr),
        )
    elif preview is None and not problem:
        note = tr("Reading the first rows…")
    elif rows and not problem:
        note = counted(
            len(rows),
            tr("The first row, as it will be asked.|The first {n} rows, as they will be asked."),
            tr,
        )
    else:
        note = ""
    columns = () if preview is None else preview.columns
    return FormView(
        detected="" if preview is None else detected_words(preview, tr),
        columns=columns,
        header=(tr("Line"), *columns, tr("What is asked")),
        rows=tuple(_preview_row(row, len(columns), tr) for row in rows),
        bad_rows=bad,
        note=note if linked else tr("The engine does not answer; wait until it runs again."),
        problem=batches.refusal or problem,
        can_start=linked and has_input and bool(rows) and not problem and not batches.busy,
    )


def detected_words(preview: JobPreview, tr: Tr) -> str:
    """`CSV table with 3 columns, UTF-8, separated by “;”`."""
    count = len(preview.columns)
    if preview.format == "jsonl":
        what = (
            counted(count, tr("Lines of JSON with {n} column|Lines of JSON with {n} columns"), tr)
            if count
            else tr("Lines of JSON, one request each")
        )
    elif preview.format == "csv":
        what = counted(count, tr("Table with {n} column|Table with {n} columns"), tr)
    else:
        what = tr("Text, one prompt on each line")
    text = f"{what}, {preview.encoding.upper()}"
    if preview.format == "csv" and preview.delimiter is not None:
        sign = {"\t": tr("tabs")}.get(
            preview.delimiter, tr("“{sign}”").format(sign=preview.delimiter)
        )
        text += ", " + tr("separated by {sign}").format(sign=sign)
    return text


def _preview_row(row: PreviewRow, columns: int, tr: Tr) -> tuple[str, ...]:
    values = (*row.values, *("",) * columns)[:columns]
    if row.problem is not None:
        asked = problem_words(row.problem, tr)
    else:
        asked = _prompt(row.request or {})[:MAX_PROMPT_CHARS]
    return (str(row.line), *(value[:MAX_PROMPT_CHARS] for value in values), asked)


def _prompt(body: dict[str, Any]) -> str:
    """The last thing that a request says; its form has been checked by the engine."""
    messages = body.get("messages")
    said = body.get("prompt", "")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        said = messages[-1].get("content", "")
    return said if isinstance(said, str) else str(said)


def problem_words(problem: JobProblem, tr: Tr) -> str:
    """Where and what: `Line 12, column name: it is empty.`."""
    text = in_words(problem.said, problem.message, tr)
    if problem.line is None:
        return text
    if problem.column is None:
        return tr("Line {line}: {text}").format(line=problem.line, text=text)
    return tr("Line {line}, column {column}: {text}").format(
        line=problem.line, column=problem.column, text=text
    )
