r"""The signed list of what the newest version is and where its packages are. Pure.

```
{"signed": "{\"format\": 1, \"version\": …}", "key": "BASE64", "signature": "BASE64"}
```
`signed` is text, so that what was signed and what is read are the same bytes; the signature is
Ed25519. A list says when it was signed and until when it holds: one that is older than another that
was seen, or that nobody has renewed, is an old one that somebody shows again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import ConfigError, UpdateRefused

MAX_LIST_BYTES: Final = 256 << 10
_CONTEXT: Final = b"shoal updates 1\n"
"""Before what is signed, so that the key's signatures mean nothing elsewhere."""

_VERSION: Final = r"^(0|[1-9][0-9]{0,5})(\.(0|[1-9][0-9]{0,5})){2}$"
_UnixTime = Annotated[float, Field(gt=0, lt=1e11)]
_Protocol = Annotated[int, Field(ge=1, le=255)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PackageFile(_Part):
    """One file that installs the version somewhere."""

    kind: str = Field(max_length=32)
    """`deb`, `run` or `setup`; later versions may have others."""
    machine: str = Field(max_length=32)
    """As `platform.machine()` says, in small letters: `x86_64`."""
    url: str = Field(min_length=1, max_length=1024)
    """Where it is; may be relative to the list."""
    size_bytes: int = Field(gt=0, le=8 << 30)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    installed_bytes: int = Field(default=0, ge=0, le=64 << 30)
    """What it takes on the disk once it is installed; 0: not known."""


class Manifest(_Part):
    """A version and its files."""

    format: Literal[1] = 1
    version: str = Field(pattern=_VERSION)
    signed_unix_s: _UnixTime
    expires_unix_s: _UnixTime
    protocol: _Protocol
    """The newest protocol that its nodes speak."""
    oldest_protocol: _Protocol
    """The oldest: who does not speak that any more is left behind."""
    summary: str = Field(default="", max_length=500)
    """What a person gains, in a sentence or two."""
    page: str = Field(default="", max_length=1024, pattern="^(https://.*)?$")
    """Where to read more."""
    files: tuple[PackageFile, ...] = Field(max_length=64)

    def file_for(self, kind: str, machine: str) -> PackageFile | None:
        """The file for this installation; None: there is none."""
        return next((f for f in self.files if (f.kind, f.machine) == (kind, machine)), None)


class _Signed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    signed: str
    key: str = Field(max_length=64)
    signature: str = Field(max_length=128)


def numbers(version: str) -> tuple[int, ...]:
    """A version such as `0.10.2` in an order that can be compared."""
    return tuple(map(int, version.split(".")))


def sign(manifest: Manifest, key: Ed25519PrivateKey) -> bytes:
    """Write the list."""
    text = manifest.model_dump_json(indent=1)
    signature = key.sign(_CONTEXT + text.encode())
    whole = _Signed(
        signed=text,
        key=public_text(key.public_key()),
        signature=base64.b64encode(signature).decode(),
    )
    return whole.model_dump_json(indent=1).encode() + b"\n"


def public_text(key: Ed25519PublicKey) -> str:
    """A public key as settings and lists write it."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def public_key(text: str) -> Ed25519PublicKey:
    """Read one.

    Raises:
        ConfigError: It is none.
    """
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ConfigError(
            f"{text[:60]!r} is no public key for updates; correct updates.key in the settings."
        ) from error


def opened(data: bytes, keys: Collection[str], place: str) -> Manifest:
    """Check who signed a list, then read it.

    Args:
        data: As it came.
        keys: Public keys that are believed.
        place: Where it came from, for the person.

    Raises:
        UpdateRefused: Nobody whom we believe has signed it as it is, or it makes no sense.
        ConfigError: One of the keys is none.
    """
    believed = {public_text(public_key(key)): public_key(key) for key in keys}
    try:
        whole = _Signed.model_validate_json(data)
    except ValidationError as error:
        raise UpdateRefused(
            f"What lies at {place} is no list of Shoal's versions; check updates.url in the settings."
        ) from error
    key = believed.get(whole.key)
    try:
        if key is None:
            raise InvalidSignature
        key.verify(
            base64.b64decode(whole.signature, validate=True), _CONTEXT + whole.signed.encode()
        )
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise UpdateRefused(
            f"The list of versions at {place} does not carry the signature of those who publish "
            "Shoal, so nothing of it was used; if it stays so, tell them."
        ) from error
    try:
        return Manifest.model_validate_json(whole.signed)
    except ValidationError as error:
        raise UpdateRefused(
            f"The list of versions at {place} is written for other versions of Shoal; get the "
            "newest one by hand."
        ) from error


def check(
    manifest: Manifest, *, running: str, seen_unix_s: float, now_unix_s: float, place: str
) -> None:
    """Hold a list against what is known already.

    Args:
        manifest: Whose signature was right.
        running: The version that runs.
        seen_unix_s: When the newest list that was ever seen had been signed; 0: none was.
        now_unix_s: The time.
        place: Where it came from, for the person.

    Raises:
        UpdateRefused: It would be a step back, or somebody shows an old one again.
    """
    if numbers(manifest.version) < numbers(running):
        raise UpdateRefused(
            f"The list at {place} offers Shoal {manifest.version}, which is older than {running} "
            "that runs here, so it was refused."
        )
    if manifest.signed_unix_s < seen_unix_s:
        raise UpdateRefused(
            f"The list of versions at {place} was signed on {_day(manifest.signed_unix_s)}, but a "
            f"newer one of {_day(seen_unix_s)} has been seen, so it was refused."
        )
    if manifest.expires_unix_s < now_unix_s:
        raise UpdateRefused(
            f"The list of versions at {place} held until {_day(manifest.expires_unix_s)} and nobody "
            "has renewed it: newer ones may be kept from you, or this computer's clock is wrong."
        )


def _day(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, tz=UTC):%Y-%m-%d}"
