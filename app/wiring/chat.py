"""What happens when somebody uses the chat window."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog

from app.chat_messages import (
    ChatBegun,
    ChatRefused,
    ChatSettingsChosen,
    ChatsSought,
    UndoExpired,
)
from app.chat_presenters import chat_view, sidebar_view
from app.chat_state import Answering, Chat
from app.engine_link.chats import ChatLink
from app.engine_link.models import ModelLink
from app.model_presenters import models_view
from app.settings import Settings
from app.state import AppState
from app.store import Store
from app.windows.chat import ChatWindow
from app.windows.model_picker import ModelPicker
from engine.localapi.chats import (
    AnswerRequest,
    Attachment,
    ChatChange,
    ChatSettings,
    Message,
    NewMessage,
    Speaker,
)

UNDO_S = 12.0
"""How long the window offers to bring a deleted conversation back; the trash keeps it a month."""
COUNT_AFTER_MS = 400
"""Tokens of a draft are counted when the typing rests."""


class ChatWiring(QObject):
    """The chat window, built when it is first wanted.

    Signals:
        resume_wanted: End the pause.
        start_wanted: Start the engine again.
        closed: The window was closed.
    """

    resume_wanted = Signal()
    start_wanted = Signal()
    closed = Signal()

    def __init__(
        self,
        store: Store,
        link: ChatLink,
        models: ModelLink,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._link = link
        self._models = models
        self._settings = settings
        self.window: ChatWindow | None = None
        self._picker: ModelPicker | None = None
        self._was_linked = False
        self._undo_ends = QTimer(self, singleShot=True, interval=int(UNDO_S * 1000))
        self._undo_ends.timeout.connect(lambda: store.dispatch(UndoExpired()))
        self._draft: tuple[str, ...] = ()
        self._count_later = QTimer(self, singleShot=True, interval=COUNT_AFTER_MS)
        self._count_later.timeout.connect(lambda: link.count(self._draft))
        for resource in (link, models):
            resource.message.connect(store.dispatch)
        store.changed.connect(self._on_changed)

    def bring_up(self) -> None:
        """Show the window before all others."""
        if self.window is None:
            self.window = self._build()
            if self._store.state.linked:
                self._refresh()
        self.draw(self._store.state, datetime.now().astimezone())
        self.window.bring_up()

    def draw(self, state: AppState, now: datetime) -> None:
        """Draw the window, if there is one."""
        if self._picker is not None and self._picker.isVisible():
            self._picker.show_view(models_view(state.chats.catalogue, self.tr))
        if self.window is not None:
            self.window.show_view(
                chat_view(state, now, self.tr), sidebar_view(state.chats, now, self.tr)
            )

    @property
    def _chat(self) -> Chat:
        return self._store.state.chats.open

    def _on_changed(self, state: AppState) -> None:
        if state.linked and not self._was_linked and self.window is not None:
            self._was_linked = True
            self._refresh()
        self._was_linked = state.linked
        if state.chats.undo is None:
            self._undo_ends.stop()

    def _refresh(self) -> None:
        """Fetch what is shown: an engine has come, or come back."""
        self._link.list(self._store.state.chats.query)
        self._link.presets()
        self._models.list()
        self._link.count(self._draft)
        if self._chat.id is not None:
            self._link.open(self._chat.id)

    def _build(self) -> ChatWindow:
        window = ChatWindow(self._settings)
        window.asked.connect(self._ask)
        window.stop_wanted.connect(self._stop)
        window.retry_wanted.connect(self._retry)
        window.clear_wanted.connect(self._begin)
        window.draft_changed.connect(self._on_draft)
        window.resume_wanted.connect(self.resume_wanted)
        window.start_wanted.connect(self.start_wanted)
        window.closed.connect(self.closed)
        header = window.header
        header.delete_wanted.connect(lambda: self._delete(self._chat.id))
        header.models_wanted.connect(self._open_models)
        header.exported.connect(lambda form: self._export(self._chat.id, form))
        sidebar = window.sidebar
        sidebar.chosen.connect(self._open)
        sidebar.sought.connect(self._seek)
        sidebar.more_wanted.connect(
            lambda after: self._link.list(self._store.state.chats.query, after)
        )
        sidebar.renamed.connect(
            lambda chat, title: self._link.change(chat, ChatChange(title=title[:200]))
        )
        sidebar.delete_wanted.connect(self._delete)
        sidebar.exported.connect(self._export)
        sidebar.undo_wanted.connect(self._undo)
        window.panel.changed.connect(self._choose)
        window.panel.preset_kept.connect(self._link.put_preset)
        window.panel.preset_dropped.connect(self._link.delete_preset)
        transcript = window.transcript
        transcript.older_wanted.connect(self._older)
        transcript.again_wanted.connect(self._again)
        transcript.continue_wanted.connect(self._go_on)
        transcript.branch_wanted.connect(self._show_branch)
        return window

    def _open_models(self) -> None:
        if self._picker is None:
            self._picker = ModelPicker(self.window)
            self._picker.chosen.connect(self._models.choose)
        self._models.list()
        self._picker.show_view(models_view(self._store.state.chats.catalogue, self.tr))
        self._picker.open()

    def _ask(self, text: str, files: tuple[Attachment, ...], edited: Message | None) -> None:
        chat = self._chat
        parent = (chat.turns[-1].id if chat.turns else None) if edited is None else edited.parent
        said = NewMessage(
            parent=parent,
            text=text,
            attachments=files,
            attachments_of=None if edited is None else edited.id,
        )
        self._request(AnswerRequest(say=said))

    def _again(self, answer: Message) -> None:
        self._request(AnswerRequest(again=answer.parent))

    def _go_on(self, answer: Message) -> None:
        self._request(AnswerRequest(go_on=answer.id))

    def _retry(self) -> None:
        newest = self._chat.newest
        if newest is not None and newest.speaker is Speaker.ASSISTANT:
            self._again(newest)

    def _request(self, wanted: AnswerRequest) -> None:
        if self._chat.answering is not Answering.NOT or self.window is None:
            return
        chosen = self.window.panel.take_pending()
        if chosen is not None:
            self._store.dispatch(ChatSettingsChosen(chosen))
        chat = self._chat

        def ask() -> None:
            self._link.ask(chat.id, chat.settings, wanted)

        if chosen is not None and chat.id is not None:
            self._link.change(chat.id, _change(chosen), then=ask)
        else:
            ask()

    def _choose(self, settings: ChatSettings) -> None:
        self._store.dispatch(ChatSettingsChosen(settings))
        if self._chat.id is not None:
            self._link.change(self._chat.id, _change(settings))

    def _stop(self) -> None:
        if self._chat.id is not None and self._chat.answering is not Answering.NOT:
            self._link.stop(self._chat.id)

    def _begin(self) -> None:
        self._link.let_go()
        self._store.dispatch(ChatBegun())

    def _open(self, chat: int) -> None:
        if chat != self._chat.id:
            self._link.open(chat)

    def _older(self) -> None:
        chat = self._chat
        if chat.id is not None and chat.turns:
            self._link.older(chat.id, chat.turns[0].id)

    def _show_branch(self, through: int) -> None:
        if self._chat.id is not None and self._chat.answering is Answering.NOT:
            self._link.show(self._chat.id, through)

    def _seek(self, query: str) -> None:
        if query != self._store.state.chats.query:
            self._store.dispatch(ChatsSought(query))
            self._link.list(query)

    def _delete(self, chat: int | None) -> None:
        if chat is not None:
            if chat == self._chat.id:
                self._link.let_go()
            self._link.delete(chat)
            self._undo_ends.start()

    def _undo(self) -> None:
        undo = self._store.state.chats.undo
        if undo is not None:
            self._link.restore(undo.id)

    def _export(self, chat: int | None, form: str) -> None:
        if chat is None or self.window is None:
            return
        ending = "md" if form == "markdown" else "json"
        title = next(
            (known.title for known in self._store.state.chats.listed if known.id == chat), ""
        )
        name = "".join(letter for letter in title if letter.isalnum() or letter in " -_").strip()
        dialog = QFileDialog(self.window, self.tr("Export the chat"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ending)
        dialog.selectFile(f"{name or 'chat'}.{ending}")
        dialog.fileSelected.connect(
            lambda path: self._link.export(chat, form, lambda data: self._save(Path(path), data))
        )
        dialog.open()

    def _save(self, path: Path, data: bytes) -> None:
        try:
            path.write_bytes(data)
        except OSError as error:
            self._store.dispatch(
                ChatRefused(
                    self.tr("{path} cannot be written ({reason}); choose another place.").format(
                        path=path, reason=error.strerror
                    )
                )
            )

    def _on_draft(self, texts: tuple[str, ...]) -> None:
        self._draft = texts
        self._count_later.start()


def _change(settings: ChatSettings) -> ChatChange:
    return ChatChange(system_prompt=settings.system_prompt, sampling=settings.sampling)
