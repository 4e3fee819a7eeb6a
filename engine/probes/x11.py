"""Whether the active window of an X server covers its screen.

Through libxcb, which reports a lost server as an error; Xlib would end our process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import logging
import struct
import time
from ctypes import c_char_p, c_int, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any

import psutil

_logger = logging.getLogger(__name__)

_RETRY_S = 60.0
_ANY_TYPE = 0
_MAX_WORDS = 64
"""32-bit words of a property that are read; a window has no more states."""


class _Cookie(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


class _ScreenIterator(ctypes.Structure):
    _fields_ = (("data", ctypes.POINTER(c_uint32)), ("rem", c_int), ("index", c_int))


class Screen:
    """The X server `display`; none if that is empty."""

    def __init__(self, display: str) -> None:
        self._display = display
        self._xcb: Any = None
        self._connection: int | None = None
        self._root = 0
        self._atoms: dict[str, int] = {}
        self._retry_at_s = 0.0

    def full_screen(self) -> str | None:
        """The program whose window covers the screen, empty where it has no name; None: there is none."""
        if not self._is_connected():
            return None
        active = self._property(self._root, "_NET_ACTIVE_WINDOW")
        if not active or not active[0]:
            return None
        states = self._property(active[0], "_NET_WM_STATE")
        if self._atom("_NET_WM_STATE_FULLSCREEN") not in states:
            return None
        pid = self._property(active[0], "_NET_WM_PID")
        try:
            return psutil.Process(pid[0]).name() if pid else ""
        except psutil.Error:
            return ""

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._xcb.xcb_disconnect(connection)
        self._atoms.clear()

    def _is_connected(self) -> bool:
        if self._connection is not None and self._xcb.xcb_connection_has_error(self._connection):
            self.close()
        if self._connection is None and self._display and time.monotonic() >= self._retry_at_s:
            self._connect()
        return self._connection is not None

    def _connect(self) -> None:
        self._retry_at_s = time.monotonic() + _RETRY_S
        self._xcb = self._xcb or _library()
        if self._xcb is None:
            return
        connection = self._xcb.xcb_connect(self._display.encode(), None)
        if self._xcb.xcb_connection_has_error(connection):
            self._xcb.xcb_disconnect(connection)
            _logger.debug("the X server %s cannot be asked", self._display)
            return
        self._connection = connection
        screens = self._xcb.xcb_setup_roots_iterator(self._xcb.xcb_get_setup(connection))
        self._root = screens.data[0]

    def _atom(self, name: str) -> int:
        if name not in self._atoms:
            cookie = self._xcb.xcb_intern_atom(self._connection, 0, len(name), name.encode())
            reply = self._xcb.xcb_intern_atom_reply(self._connection, cookie, None)
            if not reply:
                return 0
            self._atoms[name] = struct.unpack_from("8xI", ctypes.string_at(reply, 12))[0]
            _free(reply)
        return self._atoms[name]

    def _property(self, window: int, name: str) -> tuple[int, ...]:
        """A window's property of 32-bit numbers; empty where it has none, or is gone."""
        cookie = self._xcb.xcb_get_property(
            self._connection, 0, window, self._atom(name), _ANY_TYPE, 0, _MAX_WORDS
        )
        reply = self._xcb.xcb_get_property_reply(self._connection, cookie, None)
        if not reply:
            return ()
        try:
            is_words = ctypes.string_at(reply, 2)[1] == 32
            length = self._xcb.xcb_get_property_value_length(reply)
            value = ctypes.string_at(self._xcb.xcb_get_property_value(reply), length)
            return struct.unpack(f"{length // 4}I", value) if is_words else ()
        finally:
            _free(reply)


def _library() -> Any:
    path = ctypes.util.find_library("xcb")
    if path is None:
        return None
    xcb = ctypes.CDLL(path)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "xcb_connect": (c_void_p, [c_char_p, c_void_p]),
        "xcb_connection_has_error": (c_int, [c_void_p]),
        "xcb_disconnect": (None, [c_void_p]),
        "xcb_get_setup": (c_void_p, [c_void_p]),
        "xcb_setup_roots_iterator": (_ScreenIterator, [c_void_p]),
        "xcb_intern_atom": (_Cookie, [c_void_p, c_uint8, c_uint16, c_char_p]),
        "xcb_intern_atom_reply": (c_void_p, [c_void_p, _Cookie, c_void_p]),
        "xcb_get_property": (_Cookie, [c_void_p, c_uint8, *[c_uint32] * 5]),
        "xcb_get_property_reply": (c_void_p, [c_void_p, _Cookie, c_void_p]),
        "xcb_get_property_value": (c_void_p, [c_void_p]),
        "xcb_get_property_value_length": (c_int, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(xcb, name)
        function.restype, function.argtypes = result, arguments
    return xcb


def _free(reply: int) -> None:
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [c_void_p]
    libc.free.restype = None
    libc.free(reply)
