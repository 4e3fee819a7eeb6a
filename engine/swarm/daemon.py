"""libp2p's daemon as our child: it dies with us, keeps quiet, and its control calls never leak.

hivemind starts p2pd and speaks to it over a Unix socket. Three things are ours: a parent-death
signal (a p2pd that outlives its parent keeps the port, and dials then meet the wrong peer), fewer
log lines, and connections that are closed on every path.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import read_pbmsg_safe, write_pbmsg
from hivemind.proto import p2pd_pb2
from hivemind.utils.logging import use_hivemind_log_handler
from hivemind.utils.multiaddr import Multiaddr

from engine.core.errors import PeerUnreachable

use_hivemind_log_handler("nowhere")
logging.getLogger("hivemind").setLevel(logging.CRITICAL)

STREAM_BUFFER_BYTES = 1 << 20

# Runs in the child before p2pd replaces it. Signal 9, because p2pd takes seconds to end politely.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.environ["GOLOG_LOG_LEVEL"] = "error"
os.execv(sys.argv[2], sys.argv[2:])
"""


class Daemon(P2P):  # type: ignore[misc]  # hivemind has no types
    """One p2pd child. Start it from the main thread: it dies when the starting thread ends."""

    @staticmethod
    def _make_process_args(*args: object, **kwargs: object) -> list[str]:
        command: list[str] = P2P._make_process_args(*args, **kwargs)
        if sys.platform != "linux":
            return command
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]

    @property
    def child(self) -> asyncio.subprocess.Process:
        """The process, to be watched: hivemind's calls hang when it is gone."""
        process: asyncio.subprocess.Process = self._child
        return process

    async def connect(self, peer: PeerID, addresses: Sequence[str]) -> None:
        """Connect to `peer` at multiaddrs without `/p2p/`.

        Raises:
            PeerUnreachable: No address answered, or p2pd is gone.
        """
        request = p2pd_pb2.Request(
            type=p2pd_pb2.Request.CONNECT,
            connect=p2pd_pb2.ConnectRequest(
                peer=peer.to_bytes(), addrs=[Multiaddr(address).to_bytes() for address in addresses]
            ),
        )
        _, _, writer = await self._ask(request)
        _drop(writer)

    async def open_stream(
        self, peer: PeerID, protocol: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a raw stream to `peer`'s handler of `protocol`.

        Raises:
            PeerUnreachable: There is no way to the peer, or it has no such handler.
        """
        request = p2pd_pb2.Request(
            type=p2pd_pb2.Request.STREAM_OPEN,
            streamOpen=p2pd_pb2.StreamOpenRequest(peer=peer.to_bytes(), proto=[protocol]),
        )
        _, reader, writer = await self._ask(request)
        return reader, writer

    async def stop(self) -> None:
        """End p2pd and hivemind's own tasks, and wait for both."""
        control = self._client.control
        tasks = (self._listen_task, self._reader_task, control._read_task, control._write_task)
        await self.shutdown()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)

    async def _ask(
        self, request: Any
    ) -> tuple[p2pd_pb2.Response, asyncio.StreamReader, asyncio.StreamWriter]:
        path = self._daemon_listen_maddr["unix"]
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=STREAM_BUFFER_BYTES)
            await write_pbmsg(writer, request)
            response = p2pd_pb2.Response()
            await read_pbmsg_safe(reader, response)
            if response.type == p2pd_pb2.Response.ERROR:
                raise PeerUnreachable(response.error.msg)
        except (OSError, EOFError, ValueError, DecodeError) as error:
            if writer is not None:
                _drop(writer)
            raise PeerUnreachable("Shoal's network process is gone; it is being restarted.") from (
                error
            )
        except BaseException:
            if writer is not None:
                _drop(writer)
            raise
        return response, reader, writer


def _drop(writer: asyncio.StreamWriter) -> None:
    with suppress(RuntimeError):  # the loop is closing
        writer.transport.abort()
