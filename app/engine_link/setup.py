"""The first steps, swarms, settings, models on disk and the identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QNetworkReply

from app.engine_link.api import Api, failure_text
from app.setup_messages import (
    ChangeAsked,
    ChangeDone,
    ChangeFailed,
    KeptModelsArrived,
    MachineMeasured,
    MeasuringBegan,
    MeasuringFailed,
    PlanArrived,
    PlanFailed,
    SettingsArrived,
    SetupMessage,
    SwarmArrived,
)
from engine.localapi.running import read_token
from engine.localapi.schema import (
    Measurements,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.localapi.settings import (
    BackupRequest,
    IdentityBackup,
    KeptModels,
    RestoreRequest,
    Settings,
    SettingsChange,
)
from engine.localapi.setup import MachineRequest, PlanPreview, PreviewRequest

SHOAL = "/shoal/v1"
LONG_S = 900.0
"""Founding a swarm may have to fetch the model's files first; the status tells how far that is."""


class SetupLink(QObject):
    """What the app asks of the engine about itself.

    Signals:
        message: An `app.setup_messages.SetupMessage` for the store.
    """

    message = Signal(object)

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._measuring: QNetworkReply | None = None
        self._previews = 0

    # Looking --------------------------------------------------------------------------------

    def look(self) -> None:
        """Fetch everything that the settings show."""
        self._get("settings", Settings, SettingsArrived)
        self._get("swarm", SwarmInfo, SwarmArrived)
        self.look_at_models()
        self.look_at_machine()

    def look_at_machine(self) -> None:
        """Fetch what is known of this machine."""
        self._get("measurements", Measurements, lambda found: MachineMeasured(found.profile))

    def look_at_models(self) -> None:
        """Fetch which models are kept, and where."""
        self._get("models/kept", KeptModels, KeptModelsArrived)

    def token(self) -> str:
        """The API's token; empty when it cannot be read."""
        engine = self._api.engine
        try:
            return "" if engine is None else engine.token or read_token(Path(engine.token_file))
        except OSError:
            return ""

    def preview(self, values: Mapping[str, Any]) -> None:
        """Ask what the node would hold with these settings; only the last question counts."""
        self._previews += 1
        asked = self._previews

        def done(data: bytes) -> None:
            if asked == self._previews:
                self._send(PlanArrived(PlanPreview.model_validate_json(data)))

        def failed(text: str) -> None:
            if asked == self._previews:
                self._send(PlanFailed(text))

        self._long("POST", "plan/preview", PreviewRequest(values=dict(values)), done, failed)

    # Measuring ------------------------------------------------------------------------------

    def measure(self, *, quick: bool) -> None:
        """Have this machine measured."""
        if self._measuring is not None:
            return
        self._send(MeasuringBegan())

        def done(data: bytes) -> None:
            self._measuring = None
            self._send(MachineMeasured(Measurements.model_validate_json(data).profile))

        def failed(text: str) -> None:
            self._measuring = None
            self._send(MeasuringFailed(text))

        self._measuring = self._long(
            "POST", "measurements/machine", MachineRequest(quick=quick), done, failed
        )

    def stop_measuring(self) -> None:
        """End it; the engine does when we hang up."""
        if self._measuring is not None:
            self._measuring.abort()

    # Changing -------------------------------------------------------------------------------

    def begin_alone(self, values: Mapping[str, Any]) -> None:
        """Keep these settings, then begin in no swarm."""
        self._after_settings(values, lambda: self._change("POST", "setup", None))

    def create_swarm(self, name: str, *, private: bool, values: Mapping[str, Any]) -> None:
        """Keep these settings, then found a swarm."""
        wanted = SwarmCreateRequest(name=name, private=private)
        self._after_settings(values, lambda: self._change_swarm("create", wanted))

    def join_swarm(self, invite: str, values: Mapping[str, Any]) -> None:
        """Keep these settings, then join a swarm."""
        wanted = SwarmJoinRequest(invite=invite)
        self._after_settings(values, lambda: self._change_swarm("join", wanted))

    def leave_swarm(self) -> None:
        """Go back to solo."""
        self._send(ChangeAsked())
        self._change_swarm("leave", None)

    def change_settings(self, values: Mapping[str, Any]) -> None:
        """Change some settings, or none if one of them is wrong."""
        self._after_settings(values, lambda: self._send(ChangeDone()))

    def update(self, action: str) -> None:
        """Look for a new version, install it, or switch to it; the status tells how far it is."""
        self._send(ChangeAsked())
        self._change("POST", f"updates/{action}", None)

    def delete_model(self, name: str) -> None:
        """Remove a model from the disk."""
        self._send(ChangeAsked())

        def done(data: bytes) -> None:
            self._send(KeptModelsArrived(KeptModels.model_validate_json(data)))
            self._send(ChangeDone())

        path = f"models/kept?name={quote(name, safe='')}"
        self._long("DELETE", path, None, done, self._refuse)

    def back_up(self, passphrase: str, keep: Callable[[IdentityBackup], str]) -> None:
        """Fetch the identity under a passphrase; `keep` puts it somewhere and says where.

        An `OSError` of `keep` is told as its failure.
        """
        self._send(ChangeAsked())

        def done(data: bytes) -> None:
            try:
                self._send(ChangeDone(keep(IdentityBackup.model_validate_json(data))))
            except OSError as error:
                text = self.tr("The copy cannot be written ({reason}); choose another folder.")
                self._refuse(text.format(reason=error.strerror))

        self._long(
            "POST", "identity/backup", BackupRequest(passphrase=passphrase), done, self._refuse
        )

    def restore(self, backup: str, passphrase: str, note: str) -> None:
        """Become who a backup was."""
        self._send(ChangeAsked())
        wanted = RestoreRequest(passphrase=passphrase, backup=backup)
        self._change("POST", "identity/restore", wanted, note)

    def refuse(self, text: str) -> None:
        """Show why something was not even asked."""
        self._refuse(text)

    def _after_settings(self, values: Mapping[str, Any], then: Callable[[], None]) -> None:
        self._send(ChangeAsked())
        if not values:
            then()
            return

        def done(data: bytes) -> None:
            self._send(SettingsArrived(Settings.model_validate_json(data)))
            then()

        # Not `call`: in a change of settings, None is the default and must be said.
        body = SettingsChange(values=dict(values)).model_dump_json()
        self._answered(self._api.send("PATCH", f"{SHOAL}/settings", body), done, self._refuse)

    def _change(self, method: str, path: str, body: BaseModel | None, note: str = "") -> None:
        self._long(method, path, body, lambda _data: self._send(ChangeDone(note)), self._refuse)

    def _change_swarm(self, what: str, body: BaseModel | None) -> None:
        def done(data: bytes) -> None:
            self._send(SwarmArrived(SwarmInfo.model_validate_json(data)))
            self._send(ChangeDone())

        self._long("POST", f"swarm/{what}", body, done, self._refuse)

    def _get(self, path: str, answer: type[Any], message: Callable[[Any], SetupMessage]) -> None:
        def done(data: bytes) -> None:
            self._send(message(answer.model_validate_json(data)))

        self._api.call("GET", f"{SHOAL}/{path}", None, done, self._refuse)

    def _long(
        self,
        method: str,
        path: str,
        body: BaseModel | None,
        done: Callable[[bytes], None],
        failed: Callable[[str], None],
    ) -> QNetworkReply | None:
        text = None if body is None else body.model_dump_json()
        reply = self._api.send(method, f"{SHOAL}/{path}", text, limit_s=LONG_S)
        self._answered(reply, done, failed)
        return reply

    def _answered(
        self,
        reply: QNetworkReply | None,
        done: Callable[[bytes], None],
        failed: Callable[[str], None],
    ) -> None:
        if reply is None:
            failed(self.tr("The engine is not ready yet. Try again in a moment."))
            return

        def finished() -> None:
            reply.deleteLater()
            data = bytes(reply.readAll().data())
            if reply.error() is QNetworkReply.NetworkError.NoError:
                done(data)
            else:
                failed(failure_text(reply, data, self.tr))

        reply.finished.connect(finished)

    def _send(self, message: SetupMessage) -> None:
        self.message.emit(message)

    def _refuse(self, text: str) -> None:
        self._send(ChangeFailed(text))
