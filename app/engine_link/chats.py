"""Conversations: the list, the open one, and the answer that is being written in it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QNetworkReply

from app.chat_messages import (
    AnswerAsked,
    AnswerBegun,
    AnswerEnded,
    AnswerGrew,
    AnswerLost,
    ChatDeleted,
    ChatMessage,
    ChatNotOpened,
    ChatOpened,
    ChatOpening,
    ChatRefused,
    ChatRestored,
    ChatSettled,
    ChatsListed,
    ChatsNotListed,
    DraftCounted,
    OlderArrived,
    OlderMissing,
    OlderWanted,
    PresetsListed,
)
from app.engine_link.api import Api, failure_text, status_code
from app.sse import EventReader
from engine.core.clock import Clock
from engine.localapi.chats import (
    AnswerEvent,
    AnswerRequest,
    ChatChange,
    ChatInfo,
    ChatList,
    ChatSettings,
    CountRequest,
    MessagePage,
    PresetList,
    PresetSettings,
    TokenCount,
)

LIST_PAGE = 60
FIRST_PAGE = 30
OLDER_PAGE = 40
CHATS = "/shoal/v1/chats"
PRESETS = "/shoal/v1/presets"


class ChatLink(QObject):
    """What the app asks of the engine about conversations.

    Signals:
        message: An `app.chat_messages.ChatMessage` for the store.
    """

    message = Signal(object)

    def __init__(self, api: Api, clock: Clock, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._clock = clock
        self._stream: _AnswerStream | None = None

    def list(self, query: str, after: int | None = None) -> None:
        """Fetch the conversations in which `query` is found, or those that follow `after`."""
        path = f"{CHATS}?limit={LIST_PAGE}&query={quote(query, safe='')}"
        if after is not None:
            path += f"&after={after}"

        def done(data: bytes) -> None:
            self._send(ChatsListed(query, after, ChatList.model_validate_json(data)))

        self._api.call("GET", path, None, done, lambda text: self._send(ChatsNotListed(text)))

    def open(self, chat: int) -> None:
        """Fetch a conversation and its newest messages, and follow an answer under way."""
        self.let_go()
        self._send(ChatOpening(chat))

        def failed(text: str) -> None:
            self._send(ChatNotOpened(chat, text))

        def described(data: bytes) -> None:
            info = ChatInfo.model_validate_json(data)
            path = f"{CHATS}/{chat}/messages?limit={FIRST_PAGE}"
            self._api.call("GET", path, None, lambda page: arrived(info, page), failed)

        def arrived(info: ChatInfo, data: bytes) -> None:
            page = MessagePage.model_validate_json(data)
            self._send(ChatOpened(info, page))
            if self._stream is None and page.messages and page.messages[-1].ending is None:
                self._follow(chat)

        self._api.call("GET", f"{CHATS}/{chat}", None, described, failed)

    def older(self, chat: int, before: int) -> None:
        """Fetch messages before one."""
        self._send(OlderWanted(chat))
        path = f"{CHATS}/{chat}/messages?limit={OLDER_PAGE}&before={before}"

        def done(data: bytes) -> None:
            self._send(OlderArrived(chat, MessagePage.model_validate_json(data)))

        self._api.call("GET", path, None, done, lambda _text: self._send(OlderMissing(chat)))

    def ask(self, chat: int | None, settings: ChatSettings, wanted: AnswerRequest) -> None:
        """Have something answered, in a new conversation if there is none."""
        self.let_go()
        self._send(AnswerAsked())

        def begun(data: bytes) -> None:
            info = ChatInfo.model_validate_json(data)
            self._send(ChatSettled(info))
            self._answer(info.id, wanted)

        if chat is None:
            self._api.call(
                "POST", CHATS, settings, begun, lambda text: self._send(AnswerLost(text))
            )
        else:
            self._answer(chat, wanted)

    def stop(self, chat: int) -> None:
        """End the answer under way; its stream tells the end."""
        self._api.call("POST", f"{CHATS}/{chat}/stop", None, lambda _data: None, self._refuse)

    def let_go(self) -> None:
        """Follow no answer any longer; the engine writes it to its end."""
        if self._stream is not None:
            self._stream.abandon()
            self._stream = None

    def change(self, chat: int, wanted: ChatChange, then: Callable[[], None] | None = None) -> None:
        """Give a conversation another title or other settings, and then go on with `then`."""

        def done(data: bytes) -> None:
            self._settle(data)
            if then is not None:
                then()

        self._api.call("PATCH", f"{CHATS}/{chat}", wanted, done, self._refuse)

    def show(self, chat: int, through: int) -> None:
        """Show the branch that leads through a message."""
        self._api.call(
            "PATCH",
            f"{CHATS}/{chat}",
            ChatChange(show=through),
            lambda _data: self.open(chat),
            self._refuse,
        )

    def delete(self, chat: int) -> None:
        """Put a conversation into the trash."""

        def done(data: bytes) -> None:
            self._send(ChatDeleted(ChatInfo.model_validate_json(data)))

        self._api.call("DELETE", f"{CHATS}/{chat}", None, done, self._refuse)

    def restore(self, chat: int) -> None:
        """Take it out again."""

        def done(data: bytes) -> None:
            self._send(ChatRestored(ChatInfo.model_validate_json(data)))

        self._api.call("POST", f"{CHATS}/{chat}/restore", None, done, self._refuse)

    def export(self, chat: int, form: str, done: Callable[[bytes], None]) -> None:
        """Fetch a conversation as a text; `form` is `markdown` or `json`."""
        self._api.call("GET", f"{CHATS}/{chat}/export?format={form}", None, done, self._refuse)

    def presets(self) -> None:
        """Fetch the ways to begin."""
        self._api.call("GET", PRESETS, None, self._list_presets, lambda _text: None)

    def put_preset(self, name: str, settings: PresetSettings) -> None:
        """Keep one."""
        path = f"{PRESETS}/{quote(name, safe='')}"
        self._api.call("PUT", path, settings, self._list_presets, self._refuse)

    def delete_preset(self, name: str) -> None:
        """Forget one."""
        path = f"{PRESETS}/{quote(name, safe='')}"
        self._api.call("DELETE", path, None, self._list_presets, self._refuse)

    def count(self, texts: tuple[str, ...]) -> None:
        """Count the tokens of what lies in the composer."""

        def done(data: bytes) -> None:
            count = TokenCount.model_validate_json(data)
            self._send(DraftCounted(sum(count.counts), count.context_tokens))

        # Without a model nothing can be counted, and the window says elsewhere why.
        self._api.call(
            "POST", "/shoal/v1/tokens", CountRequest(texts=texts), done, lambda _text: None
        )

    def _send(self, message: ChatMessage) -> None:
        self.message.emit(message)

    def _refuse(self, text: str) -> None:
        self._send(ChatRefused(text))

    def _settle(self, data: bytes) -> None:
        self._send(ChatSettled(ChatInfo.model_validate_json(data)))

    def _list_presets(self, data: bytes) -> None:
        self._send(PresetsListed(PresetList.model_validate_json(data).presets))

    def _answer(self, chat: int, wanted: AnswerRequest) -> None:
        body = wanted.model_dump_json(exclude_none=True)
        self._open_stream(chat, self._api.send("POST", f"{CHATS}/{chat}/answer", body))

    def _follow(self, chat: int) -> None:
        self._open_stream(chat, self._api.send("GET", f"{CHATS}/{chat}/answer"))

    def _open_stream(self, chat: int, reply: QNetworkReply | None) -> None:
        if reply is None:
            self._send(AnswerLost(self.tr("The engine is not ready yet. Try again in a moment.")))
            return
        self._stream = _AnswerStream(chat, reply, self)

    def on_event(self, chat: int, event: AnswerEvent) -> None:
        """What the stream of an answer tells."""
        if event.kind == "begun" and event.answer is not None:
            self._send(AnswerBegun(chat, event.question, event.answer))
            if event.question is not None and event.question.parent is None:
                # The engine has named it after its first message.
                self._api.call("GET", f"{CHATS}/{chat}", None, self._settle, self._refuse)
        elif event.kind == "text":
            now_s = self._clock.monotonic_s()
            self._send(AnswerGrew(chat, event.text, event.tokens, now_s, event.drafting))
        elif event.kind == "ended" and event.answer is not None:
            self._stream = None
            self._send(AnswerEnded(chat, event.answer))

    def on_broken(self, text: str) -> None:
        """The stream ended before the answer."""
        self._stream = None
        self._send(AnswerLost(text))


class _AnswerStream(QObject):
    """One answer, from request to end."""

    def __init__(self, chat: int, reply: QNetworkReply, link: ChatLink) -> None:
        super().__init__(link)
        self._chat = chat
        self._reply = reply
        self._link = link
        self._reader = EventReader()
        self._over = False
        reply.readyRead.connect(self._on_data)
        reply.finished.connect(self._on_finished)

    def abandon(self) -> None:
        """Close the connection and say nothing more."""
        self._over = True
        self._reply.abort()

    def _on_data(self) -> None:
        if self._over or status_code(self._reply) != 200:
            return
        for data in self._reader.feed(bytes(self._reply.readAll().data())):
            if self._over:
                return
            try:
                event = AnswerEvent.model_validate_json(data)
            except ValidationError:
                self._end(self.tr("The engine sent an answer that cannot be read."))
                self._reply.abort()
                return
            self._over = event.kind == "ended"
            self._link.on_event(self._chat, event)

    def _end(self, text: str) -> None:
        if not self._over:
            self._over = True
            self._link.on_broken(text)

    def _on_finished(self) -> None:
        self._reply.deleteLater()
        self.deleteLater()
        if status_code(self._reply) == 200:
            self._end(self.tr("The connection broke before the answer ended."))
        else:
            body = bytes(self._reply.readAll().data())
            self._end(failure_text(self._reply, body, self.tr))
