"""scipy, which is loaded only where something is compared."""

from __future__ import annotations

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
