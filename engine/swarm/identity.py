"""The node's identity: an RSA key in a file, from which the peer id follows.

RSA and not Ed25519, because hivemind encodes addresses with Ed25519 ids wrongly, and because its
record signatures are RSA: one key is both the peer's name and its signature.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import multihash
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from hivemind.p2p import PeerID
from hivemind.proto import crypto_pb2
from hivemind.utils.crypto import RSAPrivateKey

from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.whole_file import write_whole

PRIVATE_MODE = 0o600


class _SigningKey(RSAPrivateKey):  # type: ignore[misc]  # hivemind has no types
    """hivemind's signer around a key that already exists."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._private_key = key


@dataclass(frozen=True, slots=True)
class Identity:
    """A peer id and the key that proves it."""

    peer_id: PeerId
    signing_key: RSAPrivateKey = field(repr=False)


def load_or_create(path: Path) -> Identity:
    """Read the identity in `path`, or make a new one there, readable by its user alone.

    Raises:
        ConfigError: The file is damaged, is not ours to read, or cannot be written.
    """
    try:
        data = path.read_bytes()
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE_MODE)
    except FileNotFoundError:
        return _create(path)
    except OSError as error:
        raise ConfigError(
            f"The identity file {path} cannot be read ({error.strerror}); correct its permissions."
        ) from error
    return parse(path, data)


def peer_id_of(public_key_ssh: bytes) -> PeerId | None:
    """The peer id that belongs to a public key in OpenSSH form; None when it is no RSA key."""
    try:
        key = serialization.load_ssh_public_key(public_key_ssh)
    except (ValueError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, rsa.RSAPublicKey):
        return None
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    message = crypto_pb2.PublicKey(key_type=crypto_pb2.RSA, data=der).SerializeToString()
    digest = multihash.encode(hashlib.sha256(message).digest(), multihash.coerce_code("sha2-256"))
    return PeerId(PeerID(digest).to_base58())


def parse(path: Path, data: bytes) -> Identity:
    """The identity in `data`, the contents of `path`.

    Raises:
        ConfigError: They are damaged.
    """
    try:
        message = crypto_pb2.PrivateKey.FromString(data)
        key = serialization.load_der_private_key(message.data, password=None)
        if message.key_type != crypto_pb2.RSA or not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("not an RSA key")
        return Identity(PeerId(PeerID.from_identity(data).to_base58()), _SigningKey(key))
    except (DecodeError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(
            f"The identity file {path} is damaged; restore it from a backup, or remove it to get "
            "a new identity."
        ) from error


def _create(path: Path) -> Identity:
    key = RSAPrivateKey()
    data = crypto_pb2.PrivateKey(key_type=crypto_pb2.RSA, data=key.to_bytes()).SerializeToString()
    try:
        write_whole(path, data, PRIVATE_MODE)
    except OSError as error:
        raise ConfigError(
            f"The identity file {path} cannot be written ({error.strerror}); make room, or correct "
            "the folder's permissions."
        ) from error
    return parse(path, data)
