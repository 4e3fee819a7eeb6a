"""Children that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def death_signal() -> Callable[[], None] | None:
    """What a forked child runs (`preexec_fn`) so that the kernel kills it when its parent ends.

    Everything that could take a lock is done here, before the fork. None where the system cannot.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def ask_for_it() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return ask_for_it


def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent ends; a child's `main` begins with it.

    Args:
        parent_pid: The parent as it knows itself; if it is gone already, this process exits now.
    """
    ask_for_it = death_signal()
    if ask_for_it is None:
        return
    ask_for_it()
    if os.getppid() != parent_pid:
        sys.exit(0)
