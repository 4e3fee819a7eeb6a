"""Joins the window that sets the engine up with what does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.engine_setup import EngineSetup
from app.preparation import Phase, Preparation, ended, offered, told
from app.preparation_presenters import preparation_view
from app.windows.engine_setup import EngineSetupWindow


class EngineSetupWiring(QObject):
    """Sees to the engine's environment, with a window where it is not there yet.

    Args:
        command: How to run `shoal-setup`.

    Signals:
        ready: The engine can be started.
        given_up: The person has ended it.
    """

    ready = Signal()
    given_up = Signal()

    def __init__(self, command: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._setup = EngineSetup(command, self)
        self._setup.line.connect(self._on_line)
        self._setup.ended.connect(self._on_ended)
        self._state = Preparation()
        self._said = ""
        self._leaving = False
        self.window: EngineSetupWindow | None = None

    def start(self) -> None:
        """Look; nothing is shown when all is there."""
        self._setup.run("check")

    def bring_up(self) -> None:
        """Show the window, if there is one."""
        if self.window is not None:
            self.window.bring_up()

    def quit(self) -> None:
        """End what runs, then tell that the person has given up."""
        self._leaving = True
        if self._setup.is_running:
            self._setup.interrupt()
        else:
            self.given_up.emit()

    def _on_line(self, line: str) -> None:
        if self._state.phase is Phase.LOOKING:
            self._said = line
        else:
            self._show(told(self._state, line))

    def _on_ended(self, word: str, well: bool) -> None:
        if self._leaving:
            self.given_up.emit()
        elif word == "check":
            self._show(offered(self._state, self._said))
        elif word == "remove" and well:
            self._look_again()
        else:
            self._show(ended(self._state, well=well))

    def _begin(self) -> None:
        if self._state.offer is None or self._state.offer.problem:  # it may be otherwise by now
            self._look_again()
            return
        self._show(replace(self._state, phase=Phase.WORKING, problem="", step="", share=None))
        self._setup.run("install")

    def _look_again(self) -> None:
        self._show(Preparation())
        self._setup.run("check")

    def _stop(self) -> None:
        self._show(replace(self._state, phase=Phase.STOPPING))
        self._setup.interrupt()

    def _show(self, state: Preparation) -> None:
        self._state = state
        if state.phase is Phase.READY:
            if self.window is not None:
                self.window.closed.disconnect(self.quit)
                self.window.close()
                self.window.deleteLater()
                self.window = None
            self.ready.emit()
            return
        if self.window is None:
            self.window = EngineSetupWindow()
            self.window.begin_wanted.connect(self._begin)
            self.window.stop_wanted.connect(self._stop)
            self.window.remove_wanted.connect(lambda: self._setup.run("remove"))
            self.window.quit_wanted.connect(self.window.close)
            self.window.closed.connect(self.quit)
            self.window.show_view(preparation_view(state, self.tr))
            self.window.bring_up()
        self.window.show_view(preparation_view(state, self.tr))
