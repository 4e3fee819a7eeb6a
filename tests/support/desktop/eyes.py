"""What a program's windows say, as a screen reader is told it over AT-SPI.

Tests find a control by the name that a person hears, click where it is on the screen and read what
it shows. The program is asked on a bus of the desktop's own, where nothing else speaks.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    Properties,
    message_bus,
    new_method_call,
)
from jeepney.io.blocking import open_dbus_connection

from tests.support.desktop.xtray import Box

Answer = tuple[Any, ...] | None
ROOT = "/org/a11y/atspi/accessible/root"
APPLICATION = "org.a11y.atspi.Application"
ACCESSIBLE = "org.a11y.atspi.Accessible"
COMPONENT = "org.a11y.atspi.Component"
TEXT = "org.a11y.atspi.Text"
ON_SCREEN = 0
ANSWER_LIMIT_S = 20.0
STATES = {"checked": 4, "enabled": 8, "focused": 12, "selected": 23, "showing": 25}
BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir=/tmp</listen>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
  </policy>
  <limit name="max_replies_per_connection">100000</limit>
</busconfig>
"""


@dataclass(frozen=True)
class Thing:
    """A control or a text in a window."""

    path: str
    role: str
    name: str
    words: str
    """What is written in it: a field's text, else its name."""
    states: frozenset[str]
    inside: tuple[Thing, ...] = field(default=(), repr=False)

    def all(self) -> Iterator[Thing]:
        """Itself and what is in it, from above to below."""
        yield self
        for part in self.inside:
            yield from part.all()


class Eyes:
    """Looks at the windows of the process `pid`, which was told the bus at `address`."""

    def __init__(self, address: str, pid: int) -> None:
        self._connection = open_dbus_connection(address)
        self._service = self._service_of(pid)

    def close(self) -> None:
        self._connection.close()

    def windows(self) -> tuple[Thing, ...]:
        """The windows that can be seen, with all that can be seen in them."""
        return self._look([ROOT])[0].inside

    def box(self, thing: Thing) -> Box | None:
        """Where it is on the screen; None when it has gone."""
        at = DBusAddress(thing.path, self._service, COMPONENT)
        (found,) = self._ask([new_method_call(at, "GetExtents", "u", (ON_SCREEN,))])
        return None if found is None else Box(*found[0])

    def _service_of(self, pid: int) -> str:
        """The program's name on the bus: it comes some moments after the program."""
        end_s = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < end_s:
            (names,) = self._ask([message_bus.ListNames()])
            unique = [name for name in names[0] if name.startswith(":")]
            owners = self._ask([message_bus.GetConnectionUnixProcessID(name) for name in unique])
            ours = [
                name
                for name, owner in zip(unique, owners, strict=True)
                if owner is not None and owner[0] == pid
            ]
            # Desktops' themes may load another toolkit, which speaks beside Qt and has no windows.
            kits = self._ask([Properties(_root(name)).get("ToolkitName") for name in ours])
            for name, kit in zip(ours, kits, strict=True):
                if kit is not None and kit[0][1] == "Qt":
                    return str(name)
            time.sleep(0.05)
        raise AssertionError(f"the process {pid} has not come to the bus")

    def _look(self, paths: Sequence[str]) -> list[Thing]:
        """These things, with what can be seen in them."""
        if not paths:
            return []
        answers = self._ask([question for path in paths for question in self._questions(path)])
        known = []
        for path, (name, role, state, text, parts) in zip(paths, _fives(answers), strict=True):
            if name is None or role is None or state is None or parts is None:
                continue  # it has gone meanwhile
            bits = state[0][0] | state[0][1] << 32
            states = frozenset(word for word, bit in STATES.items() if bits >> bit & 1)
            if path == ROOT or "showing" in states:
                words = name[0][1] if text is None else text[0]
                within = [part for _service, part in parts[0]]
                known.append((path, str(role[0]), str(name[0][1]), str(words), states, within))
        inside = {thing.path: thing for thing in self._look([p for one in known for p in one[-1]])}
        return [
            Thing(*facts, tuple(inside[part] for part in within if part in inside))
            for *facts, within in known
        ]

    def _questions(self, path: str) -> list[Message]:
        """What is asked of each thing."""
        at = DBusAddress(path, self._service, ACCESSIBLE)
        return [
            Properties(at).get("Name"),
            new_method_call(at, "GetRoleName"),
            new_method_call(at, "GetState"),
            new_method_call(at.with_interface(TEXT), "GetText", "ii", (0, -1)),
            new_method_call(at, "GetChildren"),
        ]

    def _ask(self, messages: Sequence[Message]) -> list[Answer]:
        """The answers to all of them; None where there is none."""
        serials = []
        for message in messages:
            serials.append(next(self._connection.outgoing_serial))
            self._connection.send(message, serial=serials[-1])
        answers: dict[int, Answer] = {}
        while len(answers) < len(serials):
            reply = self._connection.receive(timeout=ANSWER_LIMIT_S)
            kind = reply.header.message_type
            if kind in (MessageType.method_return, MessageType.error):
                serial = reply.header.fields[HeaderFields.reply_serial]
                answers[serial] = reply.body if kind is MessageType.method_return else None
        return [answers[serial] for serial in serials]


def _root(service: str) -> DBusAddress:
    return DBusAddress(ROOT, service, APPLICATION)


def _fives(answers: list[Answer]) -> Iterator[list[Answer]]:
    return (answers[at : at + 5] for at in range(0, len(answers), 5))


@contextmanager
def accessibility_bus(folder: Path) -> Iterator[str]:
    """The address of a bus on which programs say what is in their windows."""
    settings = folder / "accessibility-bus.conf"
    settings.write_text(BUS)
    with (folder / "accessibility-bus.log").open("wb") as log:
        daemon = subprocess.Popen(
            ["dbus-daemon", f"--config-file={settings}", "--nofork", "--print-address"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert daemon.stdout is not None
    try:
        yield daemon.stdout.readline().strip()
    finally:
        daemon.terminate()
        daemon.wait(10)
        daemon.stdout.close()
