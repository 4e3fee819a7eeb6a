"""Rows as result lines: OpenAI's shape, or a table. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any, Final

from engine.jobs.records import Row
from engine.localapi.jobs import RowState

_RESULT_COLUMNS: Final = ("answer", "finish_reason", "error")


def openai_line(job_id: str, row: Row) -> bytes:
    """The line of a row that has ended, in the shape of OpenAI's output and error files."""
    name = f"{job_id.removeprefix('batch_')}_{row.number}"
    response = error = "null"
    if row.answer is not None:
        request = json.dumps(f"req_{name}")
        response = f'{{"status_code":{row.status},"request_id":{request},"body":{row.answer}}}'
    else:
        error = json.dumps({"code": row.error_code, "message": row.error}, ensure_ascii=False)
    return (
        f'{{"id":{json.dumps(f"batch_req_{name}")},'
        f'"custom_id":{json.dumps(row.custom_id, ensure_ascii=False)},'
        f'"response":{response},"error":{error}}}\n'
    ).encode()


class ResultTable:
    """Rows as CSV: the input's columns, then the answer, how it ended, and the error."""

    def __init__(self, columns: Iterable[str]) -> None:
        """`columns` of the input; none: rows are named by their ids."""
        self._columns = tuple(columns) or ("custom_id",)

    def header(self) -> bytes:
        """The first line, with the mark by which spreadsheets know UTF-8."""
        added = [_free_name(name, self._columns) for name in _RESULT_COLUMNS]
        return b"\xef\xbb\xbf" + _csv_line([*self._columns, *added])

    def line(self, row: Row) -> bytes:
        """The line of a row that has ended."""
        values: dict[str, str] = json.loads(row.columns)
        values.setdefault("custom_id", row.custom_id)
        answer, finish = answer_of(row)
        return _csv_line(
            [
                *(values.get(name, "") for name in self._columns),
                *(answer or "", finish or "", error_of(row) or ""),
            ]
        )


def answer_of(row: Row) -> tuple[str | None, str | None]:
    """Text and finish reason of the first choice; None for rows without answer."""
    if row.state is not RowState.DONE or row.answer is None:
        return None, None
    choice: dict[str, Any] = json.loads(row.answer)["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return text, choice["finish_reason"]


def error_of(row: Row) -> str | None:
    """Why a row has failed, as a sentence."""
    if row.state is not RowState.FAILED:
        return None
    if row.answer is not None:
        return str(json.loads(row.answer)["error"]["message"])
    return row.error


def prompt_of(row: Row) -> str:
    """What was asked, for people: the last message, or the text to continue."""
    if row.body is None:
        return ""
    body: dict[str, Any] = json.loads(row.body)
    messages = body.get("messages")
    last = messages[-1].get("content") if messages else body.get("prompt")
    return last if isinstance(last, str) else json.dumps(last, ensure_ascii=False)


def _csv_line(values: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(values)
    return text.getvalue().encode("utf-8", "replace")


def _free_name(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name
