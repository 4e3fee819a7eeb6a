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
from hashlib import file_digest
from pathlib import Path

from PySide6.QtCore import QObject, Signal

_CHUNK_BYTES = 1 << 20


class NotAsSigned(Exception):
    """A setup is not the file that its publishers have signed."""


class SetupCopy(QObject):
    """Copies a setup beside the main thread, which 50 MB out of Linux, or a Linux that is asleep, would stop.

    Signals:
        ready: The path of a whole copy, to be started at once.
        failed: Why there is none.
        refused: It is not the setup that was signed.
    """

    ready = Signal(str)
    failed = Signal(str)
    refused = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._work: threading.Thread | None = None

    def wish(self, setup: str, sha256: str) -> None:
        """Have a copy of `setup`; nothing new while one is made.

        Args:
            setup: Its path.
            sha256: What the signed list says of it, in hexadecimal.
        """
        if self._work is not None and self._work.is_alive():
            return
        # A daemon: a file system that hangs must not keep the app from ending.
        self._work = threading.Thread(target=self._copy, args=(Path(setup), sha256), daemon=True)
        self._work.start()

    def _copy(self, setup: Path, sha256: str) -> None:
        with contextlib.suppress(RuntimeError):  # the app has ended meanwhile
            try:
                self.ready.emit(str(copied(setup, self._folder, sha256)))
            except NotAsSigned:
                self.refused.emit()
            except OSError as error:
                self.failed.emit(error.strerror or str(error))


def copied(setup: Path, folder: Path, sha256: str) -> Path:
    """Copy a setup and hold the copy against what was signed; other setups in `folder` go.

    The engine has checked what it fetched, but its disk is another one, and days may lie between.

    Args:
        setup: What the engine has fetched.
        folder: On a disk of this computer; is made.
        sha256: What the signed list says of it, in hexadecimal.

    Returns:
        The copy, of the same name.

    Raises:
        NotAsSigned: The copy is not what was signed; there is none any more.
        OSError: One cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / setup.name
    for old in folder.glob("*.exe*"):
        if old != target:
            with contextlib.suppress(OSError):  # it runs; the next copy removes it
                old.unlink()
    part = target.with_name(target.name + ".part")
    if target.exists() and _sha256(target) == sha256:
        return target  # it may be running, and cannot be replaced then
    if shutil.disk_usage(folder).free < setup.stat().st_size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with setup.open("rb") as source, part.open("wb") as copy:
        while chunk := source.read(_CHUNK_BYTES):
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if _sha256(part) != sha256:
        part.unlink()
        raise NotAsSigned
    part.replace(target)
    return target


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()
