"""Finding out whether others can connect to us: a peer is asked to try.

The peer dials afresh, from another port than libp2p's, because a router lets through what we have
opened ourselves. It goes only as far as the TLS handshake, in which our p2pd proves its id. It
dials nothing but the address from which it sees the one who asks, so it cannot be sent elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import logging
import ssl
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import multihash
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hivemind.p2p import PeerID
from hivemind.proto import crypto_pb2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.addresses import ip_of, relay_of
from engine.swarm.circuits import reserve
from engine.swarm.daemon import Daemon
from engine.swarm.daemon_flags import CIRCUIT_LIMIT_BYTES, CIRCUIT_LIMIT_S

_logger = logging.getLogger(__name__)

PROTOCOL = "shoal/check"
ANSWER_LIMIT_S = 8.0
_DIAL_LIMIT_S = 2.0
_MAX_LINE_BYTES = 1024
_MAX_PORTS = 4
_MAX_AT_ONCE = 8
_MAX_ASKING = 64
"""Peers whose question we wait for, or work on."""
_REST_S = 1.0
"""A peer is not dialled more often than this."""
_MAX_REMEMBERED = 1024
_GREETING = b"\x13/multistream/1.0.0\n"
_TLS = b"\x0b/tls/1.0.0\n"
_IDENTITY_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.53594.1.1")


_Port = Annotated[int, Field(ge=1, le=65535)]


def _ip(text: str) -> str:
    """Refuse what is no address: we announce it as ours."""
    if text:
        ipaddress.ip_address(text)
    return text


class Question(BaseModel):
    """At which TCP ports we listen."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ports: tuple[_Port, ...] = Field(max_length=_MAX_PORTS)


class Answer(BaseModel):
    """What the peer found."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ip: Annotated[str, AfterValidator(_ip)] = Field(default="", max_length=64)
    """From where it sees us; empty when it has not tried."""
    reached_ports: tuple[_Port, ...] = Field(default=(), max_length=_MAX_PORTS)
    relays_well: bool = True
    """Whether the circuits that we relay are as long as they should be."""


async def ask(daemon: Daemon, peer: PeerId, ports: Iterable[int]) -> Answer | None:
    """Let `peer` try to reach us at these ports; None when it cannot tell."""
    question = Question(ports=tuple(ports)[:_MAX_PORTS])
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            _, reader, writer = await daemon.open_stream(PeerID.from_base58(peer), PROTOCOL)
            try:
                writer.write(question.model_dump_json().encode() + b"\n")
                answer = Answer.model_validate_json(await _read_line(reader))
            finally:
                writer.close()
    except (OSError, EOFError, ValueError, TimeoutError, PeerUnreachable) as error:
        _logger.debug("…%s cannot tell whether we are reachable: %s", short(peer), error)
        return None
    return answer if answer.ip else None


class DialBack:
    """Tries to reach those who ask."""

    def __init__(self, daemon: Callable[[], Daemon], clock: Clock) -> None:
        self._daemon = daemon
        self._clock = clock
        self._tried_at_s: dict[PeerId, float] = {}
        self._asking: set[PeerId] = set()
        self._running = 0

    async def handle(
        self, info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one question: a stream handler of p2pd's."""
        peer = PeerId(info.peer_id.to_base58())
        if peer in self._asking or len(self._asking) >= _MAX_ASKING:
            writer.close()
            return
        self._asking.add(peer)
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                question = Question.model_validate_json(await _read_line(reader))
                answer = await self._try(peer, str(info.addr), question)
                writer.write(answer.model_dump_json().encode() + b"\n")
                await writer.drain()
        except (OSError, EOFError, ValidationError, ValueError, TimeoutError) as error:
            _logger.debug("a question of …%s came to nothing: %s", short(peer), error)
        finally:
            self._asking.discard(peer)
            writer.close()

    async def _try(self, peer: PeerId, address: str, question: Question) -> Answer:
        ip, now_s = ip_of(address), self._clock.monotonic_s()
        if relay_of(address) is not None or ip is None or self._running >= _MAX_AT_ONCE:
            return Answer()
        if now_s < self._tried_at_s.get(peer, -_REST_S) + _REST_S:
            return Answer()
        if len(self._tried_at_s) >= _MAX_REMEMBERED:
            self._tried_at_s.clear()
        self._tried_at_s[peer] = now_s
        self._running += 1
        try:
            results = await asyncio.gather(*(_answers(ip, port, peer) for port in question.ports))
            reached = tuple(
                port for port, is_reached in zip(question.ports, results, strict=True) if is_reached
            )
            return Answer(
                ip=ip, reached_ports=reached, relays_well=not reached or await self._relays(peer)
            )
        finally:
            self._running -= 1

    async def _relays(self, peer: PeerId) -> bool:
        try:
            slot = await reserve(self._daemon(), peer, _DIAL_LIMIT_S)
        except PeerUnreachable:
            return False
        return slot.holds(CIRCUIT_LIMIT_S, CIRCUIT_LIMIT_BYTES)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError("too long") from error
    if len(line) > _MAX_LINE_BYTES:
        raise ValueError("too long")
    return line


async def _answers(ip: str, port: int, peer: PeerId) -> bool:
    """Whether the p2pd of `peer` listens there, by a fresh connection."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_DIAL_LIMIT_S):
            reader, writer = await asyncio.open_connection(ip, port)
            writer.write(_GREETING + _TLS)
            if await reader.readexactly(len(_GREETING) + len(_TLS)) != _GREETING + _TLS:
                return False
            await writer.start_tls(_tls_context())
            tls = writer.get_extra_info("ssl_object")
            return _owner(tls.getpeercert(binary_form=True)) == peer
    except (OSError, EOFError, OverflowError, ValueError, TimeoutError):
        return False
    finally:
        if writer is not None:
            with contextlib.suppress(RuntimeError):
                writer.transport.abort()


def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates in libp2p are self-signed; `_owner` checks whose one is.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["libp2p"])
    return context


def _owner(certificate: bytes | None) -> PeerId | None:
    """The peer that a libp2p TLS certificate belongs to, by its extension; None when none."""
    try:
        parsed = x509.load_der_x509_certificate(certificate or b"")
        extension = parsed.extensions.get_extension_for_oid(_IDENTITY_EXTENSION).value
        assert isinstance(extension, x509.UnrecognizedExtension)
        key_data, signature = _octet_strings(extension.value)
        message = crypto_pb2.PublicKey.FromString(key_data)
        key = serialization.load_der_public_key(message.data)
        if not isinstance(key, rsa.RSAPublicKey):
            return None
        spki = parsed.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        signed = b"libp2p-tls-handshake:" + spki
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except (ValueError, DecodeError, InvalidSignature, x509.ExtensionNotFound):
        return None
    digest = multihash.encode(hashlib.sha256(key_data).digest(), multihash.coerce_code("sha2-256"))
    return PeerId(PeerID(digest).to_base58())


def _octet_strings(der: bytes) -> list[bytes]:
    """The octet strings of a DER sequence of nothing else."""

    def body(at: int, tag: int) -> tuple[int, int]:
        if len(der) < at + 2 or der[at] != tag:
            raise ValueError("another kind of value")
        size, start = der[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, start = int.from_bytes(der[start : start + count], "big"), start + count
        if start + size > len(der):
            raise ValueError("a value that is cut short")
        return start, start + size

    at, end = body(0, 0x30)
    strings = []
    while at < end:
        start, at = body(at, 0x04)
        strings.append(der[start:at])
    return strings
