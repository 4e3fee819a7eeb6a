"""Files on disk that are either whole or absent, and what they should contain."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from engine.core.errors import DiskFull, ModelCorrupt, ModelError
from engine.core.whole_file import write_whole
from engine.models.turns import Take, at_once

MANIFEST = "shoal-manifest.json"
"""In every folder of a model that Shoal has made."""
MARGIN_BYTES = 64 << 20
"""Left free for everybody else."""
_CHUNK_BYTES = 4 << 20
_MAX_HEADER_BYTES = 100 << 20
"""The limit that the safetensors library has too."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What fetching a model may take."""

    disk_free_bytes: int = MARGIN_BYTES
    """So much of the disk stays free."""
    models_bytes: int = 0
    """All models together have no more; 0: no limit."""
    proxy: str = ""
    """Empty: what the environment says."""
    ca_file: str = ""
    """Certificates that are trusted beside the system's; empty: none."""
    take: Take = at_once
    """Waits for a turn on the line, before more is read."""


NO_LIMITS = FetchLimits()


def require_free(
    directory: Path, needed_bytes: int, limits: FetchLimits = NO_LIMITS, kept_bytes: int = 0
) -> None:
    """Make the directory, and see that `needed_bytes` fit.

    Args:
        directory: Where they shall be written.
        needed_bytes: More than is there.
        limits: The person's.
        kept_bytes: What models have already.

    Raises:
        DiskFull: They do not.
    """
    if limits.models_bytes and needed_bytes and kept_bytes + needed_bytes > limits.models_bytes:
        raise DiskFull(
            f"The model needs {_megabytes(needed_bytes)} more, but models have "
            f"{_megabytes(kept_bytes)} of the {_megabytes(limits.models_bytes)} that "
            "limits.models_bytes allows; delete one, or allow more."
        )
    directory.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(directory).free
    if needed_bytes and free_bytes < needed_bytes + limits.disk_free_bytes:
        raise DiskFull(
            f"The model needs {_megabytes(needed_bytes)} in {directory}, where only "
            f"{_megabytes(max(0, free_bytes - limits.disk_free_bytes))} can be used; free some "
            "space, or leave less of it free (limits.disk_free_bytes)."
        )


@contextlib.contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Translate what can go wrong while files are written into `directory`.

    Raises:
        DiskFull: The disk, or the person's share of it, is full.
        ModelError: The directory is not ours to write to.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"The disk of {directory} is full, so the model could not be written; "
                "free some space."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise ModelError(
                f"Shoal may not write to {directory}; change its permissions or choose another "
                "folder for models."
            ) from error
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the kernel releases it if we die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path):
        yield


def sha256_of_file(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """Hash a file; `on_bytes` hears how many bytes each chunk had."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            if on_bytes is not None:
                on_bytes(len(chunk))
    return digest.hexdigest()


def check_safetensors(path: Path) -> None:
    """See that the file is as long as its header says; far cheaper than hashing it.

    Raises:
        ModelCorrupt: It is missing, cut short, or no safetensors file.
    """
    try:
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            (header_bytes,) = struct.unpack("<Q", file.read(8))
            if header_bytes > min(size_bytes, _MAX_HEADER_BYTES):
                raise ValueError("its header is longer than the file")
            header = json.loads(file.read(header_bytes))
        ends = [
            entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
        ]
        expected_bytes = 8 + header_bytes + max(ends, default=0)
        if size_bytes != expected_bytes:
            raise ValueError(f"it has {size_bytes} bytes instead of {expected_bytes}")
    except FileNotFoundError as error:
        raise ModelCorrupt(f"The model's file {path} is missing; fetch the model again.") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise ModelCorrupt(
            f"The model's file {path} is damaged ({error}); remove it and fetch the model again."
        ) from error


class HashCache:
    """SHA-256 of files that were hashed before, as long as size and time of change are the same."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def sha256(self, path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
        """The file's hash, computed only if it may have changed."""
        return self.known(path) or self.fresh(path, on_bytes)

    def known(self, path: Path) -> str | None:
        """The file's hash if nothing needs to be read for it."""
        entry = self._load().get(str(path.resolve()))
        return str(entry[2]) if entry is not None and entry[:2] == stamp(path) else None

    def fresh(self, path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
        """The file's hash, computed now."""
        sha256 = sha256_of_file(path, on_bytes)
        self.remember(path, sha256)
        return sha256

    def remember(self, path: Path, sha256: str) -> None:
        """Note the hash of the file as it is now; a lost note only costs hashing again."""
        entries = self._load()
        entries[str(path.resolve())] = [*stamp(path), sha256]
        write_whole(self._file, json.dumps(entries).encode())

    def _load(self) -> dict[str, list[int | str]]:
        try:
            entries = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(entries, dict):
            return {}
        return {k: v for k, v in entries.items() if isinstance(v, list) and len(v) == 3}


def stamp(path: Path) -> list[int]:
    """Size in bytes and time of change in ns: what tells that a file is the one we hashed."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _megabytes(count_bytes: int) -> str:
    return f"{count_bytes / 1e6:,.0f} MB"
