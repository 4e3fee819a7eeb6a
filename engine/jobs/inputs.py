"""What a request for a job means: which file, and how its rows become prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from engine.core.errors import RequestError
from engine.jobs import intake
from engine.jobs.files import Files
from engine.jobs.problems import InputUnusable
from engine.jobs.reading import InputRow
from engine.jobs.records import JobSpec
from engine.jobs.requests import Check
from engine.localapi.jobs import (
    JobCreateRequest,
    JobInput,
    JobPreview,
    JobPreviewRequest,
    JobProblem,
    PreviewRow,
    ResultFormat,
)

MAX_ROWS: Final = 1_000_000
PREVIEW_CHARS: Final = 2000
"""Of a text in a preview: a row may have millions."""


class Inputs:
    """Finds and shows inputs.

    Args:
        files: Those that were uploaded.
        check: Finds what is wrong with a request.
    """

    def __init__(self, files: Files, check: Check) -> None:
        self._files = files
        self._check = check

    async def spec(self, request: JobInput) -> JobSpec:
        """What is asked for, with the input found.

        Raises:
            RequestError: It names no input, or two, or not by an absolute path.
        """
        if (request.input_path is None) == (request.input_file_id is None):
            raise RequestError(
                "Give either input_path or input_file_id, and not both.", param="input_path"
            )
        values: dict[str, Any] = request.model_dump(include=set(JobSpec.model_fields))
        if request.input_file_id is not None:
            record = await self._files.one(request.input_file_id)
            name = record.name
        else:
            assert request.input_path is not None
            path = Path(request.input_path)
            if not path.is_absolute():
                raise RequestError("input_path must be absolute.", param="input_path")
            name = path.name
        if isinstance(request, JobCreateRequest):
            values["output_format"] = request.output_format or _format_of(request.output_path)
        return JobSpec.model_validate({**values, "input_name": name, "max_rows": MAX_ROWS})

    def path(self, spec: JobSpec) -> Path:
        """Where the input lies."""
        if spec.input_file_id is not None:
            return self._files.path(spec.input_file_id)
        assert spec.input_path is not None
        return Path(spec.input_path)

    async def check(self, spec: JobSpec) -> None:
        """Find what is wrong with the whole of an input.

        Raises:
            InputUnusable: The input or the template makes no sense.
        """
        async with intake.opened(spec, self.path(spec), self._check):
            pass

    async def preview(self, request: JobPreviewRequest) -> JobPreview:
        """The first rows as they would be asked, or without a template that makes sense, as they are.

        Long texts are cut.

        Raises:
            InputUnusable: The input makes no sense.
        """
        spec = await self.spec(request)
        try:
            return await self._first_rows(spec, request.rows)
        except InputUnusable as error:
            if error.param != "template":
                raise
            problem = JobProblem.of(error.args[0], column=error.param)
        # The person is still writing it, and wants to see what there is to write about.
        seen = await self._first_rows(spec.model_copy(update={"template": ""}), request.rows)
        rows = tuple(PreviewRow(line=row.line, values=row.values) for row in seen.rows)
        return seen.model_copy(update={"rows": rows, "problem": problem})

    async def _first_rows(self, spec: JobSpec, most: int) -> JobPreview:
        async with intake.opened(spec, self.path(spec), self._check) as reader:
            rows = await asyncio.to_thread(
                lambda: tuple(_shown(row, reader.columns) for row in islice(reader.rows(), most))
            )
        return JobPreview(
            format=reader.format,
            encoding=reader.encoding,
            delimiter=reader.delimiter,
            columns=reader.columns,
            rows=rows,
        )


def _shown(row: InputRow, columns: Sequence[str]) -> PreviewRow:
    return PreviewRow(
        line=row.line,
        values=tuple(row.values.get(name, "")[:PREVIEW_CHARS] for name in columns),
        request=None if row.request is None else _cut(dict(row.request.body)),
        problem=row.problem,
    )


def _cut(value: Any) -> Any:
    """The same with long texts cut."""
    if isinstance(value, str):
        return value[:PREVIEW_CHARS]
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _format_of(output_path: str | None) -> ResultFormat:
    return "csv" if output_path is not None and output_path.lower().endswith(".csv") else "jsonl"
