"""What happens in the settings window, and when an invite is opened later than at the first start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QT_TRANSLATE_NOOP, QLocale, QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app import autostart, invite_links
from app.engine_link.setup import SetupLink
from app.language import code_of, texts_of
from app.settings import Language, Settings, Theme
from app.settings_presenters import settings_view
from app.setup_copy import SetupCopy
from app.setup_messages import InviteGiven
from app.state import AppState
from app.store import Store
from app.update_presenters import LOOKS
from app.windows.settings import APP, SWARM, SettingsWindow
from app.windows.swarm_choice import Choice, Way
from engine.localapi.running import Home
from engine.localapi.settings import IdentityBackup

LARGEST_BACKUP_BYTES = 65536
SCHEMES = {
    Theme.SYSTEM: Qt.ColorScheme.Unknown,
    Theme.LIGHT: Qt.ColorScheme.Light,
    Theme.DARK: Qt.ColorScheme.Dark,
}


def take_theme(theme: Theme) -> None:
    """Turn all windows light or dark, or follow the desktop."""
    QGuiApplication.styleHints().setColorScheme(SCHEMES[theme])


class SettingsWiring(QObject):
    """The settings window, built when it is first wanted.

    Signals:
        closed: The window was closed.
    """

    closed = Signal()

    def __init__(
        self,
        store: Store,
        link: SetupLink,
        settings: Settings,
        home: Home,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._link = link
        self._settings = settings
        self._home = home
        self.window: SettingsWindow | None = None
        self._seen: tuple[object, ...] = ()
        self._setup = SetupCopy(home.updates_dir, self)
        self._setup.ready.connect(self._start_setup)
        self._setup.failed.connect(self._refuse_setup)
        self._setup.refused.connect(self._refuse_unsigned)
        store.changed.connect(self._on_changed)

    def bring_up(self) -> None:
        """Show the settings as they are now."""
        self._link.look()
        if self.window is None:
            self.window = self._build()
        self._show_own()
        self._draw(self._store.state)
        self.window.bring_up()

    def show_update(self) -> None:
        """Show what there is to know of a new version."""
        self.bring_up()
        assert self.window is not None
        self.window.open_page(APP)

    def _build(self) -> SettingsWindow:
        state = self._store.state
        window = SettingsWindow(settings_view(state.setup, state.status, self.tr))
        window.apply_wanted.connect(self._link.change_settings)
        window.preview_wanted.connect(self._link.preview)
        window.swarm.change_wanted.connect(self._change_swarm)
        window.app.autostart_wanted.connect(self._turn_autostart)
        window.app.invites_wanted.connect(self._turn_invites)
        window.app.stays_wanted.connect(
            lambda stays: self._settings.keep_stays_in_tray(stays=stays)
        )
        window.app.theme_wanted.connect(self._take_theme)
        window.app.language_wanted.connect(self._take_language)
        window.api.show_token_file(self._home.token_file)
        window.api.token_wanted.connect(
            lambda: QGuiApplication.clipboard().setText(self._link.token())
        )
        window.models.delete_wanted.connect(self._link.delete_model)
        window.identity.backup_wanted.connect(self._back_up)
        window.identity.restore_wanted.connect(self._restore)
        window.update_part.check_wanted.connect(lambda: self._link.update("check"))
        window.update_part.install_wanted.connect(lambda: self._link.update("install"))
        window.update_part.restart_wanted.connect(lambda: self._link.update("restart"))
        window.update_part.setup_wanted.connect(self._copy_setup)
        window.update_part.looking_wanted.connect(
            lambda looks: self._link.change_settings({LOOKS: looks})
        )
        window.closed.connect(self.closed)
        return window

    def _on_changed(self, state: AppState) -> None:
        status = state.status
        is_set_up = state.linked and status is not None and not status.awaits_setup
        if state.setup.invite and is_set_up and not state.quitting:
            invite = state.setup.invite
            self._store.dispatch(InviteGiven(""))
            self.bring_up()
            assert self.window is not None
            self.window.open_page(SWARM)
            self.window.swarm.choice.take_invite(invite)
        elif self.window is not None and self.window.isVisible():
            self._draw(state)

    def _draw(self, state: AppState) -> None:
        assert self.window is not None
        seen = (state.setup, state.status, state.linked)
        if seen == self._seen:
            return  # a token of an answer changes nothing here
        self._seen = seen
        status = state.status if state.linked else None
        self.window.show_view(settings_view(state.setup, status, self.tr))

    def _show_own(self) -> None:
        assert self.window is not None
        self.window.app.show_choices(
            autostart=autostart.is_on() if autostart.is_supported() else None,
            invites=invite_links.is_on() if invite_links.is_supported() else None,
            stays=self._settings.stays_in_tray,
            theme=self._settings.theme,
            language=self._settings.language,
        )

    def _change_swarm(self, choice: Choice) -> None:
        nothing: dict[str, Any] = {}
        if choice.way is Way.CREATE:
            self._link.create_swarm(choice.name, private=choice.private, values=nothing)
        elif choice.way is Way.JOIN:
            self._link.join_swarm(choice.invite, nothing)
        else:
            self._link.leave_swarm()

    def _turn_autostart(self, on: bool) -> None:
        try:
            autostart.turn(on=on)
        except OSError as error:
            self._link.refuse(
                self.tr("The entry for the login cannot be changed ({reason}).").format(
                    reason=error.strerror
                )
            )
        self._show_own()

    def _turn_invites(self, on: bool) -> None:
        try:
            invite_links.turn(on=on)
        except OSError as error:
            self._link.refuse(
                self.tr("What opens invites cannot be changed ({reason}).").format(
                    reason=error.strerror
                )
            )
        self._show_own()

    def _take_theme(self, theme: Theme) -> None:
        self._settings.keep_theme(theme)
        take_theme(theme)

    def _take_language(self, language: Language) -> None:
        """It holds from the next start on, which is said in the language that was chosen."""
        assert self.window is not None
        self._settings.keep_language(language)
        code = code_of(language, QLocale.system().uiLanguages())
        if code == self.tr("en"):
            self.window.app.say("")
        else:
            english = str(QT_TRANSLATE_NOOP("app", "This holds when Shoal is started again."))
            self.window.app.say(texts_of(code).get(english, english))

    def _copy_setup(self, setup: str) -> None:
        status = self._store.state.status
        info = None if status is None else status.update
        if info is not None and info.command == setup:  # else there is a newer one meanwhile
            self._setup.wish(setup, info.sha256)

    def _start_setup(self, file: str) -> None:
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(file)):
            self._link.refuse(
                self.tr("Windows did not start {file}; start it yourself.").format(file=file)
            )

    def _refuse_setup(self, reason: str) -> None:
        self._link.refuse(
            self.tr(
                "The setup cannot be copied to {folder} ({reason}); free some space there and try again."
            ).format(folder=self._home.updates_dir, reason=reason)
        )

    def _refuse_unsigned(self) -> None:
        self._link.refuse(
            self.tr(
                "The setup was not started, because it is no longer the file that was signed; quit Shoal, "
                "start it again and install the new version once more, which fetches it anew."
            )
        )

    def _back_up(self, passphrase: str, file: str) -> None:
        def keep(backup: IdentityBackup) -> str:
            Path(file).touch(mode=0o600)
            Path(file).write_text(backup.backup, encoding="ascii")
            return self.tr("The copy of {peer} is in {file}.").format(
                peer=backup.peer_id, file=file
            )

        self._link.back_up(passphrase, keep)

    def _restore(self, passphrase: str, file: str) -> None:
        try:
            with Path(file).open("rb") as kept:
                backup = kept.read(LARGEST_BACKUP_BYTES).decode("ascii")
        except (OSError, UnicodeDecodeError):
            self._link.refuse(self.tr("{file} cannot be read as a copy.").format(file=file))
            return
        self._link.restore(backup, passphrase, self.tr("This node is who the copy was."))
