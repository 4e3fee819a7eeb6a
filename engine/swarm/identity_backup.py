"""The node's identity under a passphrase: PKCS #12, which other tools open too."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from hivemind.proto import crypto_pb2

from engine.core.errors import ConfigError, RequestError
from engine.core.ids import PeerId
from engine.core.whole_file import write_whole
from engine.swarm.identity import PRIVATE_MODE, load_or_create, parse

_ROUNDS = 600_000
"""Of PBKDF2: about a third of a second for whoever guesses a passphrase once."""


def back_up(path: Path, passphrase: str) -> tuple[PeerId, str]:
    """The identity in `path`, encrypted, as text; takes a fraction of a second.

    Raises:
        ConfigError: The file cannot be read.
    """
    identity = load_or_create(path)
    key = _key(path)
    container = pkcs12.serialize_key_and_certificates(
        b"shoal",
        key,
        None,
        None,
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(passphrase.encode()),
    )
    return identity.peer_id, base64.b64encode(container).decode()


def restore(path: Path, backup: str, passphrase: str) -> PeerId:
    """Make the backup's identity that of `path`; the one before stays beside it as `.before`.

    Raises:
        RequestError: It is no backup, or the passphrase is another.
        ConfigError: The file cannot be written.
    """
    try:
        container = base64.b64decode(backup, validate=False)
        key, _, _ = pkcs12.load_key_and_certificates(container, passphrase.encode())
    except (ValueError, binascii.Error) as error:
        raise RequestError(
            "This passphrase does not open the backup, or it is none; correct one of them.",
            param="passphrase",
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise RequestError("The backup does not hold a key of Shoal's.", param="backup")
    data = crypto_pb2.PrivateKey(
        key_type=crypto_pb2.RSA,
        data=key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ),
    ).SerializeToString()
    identity = parse(path, data)
    try:
        if path.exists():
            write_whole(path.with_name(f"{path.name}.before"), path.read_bytes(), PRIVATE_MODE)
        write_whole(path, data, PRIVATE_MODE)
    except OSError as error:
        raise ConfigError(
            f"The identity file {path} cannot be written ({error.strerror}); make room, or correct "
            "the folder's permissions."
        ) from error
    return identity.peer_id


def _key(path: Path) -> rsa.RSAPrivateKey:
    message = crypto_pb2.PrivateKey.FromString(path.read_bytes())
    key = serialization.load_der_private_key(message.data, password=None)
    assert isinstance(key, rsa.RSAPrivateKey), "checked when it was loaded"
    return key
