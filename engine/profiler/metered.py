"""Whether the connection costs by the byte, as NetworkManager sees it, or as the person says."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from typing import Final, Literal

from engine.core.clock import Clock

_logger = logging.getLogger(__name__)

_NAME: Final = "org.freedesktop.NetworkManager"
_PATH: Final = "/org/freedesktop/NetworkManager"
_COMMANDS: Final = (
    ("busctl", "--system", "get-property", _NAME, _PATH, _NAME, "Metered"),
    (
        *("gdbus", "call", "--system", "--dest", _NAME, "--object-path", _PATH),
        *("--method", "org.freedesktop.DBus.Properties.Get", _NAME, "Metered"),
    ),
)
_ANSWERS: Final = {1: True, 2: False, 3: True, 4: False}
"""NMMetered: yes, no, and the same two guessed; 0 is unknown."""
_LIMIT_S: Final = 2.0
_FRESH_S: Final = 60.0


class Metered:
    """Asks when somebody wants to know, and remembers for a minute."""

    def __init__(self, setting: Literal["auto", "yes", "no"], clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        self._known: tuple[float, bool | None] | None = None

    async def ask(self) -> bool | None:
        """Whether it is; None when nobody says."""
        if self._setting != "auto":
            return self._setting == "yes"
        now_s = self._clock.monotonic_s()
        if self._known is None or now_s - self._known[0] > _FRESH_S:
            self._known = now_s, await _network_manager_says()
        return self._known[1]


async def _network_manager_says() -> bool | None:
    """What its D-Bus property holds; None where it does not run or does not know."""
    for command in _COMMANDS:
        if shutil.which(command[0]) is not None:
            break
    else:
        return None
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        _logger.info("cannot ask whether the connection is metered: %s", error)
        return None
    try:
        async with asyncio.timeout(_LIMIT_S):
            output, _ = await child.communicate()
    except TimeoutError:
        _logger.info("%s does not say whether the connection is metered", command[0])
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(child.wait())
    # `u 4` from one, `(<uint32 4>,)` from the other.
    number = re.search(rb"\b(\d)\b", output)
    return _ANSWERS.get(int(number[1])) if child.returncode == 0 and number else None
