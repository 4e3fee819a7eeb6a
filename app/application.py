"""Builds the app's parts, joins them by signals, and runs Qt.

The only module that knows all the others. A click goes: window → intent → here → `engine_link` →
engine → message → `store` → here → views → windows.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QCoreApplication, QLocale, QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from app.artwork import icon
from app.engine_link.api import Api
from app.engine_link.batches import BatchLink
from app.engine_link.chats import ChatLink
from app.engine_link.engine import EngineLink
from app.engine_link.models import ModelLink
from app.engine_link.past import PastLink
from app.engine_link.setup import SetupLink
from app.engine_process import EngineProcess, EngineStart
from app.language import code_of, speak
from app.messages import ConnectionLost, EngineCrashed, Message, QuitAsked, StatusArrived
from app.presenters import Icon, overview
from app.settings import Settings
from app.setup_messages import InviteGiven
from app.single_instance import SingleInstance
from app.state import AppState
from app.store import Store
from app.tray import Tray
from app.trial import Trial
from app.windows.home import HomeWindow, on_gnome
from app.wiring.batch import BatchWiring
from app.wiring.chat import ChatWiring
from app.wiring.dashboard import DashboardWiring
from app.wiring.engine_setup import EngineSetupWiring
from app.wiring.settings import SettingsWiring, take_theme
from app.wiring.setup import SetupWiring
from engine.core.clock import SystemClock
from engine.localapi.installation import Installation
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile
from engine.localapi.versions import RESTART_EXIT

TRAY_CHECKS_S = (0.0, 2.0)
"""At login the panel may start after us, so a missing tray is believed only at the second look."""
TRAY_LATE_CHECK_S = 5.0
DRAW_AFTER_MS = 25
CLOCK_REFRESH_S = 20.0
"""How often texts that name a remaining time are drawn again."""


class Application(QObject):
    """The running app.

    Args:
        home: Whose engine we show.
        settings: Looks and geometry.
        engine: How to start one, and where its files are.
        instance: Our claim to be the only app of `home`.
    """

    def __init__(
        self,
        home: Home,
        settings: Settings,
        engine: EngineStart,
        instance: SingleInstance,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._instance = instance
        self._has_tray = False
        self._exit_code = 0
        self._trial = Trial(Installation.from_environment(), self)
        self._home: HomeWindow | None = None
        self._store = Store(self)
        api = Api(self)
        self._link = EngineLink(api, self)
        self._chat = ChatWiring(
            self._store,
            ChatLink(api, SystemClock(), self),
            ModelLink(api, self),
            self._settings,
            self,
        )
        self._dashboard = DashboardWiring(
            self._store, PastLink(api, self), engine.home, self._settings, self
        )
        self._batches = BatchWiring(self._store, BatchLink(api, self), self._settings, self)
        setup = SetupLink(api, self)
        self._setup = SetupWiring(self._store, setup, self)
        self._wishes = SettingsWiring(self._store, setup, self._settings, engine.home, self)
        self._process = EngineProcess(home, engine, self)
        self._preparing: EngineSetupWiring | None = None
        self._tray = Tray(self)
        self._draw_soon = QTimer(self, singleShot=True, interval=DRAW_AFTER_MS)
        self._draw_soon.timeout.connect(lambda: self._draw(self._store.state))
        self._store.changed.connect(self._on_changed)
        self._link.message.connect(self._on_message)
        self._process.message.connect(self._on_message)
        self._process.ready.connect(self._on_engine_ready)
        self._process.ended.connect(self._on_engine_ended)
        instance.raised.connect(self._raise_window)
        instance.opened.connect(self.open_invite)
        self._join_controls(self._tray)
        self._tray.update_wanted.connect(self._open_update)
        self._process.restart_wanted.connect(self._on_restart_wanted)
        self._chat.resume_wanted.connect(self._link.resume)
        self._chat.start_wanted.connect(self._process.start)
        self._chat.closed.connect(self._on_window_closed)
        self._dashboard.pause_wanted.connect(self._link.pause)
        self._dashboard.resume_wanted.connect(self._link.resume)
        self._dashboard.start_wanted.connect(self._process.start)
        self._dashboard.closed.connect(self._on_window_closed)
        self._batches.notice.connect(self._tray.notify)
        self._batches.closed.connect(self._on_window_closed)
        self._setup.chat_wanted.connect(self._open_chat)
        self._setup.closed.connect(self._on_window_closed)
        self._wishes.closed.connect(self._on_window_closed)
        self._refresh = QTimer(self, interval=int(CLOCK_REFRESH_S * 1000))
        self._refresh.timeout.connect(lambda: self._draw(self._store.state))

    def prepare(self, setup_command: Sequence[str]) -> None:
        """See to the engine's environment, then start.

        Args:
            setup_command: What sets it up.
        """
        self._preparing = EngineSetupWiring(setup_command, self)
        self._preparing.ready.connect(self._on_prepared)
        self._preparing.given_up.connect(self.quit)
        self._preparing.start()

    def _on_prepared(self) -> None:
        self._preparing = None
        self.start()
        if self._store.state.setup.invite:
            self._setup.bring_up()

    def start(self) -> None:
        """Show ourselves, then see to the engine."""
        for after_s in TRAY_CHECKS_S:
            last = after_s == TRAY_CHECKS_S[-1]
            QTimer.singleShot(int(after_s * 1000), lambda last=last: self._look_for_tray(last=last))
        self._refresh.start()
        self._process.start()

    def quit(self) -> None:
        """End the engine if it is ours, then ourselves."""
        if self._store.state.quitting:
            return
        self._store.dispatch(QuitAsked())
        for window in self._windows():
            window.close()
        asked = self._process.is_ours and self._link.quit_engine()
        self._process.end(asked=asked)

    def _on_changed(self) -> None:
        """Draw in a moment: a hundred tokens a second need no hundred drawings."""
        if not self._draw_soon.isActive():
            self._draw_soon.start()

    def _on_message(self, message: Message) -> None:
        if isinstance(message, StatusArrived):
            self._process.link_opened()
            self._trial.works()
        elif isinstance(message, EngineCrashed):
            self._trial.fails()
        self._store.dispatch(message)
        if isinstance(message, ConnectionLost):
            self._process.link_lost()

    def _on_engine_ready(self, engine: ReadyFile) -> None:
        self._link.open(engine)

    def _on_restart_wanted(self) -> None:
        """Our engine has ended for a new version; we end too, and whoever started us starts it."""
        self._exit_code = RESTART_EXIT
        self._store.dispatch(QuitAsked())
        for window in self._windows():
            window.close()

    def _on_engine_ended(self) -> None:
        self._link.close()
        self._tray.hide()
        self._instance.release()
        QCoreApplication.exit(self._exit_code)

    def _draw(self, state: AppState) -> None:
        now = datetime.now().astimezone()
        view = overview(state, now, self.tr)
        self._tray.show(view)
        if self._home is not None and self._home.isVisible():
            self._home.show_view(view)
        self._dashboard.draw(state, now)
        self._batches.draw(state, now)
        if self._chat.window is not None and self._chat.window.isVisible():
            self._chat.draw(state, now)

    def _look_for_tray(self, *, last: bool) -> None:
        self._has_tray = Tray.is_available()
        self._draw(self._store.state)
        if self._has_tray or self._store.state.quitting:
            return
        if last:
            if self._home is None:
                self._open_home()
            QTimer.singleShot(int(TRAY_LATE_CHECK_S * 1000), lambda: self._look_for_tray(last=True))

    def _raise_window(self) -> None:
        if self._preparing is not None:
            self._preparing.bring_up()
        elif self._has_tray:
            self._open_chat()
        else:
            self._open_home()

    def open_invite(self, text: str) -> None:
        """Offer to join the swarm of an invite; nothing happens before the person agrees."""
        self._store.dispatch(InviteGiven(text))
        if self._preparing is not None:
            self._preparing.bring_up()
        elif self._setup.is_wanted:
            self._setup.bring_up()

    def _open_chat(self) -> None:
        if self._store.state.quitting:
            return
        if self._setup.is_wanted:
            self._setup.bring_up()
        else:
            self._chat.bring_up()

    def _open_dashboard(self) -> None:
        if not self._store.state.quitting:
            self._dashboard.bring_up()

    def _open_batches(self) -> None:
        if not self._store.state.quitting:
            self._batches.bring_up()

    def _open_settings(self) -> None:
        if not self._store.state.quitting:
            self._wishes.bring_up()

    def _open_update(self) -> None:
        if not self._store.state.quitting:
            self._wishes.show_update()

    def _open_home(self) -> None:
        if self._home is None:
            self._home = HomeWindow(on_gnome=on_gnome())
            self._join_controls(self._home)
            self._home.closed.connect(self._on_window_closed)
        self._home.show_view(overview(self._store.state, datetime.now().astimezone(), self.tr))
        self._home.bring_up()

    def _join_controls(self, controls: Tray | HomeWindow) -> None:
        controls.pause_wanted.connect(self._link.pause)
        controls.resume_wanted.connect(self._link.resume)
        controls.start_wanted.connect(self._process.start)
        controls.chat_wanted.connect(self._open_chat)
        controls.dashboard_wanted.connect(self._open_dashboard)
        controls.batches_wanted.connect(self._open_batches)
        controls.settings_wanted.connect(self._open_settings)
        controls.quit_wanted.connect(self.quit)

    def _windows(self) -> list[QWidget]:
        """The windows that exist."""
        every = (
            self._setup.window,
            self._wishes.window,
            self._chat.window,
            self._dashboard.window,
            self._batches.window,
            self._home,
        )
        return [window for window in every if window is not None]

    def _on_window_closed(self) -> None:
        """Without a tray, or a wish to stay there, the last closed window is the end."""
        stays = self._has_tray and self._settings.stays_in_tray
        if not stays and not any(window.isVisible() for window in self._windows()):
            self.quit()


class SignalWatch(QObject):
    """Turns SIGTERM and SIGINT into an orderly quit.

    Python runs signal handlers only between its own steps; a byte on a socket wakes Qt for one.
    """

    def __init__(self, application: Application) -> None:
        super().__init__(application)
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: application.quit())
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(lambda *_: self._reader.recv(64))


def new_qt() -> QApplication:
    """Qt, as the app wants it."""
    qt = QApplication(["shoal"])
    qt.setApplicationName("Shoal")
    qt.setDesktopFileName("shoal")
    qt.setWindowIcon(icon(Icon.IDLE))
    qt.setQuitOnLastWindowClosed(False)
    if qt.style().name() == "windowsvista":  # it ignores the dark palette
        qt.setStyle("Fusion")
    return qt


def new_application(
    qt: QApplication, home: Home, engine: EngineStart, instance: SingleInstance
) -> Application:
    """The app, in the language and the colours that the person wants."""
    settings = Settings(home)
    speak(qt, code_of(settings.language, QLocale.system().uiLanguages()))
    application = Application(home, settings, engine, instance)
    take_theme(settings.theme)
    return application


def run(home: Home, engine: EngineStart, invite: str = "") -> int:
    """Run until the person quits.

    Args:
        home: Whose engine we show.
        engine: How to start one, and where its files are.
        invite: To be offered to the person, `shoal://…`; may be empty.

    Returns:
        Exit code: 0, also when another app of `home` was raised instead; `RESTART_EXIT` to be started
        again; 1 as a new version whose engine does not start.

    Raises:
        TimeoutError: Another app runs on `home` but does not answer.
        OSError: The folder for the state cannot be written.
        TranslationsDamaged: Shoal is not whole.
    """
    qt = new_qt()
    instance = SingleInstance(home)
    if not instance.claim(invite):
        return 0
    application = new_application(qt, home, engine, instance)
    watch = SignalWatch(application)
    if engine.setup:
        application.prepare(engine.setup)
    else:
        application.start()
    if invite:
        application.open_invite(invite)
    code = qt.exec()
    watch.deleteLater()
    return code
