"""libp2p's daemon as our child: it dies with us, keeps quiet, and its control calls never leak.

hivemind speaks to p2pd over a Unix socket. Starting it is ours, for three reasons: a parent-death
signal (a p2pd that outlives its parent keeps the port, and dials then meet the wrong peer), fewer
log lines, and connections that are closed on every path.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hivemind import hivemind_cli
from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.control import DEFAULT_MAX_MSG_SIZE
from hivemind.p2p.p2p_daemon_bindings.p2pclient import Client
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, read_pbmsg_safe, write_pbmsg
from hivemind.proto import p2pd_pb2
from hivemind.utils.logging import use_hivemind_log_handler
from hivemind.utils.multiaddr import Multiaddr

from engine.core.errors import ConfigError, PeerUnreachable
from engine.core.ids import PeerId
from engine.core.reach import Reach
from engine.swarm.binary_addresses import from_bytes, to_bytes
from engine.swarm.daemon_flags import daemon_environment, daemon_flags

_logger = logging.getLogger(__name__)

use_hivemind_log_handler("nowhere")
logging.getLogger("hivemind").setLevel(logging.CRITICAL)

STREAM_BUFFER_BYTES = 1 << 20
_END_LIMIT_S = 5.0
_SOCKETS = Path("/tmp")  # noqa: S108 - paths of sockets must be short; only their owner may connect

# Runs in the child before p2pd replaces it. Signal 9, because p2pd takes seconds to end politely.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Daemon(P2P):  # type: ignore[misc]  # hivemind has no types
    """One p2pd child. Start it from the main thread: it dies when the starting thread ends."""

    @classmethod
    async def launch(
        cls,
        *,
        identity_file: Path,
        listen: Sequence[str],
        keep_routes: bool,
        reach: Reach,
        announce: Sequence[str] = (),
        relays: bool,
        timeout_s: float,
    ) -> Daemon:
        """Start p2pd and connect to it.

        Args:
            identity_file: The node's key.
            listen: Multiaddrs.
            keep_routes: Answer others' questions for the way to a peer.
            reach: How others reach us.
            announce: What p2pd tells others of our addresses; empty: what it finds.
            relays: Relay for others, if they can reach us.
            timeout_s: The longest wait for p2pd.

        Raises:
            ConfigError: p2pd ended or did not get ready, most likely because of `listen`.
        """
        _sweep_sockets()
        self = cls()
        token = secrets.token_urlsafe(8)
        self._daemon_listen_maddr = Multiaddr(f"/unix{_SOCKETS}/shoal-p2pd-{token}.sock")
        self._client_listen_maddr = Multiaddr(f"/unix{_SOCKETS}/shoal-node-{token}.sock")
        arguments = cls._make_process_args(
            _binary(),
            b=False,  # we bootstrap ourselves
            connManager=True,
            hostAddrs=",".join(listen),
            id=identity_file,
            idleTimeout="30s",
            listen=self._daemon_listen_maddr,
            persistentConnMaxMsgSize=DEFAULT_MAX_MSG_SIZE,
            tls=True,
            **daemon_flags(reach, announce, relays=relays),
            **cls.DHT_MODE_MAPPING["server" if keep_routes else "client"],
        )
        if sys.platform == "linux":
            front = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
            arguments = [*front, *arguments]
        try:
            self._child = await asyncio.create_subprocess_exec(
                *arguments,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **daemon_environment(reach)},
            )
            self._alive = True
            async with asyncio.timeout(timeout_s):
                await self._wait_ready(listen)
                self._reader_task = asyncio.create_task(self._drain_output(), name="p2pd-output")
                self._client = await Client.create(
                    self._daemon_listen_maddr, self._client_listen_maddr
                )
                await self._ping_daemon()
        except (OSError, EOFError, P2PDaemonError, TimeoutError) as error:
            await self.stop()
            raise ConfigError(
                "Shoal's network process could not be started; see the log, and try again."
            ) from error
        except BaseException:
            await self.stop()
            raise
        return self

    @property
    def child(self) -> asyncio.subprocess.Process:
        """The process, to be watched: hivemind's calls hang when it is gone."""
        process: asyncio.subprocess.Process = self._child
        return process

    async def visible_addresses(self) -> tuple[str, ...]:
        """Multiaddrs, without `/p2p/`, at which libp2p thinks that others may reach us.

        Raises:
            PeerUnreachable: p2pd is gone.
        """
        response, _, writer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY))
        _drop(writer)
        addresses = (from_bytes(address) for address in response.identify.addrs)
        return tuple(address for address in addresses if address is not None)

    async def connections(self) -> dict[PeerId, tuple[str, ...]]:
        """The far end's address of every connection that is open now, per peer.

        Raises:
            PeerUnreachable: p2pd is gone.
        """
        response, _, writer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.LIST_PEERS))
        _drop(writer)
        found: dict[PeerId, tuple[str, ...]] = {}
        for connection in response.peers:
            peer = PeerId(PeerID(connection.id).to_base58())
            addresses = (from_bytes(address) for address in connection.addrs)
            found[peer] = (*found.get(peer, ()), *(a for a in addresses if a is not None))
        return found

    async def connect(self, peer: PeerID, addresses: Sequence[str]) -> None:
        """Connect to `peer` at plain or circuit addresses, unless a connection exists.

        Raises:
            PeerUnreachable: No address answered, or p2pd is gone.
        """
        request = p2pd_pb2.Request(
            type=p2pd_pb2.Request.CONNECT,
            connect=p2pd_pb2.ConnectRequest(
                peer=peer.to_bytes(), addrs=list(filter(None, map(to_bytes, addresses)))
            ),
        )
        _, _, writer = await self._ask(request)
        _drop(writer)

    async def disconnect(self, peer: PeerID) -> None:
        """Close every connection to `peer`.

        Raises:
            PeerUnreachable: p2pd is gone.
        """
        request = p2pd_pb2.Request(
            type=p2pd_pb2.Request.DISCONNECT,
            disconnect=p2pd_pb2.DisconnectRequest(peer=peer.to_bytes()),
        )
        _, _, writer = await self._ask(request)
        _drop(writer)

    async def open_stream(
        self, peer: PeerID, protocol: str
    ) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a raw stream to `peer`'s handler of `protocol`, over the best connection there is.

        Returns:
            The far end's address of that connection, and the stream.

        Raises:
            PeerUnreachable: There is no way to the peer, or it has no such handler.
        """
        request = p2pd_pb2.Request(
            type=p2pd_pb2.Request.STREAM_OPEN,
            streamOpen=p2pd_pb2.StreamOpenRequest(peer=peer.to_bytes(), proto=[protocol]),
        )
        response, reader, writer = await self._ask(request)
        return from_bytes(response.streamInfo.addr) or "", reader, writer

    async def stop(self) -> None:
        """End p2pd and hivemind's own tasks, and wait for both."""
        tasks = [self._listen_task, self._reader_task]
        if self._client is not None:
            tasks += [self._client.control._read_task, self._client.control._write_task]
        self._terminate()
        if self._child is not None:
            try:
                async with asyncio.timeout(_END_LIMIT_S):
                    await self._child.wait()
            except TimeoutError:
                self._child.kill()
                await self._child.wait()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)

    async def _wait_ready(self, listen: Sequence[str]) -> None:
        lines: deque[str] = deque(maxlen=5)
        while line := await self._child.stdout.readline():
            lines.append(line.decode(errors="replace").rstrip())
            if lines[-1].startswith("Peer ID:"):
                return
        _logger.warning("p2pd ended at once: %s", " | ".join(lines))
        raise ConfigError(
            f"Shoal's network process could not start; see that {', '.join(listen)} is an address "
            "of this machine and free to listen on."
        )

    async def _drain_output(self) -> None:
        while line := await self._child.stdout.readline():
            _logger.debug("p2pd: %s", line.decode(errors="replace").rstrip())

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


def _binary() -> Path:
    return Path(hivemind_cli.__file__).with_name("p2pd")


def _sweep_sockets() -> None:
    """Remove the sockets that killed engines left behind: those that nobody answers."""
    bound = _bound_sockets()
    for path in _SOCKETS.glob("shoal-*.sock"):
        if str(path) in bound:
            continue
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _bound_sockets() -> set[str]:
    """Paths of sockets that live in our network namespace: no need to disturb their owners."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()
    except OSError:
        return set()
    return {line.rpartition(" ")[2] for line in lines}


def _drop(writer: asyncio.StreamWriter) -> None:
    with suppress(RuntimeError):  # the loop is closing
        writer.transport.abort()
