"""A Hub on loopback, with the few endpoints that fetching a model needs, that can misbehave."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.loopback import Loopback

_LARGE = (".safetensors",)
_CHUNK_BYTES = 16384


@dataclass
class Repository:
    """What the server says of one model; change the fields to make it misbehave."""

    directory: Path
    commit: str = "1" * 40
    status: int = 200
    """Answered to everything, when not 200."""
    error_code: str = ""
    announced_sizes: dict[str, int] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    """Sent instead of the file, while the listing goes on promising the file."""
    cut_once_after: dict[str, int] = field(default_factory=dict)
    stall_once_after: dict[str, int] = field(default_factory=dict)

    def files(self) -> list[Path]:
        return sorted(path for path in self.directory.iterdir() if path.is_file())


class FakeHub(Loopback):
    """Serves repositories; use as a context manager.

    Attributes:
        url: For `HF_ENDPOINT`.
        sent_bytes: Body bytes sent, by file name.
        ranges: `Range` headers received, by file name.
        stalled: Set once a transfer hangs because of `stall_once_after`.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, **repositories: Path) -> None:
        self.repositories: dict[str, Repository] = {}
        for name, directory in repositories.items():
            self.add(f"shoal/{name}", directory)
        self.sent_bytes: Counter[str] = Counter()
        self.ranges: dict[str, list[str]] = {}
        self.stalled = threading.Event()
        self._released = threading.Event()
        hub = self

        class Handler(_Handler):
            owner = hub

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        super().__init__(server)
        self.url = f"http://127.0.0.1:{self.port}"

    def add(self, repo: str, directory: Path) -> Repository:
        return self.repositories.setdefault(repo, Repository(directory))

    def stop(self) -> None:
        """From now on nothing answers at the address."""
        self._released.set()
        super().stop()

    def wait_while_stalled(self) -> None:
        self.stalled.set()
        self._released.wait(60)


class _Handler(BaseHTTPRequestHandler):
    owner: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            repository = self._repository("/".join(parts[2:4]))
            if repository is not None:
                self._listing("/".join(parts[2:4]), repository)
        elif len(parts) == 5 and parts[2] == "resolve":
            repository = self._repository("/".join(parts[:2]))
            if repository is not None:
                self._file(repository, parts[4])
        else:
            self._fail(404, "")

    def _repository(self, repo: str) -> Repository | None:
        repository = self.owner.repositories.get(repo)
        if repository is None:
            self._fail(404, "RepoNotFound")
        elif repository.status != 200:
            self._fail(repository.status, repository.error_code)
            repository = None
        return repository

    def _listing(self, repo: str, repository: Repository) -> None:
        siblings = []
        for path in repository.files():
            content = path.read_bytes()
            size = repository.announced_sizes.get(path.name, len(content))
            entry: dict[str, object] = {"rfilename": path.name, "size": size}
            if path.name.endswith(_LARGE):
                sha256 = hashlib.sha256(content).hexdigest()
                entry["blobId"] = "0" * 40
                entry["lfs"] = {"sha256": sha256, "size": size, "pointerSize": 130}
            else:
                entry["blobId"] = _git_sha1(content)
            siblings.append(entry)
        body = json.dumps({"id": repo, "sha": repository.commit, "siblings": siblings}).encode()
        self._answer(200, body, {"Content-Type": "application/json"})

    def _file(self, repository: Repository, name: str) -> None:
        path = repository.directory / name
        if not path.is_file():
            self._fail(404, "EntryNotFound")
            return
        promised = path.read_bytes()
        large = name.endswith(_LARGE)
        etag = hashlib.sha256(promised).hexdigest() if large else _git_sha1(promised)
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{etag}"'}
        if large:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(promised))}
        body = repository.contents.get(name, promised)
        asked = self.headers.get("Range")
        if asked and self.command == "GET":
            self.owner.ranges.setdefault(name, []).append(asked)
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self._answer(206, body[start:], headers, repository, name)
        else:
            self._answer(200, body, headers, repository, name)

    def _fail(self, status: int, code: str) -> None:
        self._answer(status, b"{}", {"X-Error-Code": code} if code else {})

    def _answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str],
        repository: Repository | None = None,
        name: str = "",
    ) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = stall = None
        if repository is not None:
            cut = repository.cut_once_after.pop(name, None)
            stall = repository.stall_once_after.pop(name, None)
        for start in range(0, len(body), _CHUNK_BYTES):
            if cut is not None and start >= cut:
                self.close_connection = True
                return
            if stall is not None and start >= stall:
                self.owner.wait_while_stalled()
                self.close_connection = True
                return
            chunk = body[start : start + _CHUNK_BYTES]
            try:
                self.wfile.write(chunk)
            except OSError:
                self.close_connection = True  # the client has gone
                return
            if name:
                self.owner.sent_bytes[name] += len(chunk)


def _git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
