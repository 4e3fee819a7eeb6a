"""One engine per home: a lock that the system releases when its holder dies. Linux and macOS."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from engine.core.errors import ConfigError, EngineRunsAlready
from engine.localapi.running import Home


@contextmanager
def engine_lock(home: Home) -> Iterator[None]:
    """Hold the home's lock.

    Raises:
        EngineRunsAlready: Another engine holds it; the text names its process.
        ConfigError: The home cannot be written.
    """
    path = home.state_dir / "engine.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"Shoal cannot write to {path.parent} ({error.strerror}); correct its permissions or "
            "set SHOAL_HOME to another folder."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise EngineRunsAlready(
                f"An engine already runs here (process {holder or 'unknown'}, files in "
                f"{home.state_dir}); use it, stop it, or set SHOAL_HOME to another folder."
            ) from error
        os.ftruncate(descriptor, 0)
        with suppress(OSError):  # a full disk; the lock holds, and only its text is less helpful
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
