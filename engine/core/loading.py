"""Loading large libraries in less time."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Load modules and models without looking for garbage among them.

    Hardly anything that torch, hivemind and transformers make while they load is garbage, but
    looking through it again and again takes a quarter of the time. It stays until the process ends,
    so later searches leave it out: this is for once or twice in a process.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
