"""What a window needs of this computer, told before Qt would abort for want of it."""

from __future__ import annotations

import importlib.util
import os
import sys


def what_is_missing() -> str:
    """Why there can be no window here, as a sentence; empty when there can."""
    if importlib.util.find_spec("PySide6") is None:
        return "The tray needs PySide6: install it with `pip install 'shoal[gui]'`."
    has_screen = any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    )
    if sys.platform.startswith("linux") and not has_screen:
        return "There is no screen here; use `shoal engine` and `shoal chat` instead of the tray."
    return ""
