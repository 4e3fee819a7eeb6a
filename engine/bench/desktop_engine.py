"""The engine of `shoal bench desktop`: the real API, chats and jobs, and a text instead of a model.

So the app is measured with what it meets in earnest (routes, database, event streams), at a rate
that is the same on every machine. Started as the app starts an engine:

    python -m engine.bench.desktop_engine --leased --ready-file F [--messages N] [--tokens-per-s R]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from engine.bench import quantities
from engine.bench.reciter import ANSWER, QUESTION, Reciter
from engine.chats import conversations
from engine.config import ApiConfig
from engine.core.clock import SystemClock
from engine.core.errors import EngineError
from engine.core.whole_file import write_whole
from engine.http.answering import Answering
from engine.http.batch_routes import BatchRoutes
from engine.http.chat_routes import ChatRoutes
from engine.http.job_answerer import JobAnswerer
from engine.http.job_routes import JobRoutes
from engine.http.server import serve
from engine.jobs.files import Files
from engine.jobs.jobs import Jobs
from engine.jobs.store import JobStore
from engine.localapi.chats import ChatSettings, Sampling
from engine.localapi.launch import ERROR_PREFIX
from engine.localapi.running import Home, process_start
from engine.localapi.schema import (
    ReadyFile,
)
from engine.localapi.token import ensure_token
from engine.storage.database import Database

LONGEST_ANSWER = 16_384
FIRST_LEASE_LIMIT_S = 30.0
"""The app may have been killed before it opened its event stream."""


@dataclass(frozen=True, slots=True)
class Options:
    """Of one start."""

    ready_file: Path | None
    leased: bool
    messages: int
    tokens_per_s: float


async def run(options: Options, home: Home) -> None:
    """Serve until a signal, a quit request, or the end of the last lease."""
    clock = SystemClock()
    reciter = Reciter(options.tokens_per_s, leased=options.leased)
    database = await Database.open(home.database_file, clock)
    await database.write(lambda connection: _fill(connection, options.messages))
    store = JobStore(database, clock)
    answerer = JobAnswerer(reciter, Answering(reciter, clock))
    jobs = Jobs(store, Files(home.files_dir, database, store, clock), answerer, clock)
    chats = ChatRoutes(reciter, database, clock)
    token = ensure_token(home.token_file)
    server = await serve(
        reciter, token, ApiConfig(), [JobRoutes(jobs, ping_every_s=10.0), BatchRoutes(jobs), chats]
    )
    working = asyncio.create_task(jobs.run(), name="jobs")
    try:
        reciter.api_url = server.url
        _say_ready(options, home, server.url)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, reciter.quit)
        loop.call_later(FIRST_LEASE_LIMIT_S, reciter.end_unless_leased)
        await reciter.ended.wait()
    finally:
        home.running_file.unlink(missing_ok=True)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await server.close()
        await database.close()


def main(words: Sequence[str] | None = None) -> int:
    """See the module. Returns the exit code: 0 done, 1 failed, 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench.desktop_engine")
    parser.add_argument("--leased", action="store_true")
    parser.add_argument("--ready-file", type=Path)
    parser.add_argument("--messages", type=quantities.positive, default=10_000)
    parser.add_argument("--tokens-per-s", type=quantities.positive, default=100)
    args = parser.parse_args(words)
    options = Options(args.ready_file, args.leased, args.messages, args.tokens_per_s)
    try:
        asyncio.run(run(options, Home.from_environment()))
    except EngineError as error:
        print(f"{ERROR_PREFIX}{error}", file=sys.stderr)
        return 1
    return 0


def _fill(connection: Connection, messages: int) -> None:
    """One long conversation, where there is none yet."""
    if conversations.listed(connection, "", after=None, limit=1, deleted=False).chats:
        return
    chat = conversations.create(
        connection,
        ChatSettings(title="A long conversation", sampling=Sampling(max_tokens=LONGEST_ANSWER)),
        1.0,
    ).id
    parent: int | None = None
    for number in range(messages):
        speaker = "assistant" if number % 2 else "user"
        text = ANSWER if number % 2 else QUESTION.format(n=number // 2 + 1)
        parent = connection.execute(
            "INSERT INTO messages (chat, parent, speaker, text, attachments, ending, model, tokens,"
            " seconds, created_unix_s) VALUES (?, ?, ?, ?, '[]', 'complete', 'bench', 320, 3.2, 1)",
            (chat, parent, speaker, text),
        ).lastrowid
    connection.execute("UPDATE chats SET leaf = ? WHERE id = ?", (parent, chat))


def _say_ready(options: Options, home: Home, url: str) -> None:
    ready = ReadyFile(
        url=url,
        token_file=str(home.token_file),
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
    )
    for path in (home.running_file, options.ready_file):
        if path is not None:
            write_whole(path, ready.model_dump_json().encode())


if __name__ == "__main__":
    sys.exit(main())
