"""A proxy on loopback for whom every name leads to one server, and certificates for such names."""

from __future__ import annotations

import ipaddress
import select
import socket
import socketserver
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.loopback import Loopback


class FakeProxy(Loopback):
    """Passes every connection on to `port` of this machine; use as a context manager.

    Attributes:
        url: For proxy settings.
        hosts: The names that were asked for.
    """

    def __init__(self, port: int) -> None:
        self.hosts: list[str] = []
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy._pass_on(self.request, port)

        super().__init__(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))
        self.url = f"http://127.0.0.1:{self.port}"

    def _pass_on(self, client: socket.socket, port: int) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return
            head += more
        method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        is_tunnel = method == "CONNECT"
        host = target.rpartition(":")[0] if is_tunnel else urlsplit(target).hostname
        self.hosts.append(host or "")
        with socket.create_connection(("127.0.0.1", port)) as server:
            if is_tunnel:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                server.sendall(head)
            other = {client: server, server: client}
            while True:
                for ready in select.select(list(other), [], [], 60)[0]:
                    try:
                        data = ready.recv(65536)
                        other[ready].sendall(data)
                    except OSError:
                        return
                    if not data:
                        return


def certificate_for(*names: str, folder: Path) -> tuple[Path, ssl.SSLContext]:
    """(A PEM file of an authority that nobody's system trusts, a server's context that it vouches for)."""
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    alternatives = [
        x509.IPAddress(ipaddress.ip_address(one)) if one[0].isdecimal() else x509.DNSName(one)
        for one in names
    ]
    root = _certificate("Shoal's tests", authority, authority, is_authority=True)
    own = _certificate(
        names[0], key, authority, x509.SubjectAlternativeName(alternatives), is_authority=False
    )
    trusted, chain, key_file = (folder / name for name in ("ca.pem", "own.pem", "key.pem"))
    trusted.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(own.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key_file)
    return trusted, context


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    authority: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
    is_authority: bool,
) -> x509.Certificate:
    usage = dict.fromkeys(
        (
            "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
            "crl_sign", "encipher_only", "decipher_only",
        ),
        False,
    )  # fmt: skip
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_called(name))
        .issuer_name(_called("Shoal's tests"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()),
            critical=False,
        )
        .add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=is_authority, **usage),
            critical=True,
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(authority, hashes.SHA256())


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
