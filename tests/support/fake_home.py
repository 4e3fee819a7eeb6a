"""A home in which an engine seems to run: the API of a test's backend, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.http.backend import Backend
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile
from tests.support.api_server import serving_in_thread


@contextmanager
def running_in(root: Path, backend: Backend) -> Iterator[Home]:
    """Serve `backend` as the engine of the home under `root`, until the block ends."""
    home = Home.under(root)
    with serving_in_thread(backend, home.data_dir) as api:
        for file, text in (
            (home.token_file, api.token),
            (
                home.running_file,
                ReadyFile(
                    url=api.url, token_file=str(home.token_file), pid=os.getpid()
                ).model_dump_json(),
            ),
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        yield home
        home.running_file.unlink()
