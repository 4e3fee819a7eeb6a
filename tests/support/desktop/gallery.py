"""Every window of the app in every state that is worth a look, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtWidgets import QWidget

from tests.support.desktop.batch_scenes import batch_windows
from tests.support.desktop.chat_scenes import chat_windows, home_windows, picker_windows
from tests.support.desktop.dashboard_scenes import dashboard_windows
from tests.support.desktop.preparation_scenes import preparation_windows
from tests.support.desktop.setup_scenes import first_run_windows, settings_windows


def every_window(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The windows, shown; each is gone when the next one is asked for.

    Args:
        wanted: Whether a window of this name shall be built.
    """
    for windows in (
        chat_windows, home_windows, picker_windows, dashboard_windows, batch_windows,
        first_run_windows, settings_windows, preparation_windows,
    ):  # fmt: skip
        yield from windows(wanted)
