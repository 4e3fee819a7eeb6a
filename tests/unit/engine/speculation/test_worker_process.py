"""A draft's process that does not keep to the rules is ended, and nobody waits for it in vain."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from engine.core.errors import WorkerFailed
from engine.models.layout import ModelFiles
from engine.speculation.worker_process import DraftOrder, DraftProcess
from tests.support.api_backend import tiny_spec

FILES = ModelFiles(tiny_spec(), Path(), "tiny")
LINES = {
    "no-json": "echo downloading 3 of 4",
    "too-long": "head -c 20000000 /dev/zero | tr '\\0' 1",
    "no-object": "echo 3",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_line_that_is_no_answer_ends_the_process_and_fails_who_waits(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nread question\n{line}\ncat > /dev/null\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    async with asyncio.timeout(20):
        with pytest.raises(WorkerFailed, match="ended unexpectedly"):
            await DraftProcess.start(DraftOrder(FILES, FILES))
