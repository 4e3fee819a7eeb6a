"""Questions to services on a D-Bus.

By jeepney: it has no dependencies, is Python alone, and its blocking connection with a time-out for
each call is all that a thread of probes needs.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any, Literal

from jeepney import DBusAddress, Message, MessageFlag, MessageType, Properties, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

_logger = logging.getLogger(__name__)

_CALL_LIMIT_S = 0.5
_RETRY_S = 60.0
"""A bus that is not there, or that hangs, is left alone for so long."""


class Bus:
    """One bus, connected to when first asked; its answers are None where nobody gives one."""

    def __init__(self, which: Literal["SESSION", "SYSTEM"]) -> None:
        self._which = which
        self._connection: DBusConnection | None = None
        self._retry_at_s = 0.0

    def get(self, service: str, path: str, interface: str, name: str) -> Any:
        """A property."""
        address = DBusAddress(path, service, interface)
        answer = self._ask(Properties(address).get(name))
        return None if answer is None else answer[0][1]  # a variant: its signature and its value

    def call(
        self, service: str, path: str, interface: str, method: str, *text_arguments: str
    ) -> Any:
        """What a method returns first."""
        address, signature = DBusAddress(path, service, interface), "s" * len(text_arguments)
        answer = self._ask(new_method_call(address, method, signature or None, text_arguments))
        return answer[0] if answer else None

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, message: Message) -> tuple[Any, ...] | None:
        # To look whether a service runs must not start it.
        message.header.flags |= MessageFlag.no_auto_start
        try:
            if self._connection is None:
                if time.monotonic() < self._retry_at_s:
                    return None
                self._connection = open_dbus_connection(_address(self._which))
            reply = self._connection.send_and_get_reply(message, timeout=_CALL_LIMIT_S)
        except (OSError, ValueError, KeyError, RuntimeError, StopIteration) as error:
            _logger.debug("the %s bus does not answer: %s", self._which.lower(), error)
            self._retry_at_s = time.monotonic() + _RETRY_S
            self.close()
            return None
        if reply.header.message_type is not MessageType.method_return:
            return None  # no such service, or it does not want to say
        return tuple(reply.body)


def _address(which: Literal["SESSION", "SYSTEM"]) -> str:
    if which == "SYSTEM" or "DBUS_SESSION_BUS_ADDRESS" in os.environ:
        return which
    # A service that systemd started has no such variable, but the user's bus is where it always is.
    socket = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
    return f"unix:path={socket}"
