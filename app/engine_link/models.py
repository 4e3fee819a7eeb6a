"""The models that Shoal offers, and which one is used."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat_messages import ChatRefused, ModelsListed
from app.engine_link.api import Api
from engine.localapi.catalogue import Catalogue
from engine.localapi.settings import SettingsChange


class ModelLink(QObject):
    """What the app asks of the engine about models.

    Signals:
        message: An `app.chat_messages.ChatMessage` for the store.
    """

    message = Signal(object)

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api

    def list(self) -> None:
        """Fetch the models and what they need; without an engine there is nothing to tell."""

        def done(data: bytes) -> None:
            self.message.emit(ModelsListed(Catalogue.model_validate_json(data)))

        self._api.call("GET", "/shoal/v1/models", None, done, lambda _text: None)

    def choose(self, source: str) -> None:
        """Use another model; the engine fetches it, and the status tells how that goes."""
        self._api.call(
            "PATCH",
            "/shoal/v1/settings",
            SettingsChange(values={"model.source": source}),
            lambda _data: self.list(),
            lambda text: self.message.emit(ChatRefused(text)),
        )
