"""A D-Bus of a test's own, with services that answer as told."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from jeepney import (
    DBusAddress,
    HeaderFields,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

_BUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")


class PrivateBus:
    """The bus at `address`.

    `answers` may be changed at any time: (service, property or method without arguments) →
    (signature, value).
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: dict[tuple[str, str], tuple[str, Any]] = {}
        self.asked: set[tuple[str, str]] = set()
        """(Service, method) of all calls so far."""
        self._connections: list[DBusConnection] = []
        self._threads: list[threading.Thread] = []

    def own(self, service: str) -> None:
        """Answer for `service`, which from now on runs."""
        connection = open_dbus_connection(self.address)
        request = new_method_call(_BUS, "RequestName", "su", (service, 4))
        assert connection.send_and_get_reply(request, timeout=5).body == (1,)
        thread = threading.Thread(target=self._answer, args=(service, connection))
        thread.start()
        self._connections.append(connection)
        self._threads.append(thread)

    def close(self) -> None:
        for connection in self._connections:
            with suppress(OSError):  # closed before
                connection.sock.shutdown(2)
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()

    def _answer(self, service: str, connection: DBusConnection) -> None:
        with suppress(OSError):
            while True:
                asked = connection.receive()
                if asked.header.message_type is not MessageType.method_call:
                    continue
                member = asked.header.fields[HeaderFields.member]
                self.asked.add((service, member))
                is_property = member == "Get"
                name = asked.body[1] if is_property else member
                known = self.answers.get((service, name))
                if known is None:
                    reply = new_error(asked, "org.freedesktop.DBus.Error.UnknownMethod")
                elif is_property:
                    reply = new_method_return(asked, "v", (known,))
                else:
                    reply = new_method_return(asked, known[0], (known[1],))
                connection.send(reply)
        connection.close()


@contextmanager
def private_bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateBus]:
    """Both the session's and the system's bus of this process, until the block ends."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("needs dbus-daemon (Debian package dbus)")
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert daemon.stdout is not None
    bus = PrivateBus(daemon.stdout.readline().strip())
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus.address)
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    try:
        yield bus
    finally:
        bus.close()
        daemon.terminate()
        daemon.wait(10)
        daemon.stdout.close()
