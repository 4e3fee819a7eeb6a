"""A Windows computer for the setup's own program, as far as one can be had on Linux."""

from __future__ import annotations

import http.server
import io
import re
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from installers.setup_steps.torch_build import Driver
from installers.windows.checks import Computer
from installers.windows.machine import Declined, Machine
from tests.support.windows.wsl_stand_in import Windows, answer

ROOT = Path(__file__).parents[3]
ROOMY_BYTES = 100 << 30
QUICK_PYTHON = (sys.executable, "-S", "-E")
"""The stand-ins need the standard library alone, and a test calls them a dozen times."""


@dataclass
class StandInMachine(Machine):
    """Says what a test wants it to; asks nobody for an administrator's rights."""

    windows: Windows
    build: int = 22631
    free_bytes: int = ROOMY_BYTES
    driver: Driver | None = None
    has_card: bool = False
    restart_pending: bool = False
    virtualises: bool = True
    declines: bool = False
    exit_code: int = 0
    """Of what is run with an administrator's rights."""
    proxy: str = ""
    """Of Windows' settings."""
    elevated: list[list[str]] = field(default_factory=list)

    def look(self, folder: Path) -> Computer:
        return Computer(self.build, self.free_bytes, self.driver, self.has_card)

    def is_restart_pending(self) -> bool:
        return self.restart_pending

    def can_virtualise(self) -> bool:
        return self.virtualises

    def run_as_administrator(self, command: Sequence[str]) -> int:
        if self.declines:
            raise Declined
        self.elevated.append(list(command))
        if "--install" in command or "--update" in command:
            answer(self.windows, [word for word in command if word.startswith("--")])
        return self.exit_code

    def proxies(self) -> dict[str, str]:
        return {"HTTPS_PROXY": self.proxy} if self.proxy else {}


def wsl_command(folder: Path) -> tuple[str, ...]:
    """The stand-in of `wsl.exe` for the computer in `folder`."""
    return (*QUICK_PYTHON, str(ROOT / "tests/support/windows/wsl_stand_in.py"), str(folder))


def uv_command(folder: Path) -> tuple[str, ...]:
    """A stand-in of uv that makes an environment's programs and writes down what it was asked."""
    return (*QUICK_PYTHON, str(ROOT / "tests/support/windows/uv_stand_in.py"), str(folder))


def small_linux() -> bytes:
    """A root file system, as small as can be, in an archive of a few hundred kilobytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("etc/debian_version")
        entry.size = 600_000
        archive.addfile(entry, io.BytesIO(bytes(range(250)) * 2400))
    return content.getvalue()


@dataclass
class Mirror:
    """A web server with one file, that can be made to fail."""

    content: bytes
    url: str = ""
    cut_after_bytes: int | None = None
    """Break each connection after so much."""
    ranges: list[int] = field(default_factory=list)
    """From where each request wanted the file."""

    @property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()


@contextmanager
def mirror(content: bytes) -> Iterator[Mirror]:
    one = Mirror(content)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            begin = int((re.findall(r"bytes=(\d+)-", self.headers.get("Range", "")) or ["0"])[0])
            one.ranges.append(begin)
            part = one.content[begin:]
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[: one.cut_after_bytes])

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.url = f"http://127.0.0.1:{server.server_address[1]}/linux.tar.gz"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
