"""Servers on loopback that run beside a test."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Self


class Loopback:
    """Answers on a port of this machine, each connection in a thread; use as a context manager."""

    def __init__(self, server: socketserver.ThreadingTCPServer) -> None:
        server.daemon_threads = True
        self._server = server
        self.port: int = server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """From now on nothing answers at the address."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
