"""scipy, which is loaded only where something is compared, and kept from talking."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from engine.core.errors import ConfigError


def scipy_modules() -> tuple[ModuleType, ModuleType]:
    """`scipy.optimize` and `scipy.sparse`.

    Raises:
        ConfigError: scipy is not installed.
    """
    try:
        from scipy import optimize, sparse
    except ImportError as error:
        raise ConfigError(
            "This comparison needs scipy, which is missing here; run pip install scipy."
        ) from error
    return optimize, sparse


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Let what a library writes to standard output go to standard error.

    HiGHS prints some of its doubts, from C, whatever its options say; on standard output there may
    be a JSON object and nothing else.
    """
    c_library = ctypes.CDLL(None)
    sys.stdout.flush()
    own = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
        c_library.fflush(None)
    finally:
        os.dup2(own, 1)
        os.close(own)
