"""Where the tray's icons are: asks the X server over Xlib, without further packages."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

Window = ctypes.c_ulong
MAX_DEPTH = 6
MAX_ICON_PX = 64
"""Qt marks its ordinary windows as embeddable too; those are larger."""


@dataclass(frozen=True)
class Box:
    """A rectangle in screen pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def centre(self) -> tuple[int, int]:
        return self.x + self.width // 2, self.y + self.height // 2


class XTray:
    """The XEmbed tray of one display."""

    def __init__(self, display: str) -> None:
        self._x = _xlib()
        self._display = self._x.XOpenDisplay(display.encode())
        if not self._display:
            raise RuntimeError(f"no X server answers at {display}")
        self._root = self._x.XDefaultRootWindow(self._display)
        self._info = self._x.XInternAtom(self._display, b"_XEMBED_INFO", 0)
        self._selection = self._x.XInternAtom(self._display, b"_NET_SYSTEM_TRAY_S0", 0)

    def close(self) -> None:
        self._x.XCloseDisplay(self._display)

    def has_host(self) -> bool:
        """Whether a panel offers a tray."""
        return bool(self._x.XGetSelectionOwner(self._display, self._selection))

    def icons(self) -> list[Box]:
        """Every docked icon, from left to right."""
        found: list[Box] = []
        todo = [(window, 0) for window in self._children(self._root)]
        while todo:
            window, depth = todo.pop()
            if depth and self._is_docked(window):
                box = self._box(window)
                if box is not None and 1 < box.width <= MAX_ICON_PX and box.x >= 0 and box.y >= 0:
                    found.append(box)
                    continue
            if depth < MAX_DEPTH:
                todo += [(child, depth + 1) for child in self._children(window)]
        return sorted(found, key=lambda box: box.x)

    def wait_for_icon(self, limit_s: float) -> Box:
        end_s = time.monotonic() + limit_s
        while not (icons := self.icons()):
            if time.monotonic() > end_s:
                raise AssertionError(f"no tray icon within {limit_s} s")
            time.sleep(0.05)
        return icons[0]

    def _children(self, window: int) -> list[int]:
        root, parent, count = Window(), Window(), ctypes.c_uint()
        kids = ctypes.POINTER(Window)()
        if not self._x.XQueryTree(
            self._display,
            window,
            ctypes.byref(root),
            ctypes.byref(parent),
            ctypes.byref(kids),
            ctypes.byref(count),
        ):
            return []
        result = [kids[index] for index in range(count.value)]
        if count.value:
            self._x.XFree(kids)
        return result

    def _is_docked(self, window: int) -> bool:
        kind, form, count, after = Window(), ctypes.c_int(), ctypes.c_ulong(), ctypes.c_ulong()
        data = ctypes.c_void_p()
        self._x.XGetWindowProperty(
            self._display, window, self._info, 0, 2, 0, 0,
            ctypes.byref(kind), ctypes.byref(form), ctypes.byref(count), ctypes.byref(after), ctypes.byref(data),
        )  # fmt: skip
        if data:
            self._x.XFree(data)
        return kind.value != 0

    def _box(self, window: int) -> Box | None:
        root, child, x, y = Window(), Window(), ctypes.c_int(), ctypes.c_int()
        width, height, border, depth = (ctypes.c_uint() for _ in range(4))
        if not self._x.XGetGeometry(
            self._display, window, ctypes.byref(root), ctypes.byref(x), ctypes.byref(y),
            ctypes.byref(width), ctypes.byref(height), ctypes.byref(border), ctypes.byref(depth),
        ):  # fmt: skip
            return None
        self._x.XTranslateCoordinates(
            self._display,
            window,
            self._root,
            0,
            0,
            ctypes.byref(x),
            ctypes.byref(y),
            ctypes.byref(child),
        )
        return Box(x.value, y.value, width.value, height.value)


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_ignore = _HANDLER(lambda _display, _error: 0)  # windows may vanish while we walk the tree


def _xlib() -> ctypes.CDLL:
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XOpenDisplay.argtypes = [ctypes.c_char_p]
    x.XCloseDisplay.argtypes = [ctypes.c_void_p]
    x.XInternAtom.restype = Window
    x.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x.XGetSelectionOwner.restype = Window
    x.XGetSelectionOwner.argtypes = [ctypes.c_void_p, Window]
    x.XDefaultRootWindow.restype = Window
    x.XDefaultRootWindow.argtypes = [ctypes.c_void_p]
    pointer = ctypes.POINTER
    x.XQueryTree.argtypes = [
        ctypes.c_void_p, Window, pointer(Window), pointer(Window), pointer(pointer(Window)),
        pointer(ctypes.c_uint),
    ]  # fmt: skip
    x.XGetWindowProperty.argtypes = [
        ctypes.c_void_p, Window, Window, ctypes.c_long, ctypes.c_long, ctypes.c_int, Window, pointer(Window),
        pointer(ctypes.c_int), pointer(ctypes.c_ulong), pointer(ctypes.c_ulong), pointer(ctypes.c_void_p),
    ]  # fmt: skip
    x.XGetGeometry.argtypes = [
        ctypes.c_void_p, Window, pointer(Window), pointer(ctypes.c_int), pointer(ctypes.c_int),
        *[pointer(ctypes.c_uint)] * 4,
    ]  # fmt: skip
    x.XTranslateCoordinates.argtypes = [
        ctypes.c_void_p, Window, Window, ctypes.c_int, ctypes.c_int, pointer(ctypes.c_int), pointer(ctypes.c_int),
        pointer(Window),
    ]  # fmt: skip
    x.XFree.argtypes = [ctypes.c_void_p]
    x.XSetErrorHandler.argtypes = [_HANDLER]
    x.XSetErrorHandler(_ignore)
    return x
