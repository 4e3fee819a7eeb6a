"""Invites: all that a newcomer needs to join a swarm, as one line of text.

`shoal://v1/` and, in URL-safe base64: two bytes of length, eight of checksum, and a JSON body. The
length tells an invite that was cut short from one that was altered. A `.shoal` file is this line.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import ConfigError, InviteInvalid
from engine.core.whole_file import write_whole
from engine.swarm.addresses import is_bootstrap
from engine.swarm.handshake import Membership

_SCHEME = "shoal://"
_PREFIX = "shoal://v1/"
_MAX_TEXT = 8192
_LENGTH_BYTES = 2
_CHECKSUM_BYTES = 8
_KEY_BYTES = 32


def _checked_bootstrap(address: str) -> str:
    if not is_bootstrap(address):
        raise ValueError("not an address of a peer")
    return address


def _checked_name(name: str) -> str:
    if not name.strip() or not name.isprintable():
        raise ValueError("not a name")
    return name


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(max_length=64), AfterValidator(_checked_name)]
    swarm_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    bootstrap: tuple[Annotated[str, AfterValidator(_checked_bootstrap)], ...] = Field(
        min_length=1, max_length=16
    )
    source: str = Field(min_length=1, max_length=512)
    model_id: str = Field(min_length=1, max_length=256)
    key: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Invite:
    """The way into one swarm. Whoever holds a private swarm's invite can join it."""

    name: str
    swarm_id: str
    bootstrap: tuple[str, ...]
    """Multiaddrs with `/p2p/`."""
    source: str
    """Where the model comes from: `starter`, a Hub id, or a directory."""
    model_id: str
    key: bytes | None = field(default=None, repr=False)
    """Admits members of a private swarm; None in a public one."""

    @property
    def membership(self) -> Membership:
        """What the links' handshake needs."""
        return Membership(self.swarm_id, self.key)

    def text(self) -> str:
        """The line to hand on.

        Raises:
            ConfigError: A field is not fit for an invite.
        """
        try:
            body = _Body(
                name=self.name,
                swarm_id=self.swarm_id,
                bootstrap=self.bootstrap,
                source=self.source,
                model_id=self.model_id,
                key=None if self.key is None else self.key.hex(),
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                f"An invite cannot be made: its {first['loc'][0]} is wrong ({first['msg']})."
            ) from error
        data = body.model_dump_json(exclude_none=True).encode()
        packed = len(data).to_bytes(_LENGTH_BYTES, "big") + _checksum(data) + data
        return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def found(
    name: str, bootstrap: Iterable[str], source: str, model_id: str, *, private: bool
) -> Invite:
    """The invite of a new swarm.

    Raises:
        ConfigError: A field is not fit for an invite.
    """
    key = secrets.token_bytes(_KEY_BYTES) if private else None
    invite = Invite(name, secrets.token_hex(16), tuple(bootstrap), source, model_id, key)
    invite.text()
    return invite


def parse(text: str) -> Invite:
    """Read an invite; blanks and line breaks, as mail adds them, do no harm.

    Raises:
        InviteInvalid: Not an invite, cut short, altered, or from another version.
    """
    line = re.sub(r"\s", "", text)
    if not line.startswith(_SCHEME):
        raise InviteInvalid(
            f"That is not an invite: an invite begins with {_SCHEME}; ask for it again."
        )
    if not line.startswith(_PREFIX):
        if _PREFIX.startswith(line):
            raise _cut_short()
        raise InviteInvalid("That invite was made by another version of Shoal; update Shoal.")
    if len(line) > _MAX_TEXT:
        raise _altered()
    data = _unpack(line.removeprefix(_PREFIX))
    try:
        body = _Body.model_validate_json(data)
    except ValidationError as error:
        raise InviteInvalid(
            "That invite is whole, but this version of Shoal cannot use it; update Shoal."
        ) from error
    key = None if body.key is None else bytes.fromhex(body.key)
    return Invite(body.name, body.swarm_id, body.bootstrap, body.source, body.model_id, key)


def save(path: Path, invite: Invite) -> None:
    """Write a `.shoal` file, readable by its owner alone when it holds a key.

    Raises:
        ConfigError: It cannot be written.
    """
    mode = 0o644 if invite.key is None else 0o600
    try:
        write_whole(path, f"{invite.text()}\n".encode("ascii"), mode)
    except OSError as error:
        raise ConfigError(
            f"The invite cannot be saved as {path} ({error.strerror}); make room, or correct the "
            "folder's permissions."
        ) from error


def load(path: Path) -> Invite | None:
    """Read a `.shoal` file; None when there is none.

    Raises:
        InviteInvalid: Its contents are no invite that we can use.
        ConfigError: It cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_TEXT + 1)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InviteInvalid(f"{path} is not an invite file; ask for it again.") from error
    except OSError as error:
        raise ConfigError(
            f"The invite {path} cannot be read ({error.strerror}); correct its permissions."
        ) from error
    return parse(text)


def _unpack(code: str) -> bytes:
    if re.fullmatch(r"[A-Za-z0-9_-]*", code) is None:
        raise _altered()
    # A cut may leave half a group: what is whole of it still shows the length.
    code = code[:-1] if len(code) % 4 == 1 else code
    try:
        packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
    except (binascii.Error, ValueError) as error:
        raise _altered() from error
    front = _LENGTH_BYTES + _CHECKSUM_BYTES
    data = packed[front:]
    length = int.from_bytes(packed[:_LENGTH_BYTES], "big")
    if len(packed) < front or len(data) < length:
        raise _cut_short()
    if len(data) > length or _checksum(data) != packed[_LENGTH_BYTES:front]:
        raise _altered()
    return data


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECKSUM_BYTES]


def _cut_short() -> InviteInvalid:
    return InviteInvalid("That invite is cut short; copy the whole of it, or ask for it again.")


def _altered() -> InviteInvalid:
    return InviteInvalid("That invite was altered on its way; copy it again, or ask for it again.")
