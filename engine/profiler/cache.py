"""What was measured last, in the engine's home, and whether it still holds."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pydantic import ValidationError

from engine.core.errors import ResourceError
from engine.core.whole_file import write_whole
from engine.localapi.measurements import MeasuredProfile
from engine.localapi.running import Home
from engine.profiler.hardware import Hardware, hardware

_logger = logging.getLogger(__name__)

MAX_AGE_S = 30 * 86400.0
_MAX_FILE_BYTES = 1 << 20
_BUSY = 0.25
"""A machine that was this busy was not measured, but what others left of it."""
_CHANGED = 0.25
"""So much more or less load is another load."""


def cached(home: Home, look: Callable[[], Hardware] = hardware) -> MeasuredProfile | None:
    """What was measured here last, if hardware, driver and software are still the same.

    Blocks for as long as a driver query takes. A damaged file counts as none.
    """
    profile = read(home)
    if profile is None or profile.fingerprint != look().fingerprint:
        return None
    return profile


def read(home: Home) -> MeasuredProfile | None:
    """What was measured last, on whatever hardware; None when nothing, or the file is damaged."""
    path = home.profile_file
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ValueError("too large")
        return MeasuredProfile.model_validate_json(content)
    except FileNotFoundError:
        return None
    except ValidationError as error:
        _logger.warning("%s is not used: %d wrong fields", path, error.error_count())
    except (OSError, ValueError) as error:
        _logger.warning("%s is not used: %s", path, error)
    return None


def save(home: Home, profile: MeasuredProfile) -> None:
    """Keep a profile; a reader sees the old one or the new one, never half of either.

    Raises:
        ResourceError: It cannot be written.
    """
    path = home.profile_file
    try:
        write_whole(path, profile.model_dump_json().encode())
    except OSError as error:
        raise ResourceError(
            f"What was measured could not be kept in {path} ({error.strerror}); free some space "
            "there, or make it writable."
        ) from error


def reason_to_measure(
    profile: MeasuredProfile | None,
    now: Hardware,
    *,
    unix_s: float,
    cpu_busy_share: float,
) -> str:
    """Why to measure again, as a phrase; empty when the profile holds. Pure.

    Args:
        profile: What is known.
        now: The machine as it is.
        unix_s: The time.
        cpu_busy_share: What others make of the processors now.
    """
    if profile is None:
        return "nothing has been measured yet"
    if profile.fingerprint != now.fingerprint:
        return "hardware, driver or software has changed"
    if not 0 <= unix_s - profile.measured_unix_s < MAX_AGE_S:
        return "it was measured too long ago"
    was = profile.load.cpu_share.value
    if was > _BUSY and cpu_busy_share < was - _CHANGED:
        return "the machine was busy then and is not now"
    if cpu_busy_share > _BUSY and cpu_busy_share > was + _CHANGED:
        return "the machine is much busier now"
    return ""
