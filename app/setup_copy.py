r"""Starting the setup of a new version on Windows: from a copy, because it ends what its original lies on.

The engine fetches the setup into its Linux, whose files Windows sees as `\\wsl.localhost\…`; they go away
when the setup asks to quit Shoal and Linux ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from hashlib import file_digest, sha256
from pathlib import Path

from PySide6.QtCore import QObject, Signal

_CHUNK_BYTES = 1 << 20


class SetupCopy(QObject):
    """Copies a setup beside the main thread, which 50 MB out of Linux, or a Linux that is asleep, would stop.

    Signals:
        ready: The path of a whole copy.
        failed: Why there is none.
    """

    ready = Signal(str)
    failed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._work: threading.Thread | None = None

    def wish(self, setup: str) -> None:
        """Have a copy of `setup`; nothing new while one is made."""
        if self._work is not None and self._work.is_alive():
            return
        # A daemon: a file system that hangs must not keep the app from ending.
        self._work = threading.Thread(target=self._copy, args=(Path(setup),), daemon=True)
        self._work.start()

    def _copy(self, setup: Path) -> None:
        with contextlib.suppress(RuntimeError):  # the app has ended meanwhile
            try:
                self.ready.emit(str(copied(setup, self._folder)))
            except OSError as error:
                self.failed.emit(error.strerror or str(error))


def copied(setup: Path, folder: Path) -> Path:
    """Copy a setup and read the copy again; other setups in `folder` go.

    Args:
        setup: Whose signature the engine has found right.
        folder: On a disk of this computer; is made.

    Returns:
        The copy, of the same name.

    Raises:
        OSError: One cannot be read or written, or the copy is not the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / setup.name
    for old in folder.glob("*.exe*"):
        if old != target:
            with contextlib.suppress(OSError):  # it runs; the next copy removes it
                old.unlink()
    part = target.with_name(target.name + ".part")
    size_bytes = setup.stat().st_size
    if shutil.disk_usage(folder).free < size_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    read = sha256()
    with setup.open("rb") as source, part.open("wb") as copy:
        while chunk := source.read(_CHUNK_BYTES):
            read.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if part.stat().st_size != size_bytes or _digest(part) != read.digest():
        part.unlink()
        raise OSError(errno.EIO, "the copy is not the same as the original")
    if target.exists() and _digest(target) == read.digest():
        part.unlink()  # that one may be running, and cannot be replaced then
    else:
        part.replace(target)
    return target


def _digest(file: Path) -> bytes:
    with file.open("rb") as content:
        return file_digest(content, "sha256").digest()
