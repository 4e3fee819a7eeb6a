"""States of the chat, the small window and the picker of models that are worth a look."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.chat_messages import (
    AnswerBegun,
    AnswerEnded,
    AnswerGrew,
    ChatDeleted,
    ChatOpened,
    ChatOpening,
    ChatsListed,
    DraftCounted,
)
from app.chat_presenters import chat_view, sidebar_view
from app.messages import (
    ConnectionLost,
    EngineFound,
    EngineStarting,
    EngineStopped,
    StatusArrived,
)
from app.messages import Message as AppMessage
from app.model_presenters import models_view
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.windows.chat import ChatWindow
from app.windows.home import HomeWindow
from app.windows.model_picker import ModelPicker
from app.windows.top_window import TopWindow
from engine.http.catalogue_routes import Rooms, standing
from engine.localapi.catalogue import Catalogue
from engine.localapi.chats import (
    AttachmentInfo,
    ChatList,
    DraftingInfo,
    Ending,
    Message,
    MessagePage,
)
from engine.localapi.running import Home
from engine.localapi.schema import EngineState, EngineStatus, PipelineStage, Progress
from engine.models.catalogue import catalogue
from tests.support.app_states import after, answer, begun, info, question
from tests.support.desktop.language import tr

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
CONVERSATION = (
    (
        "Why do fish swim in shoals?",
        "Mostly for **safety and saving energy**:\n\n"
        "- **Fewer are caught.** A predator can follow one fish, but a turning shoal is hard to aim "
        "at.\n"
        "- **Many eyes.** Danger is noticed earlier when everyone keeps watch.\n"
        "- **Less effort.** Swimming in a neighbour's wake costs less strength.\n\n"
        "No fish leads. Each one follows a few neighbours, and the shoal turns as one.",
    ),
    (
        "Show me that rule in Python",
        "Each fish turns a little towards the average heading of those near it:\n\n"
        "```python\n"
        "def steer(fish, neighbours, share=0.1):\n"
        "    if not neighbours:\n"
        "        return fish.heading\n"
        "    average = sum(n.heading for n in neighbours) / len(neighbours)\n"
        "    return fish.heading + share * (average - fish.heading)\n"
        "```\n\n"
        "With a small `share` the shoal turns smoothly; with a large one it",
    ),
)

SAMPLING = {"temperature": 0.3, "max_tokens": 512}
FILES = ((), (AttachmentInfo(name="shoal.py", chars=2140),))


def status(**fields: object) -> EngineStatus:
    """A node that holds the middle of a model in a swarm of three."""
    known = {
        "state": EngineState.SERVING,
        "span": (10, 20),
        "model": "SmolLM2-135M-Instruct",
        "num_blocks": 30,
        "peers": 2,
        "sessions": 3,
        "tokens_served": 48_213,
        "tokens_used": 1_904,
        "plan": tuple(
            PipelineStage(peer=f"Qm{i}", start=10 * i, end=10 * i + 10, is_self=i == 1)
            for i in range(3)
        ),
        "swarm": "reef",
        "version": "0.1.0",
        "api_url": "http://127.0.0.1:4000",
        "worker_rss_bytes": 412_000_000,
        "can_chat": True,
    }
    return EngineStatus.model_validate(known | fields)


def page() -> MessagePage:
    """The conversation, its last answer cut off by the person."""
    turns: list[Message] = []
    for number, (said, answered) in enumerate(CONVERSATION):
        at = 2 * number + 1
        edited = (at, 9) if number else (at,)
        parent = at - 1 if number else None
        turns.append(question(at, said, parent, siblings=edited, attachments=FILES[number]))
        turns.append(
            answer(
                at + 1, answered, at, model="starter/SmolLM2-135M-Instruct", tokens=84,
                seconds=5.9, context_tokens=412, ending="stopped" if number else "complete",
            )
        )  # fmt: skip
    return MessagePage(messages=tuple(turns), more=False)


def opened(**fields: object) -> tuple[AppMessage, ...]:
    """The conversation as it is opened, beside others."""
    titles = (
        "Why do fish swim in shoals?", "Tide tables for the harbour", "Letter to the council",
        "Regular expressions, once and for all", "Names for a boat",
    )  # fmt: skip
    chats = ChatList(
        chats=tuple(
            info(at, title, updated_unix_s=NOW.timestamp() - 40_000 * (at - 1), answering=at == 3)
            for at, title in enumerate(titles, 1)
        ),
        more=False,
    )
    shown = info(1, titles[0], **fields)
    return (
        ChatsListed("", None, chats), ChatOpening(1), ChatOpened(shown, page()),
        DraftCounted(0, 8192),
    )  # fmt: skip


def scenes() -> dict[str, AppState]:
    """States worth a look."""
    up = (EngineStarting(), StatusArrived(status()))
    downloading = status(
        state="starting",
        span=None,
        can_chat=False,
        progress=Progress(
            what="Downloading SmolLM2-135M-Instruct", done=58e6, total=138e6, unit="bytes"
        ),
    )
    paused = status(
        state="paused",
        can_chat=False,
        until=NOW.timestamp() + 1500,
        reason="A full-screen game is running.",
        worker_rss_bytes=0,
    )
    no_route = "No node holds blocks 20–29 at the moment. Wait for one to join, then press Retry."
    last = page().messages[-1]
    streaming = AnswerBegun(1, None, last.model_copy(update={"ending": None}))
    more = (" zigzags", " from", " side", " to", " side")
    drafting = DraftingInfo(draft="model", reason="drafts save time", tokens_per_round=2.1)
    growing = tuple(
        AnswerGrew(1, word, 85 + at, at / 14.2, drafting) for at, word in enumerate(more)
    )
    failed = last.model_copy(update={"ending": Ending.FAILED, "failure": no_route})
    stopped = EngineStopped(
        "It ended 5 times in a row. The worker has no memory left; close other programs. "
        "The log is /home/ada/.local/state/shoal/engine.log."
    )
    return {
        "conversation": after(*up, *opened(), streaming, *growing),
        "ended": after(*up, *opened()),
        "empty": after(*up, ChatsListed("", None, ChatList(chats=(), more=False))),
        "waiting": after(*up, *opened(), *begun(11, "And in rivers?", 4)),
        "deleted": after(*up, *opened(), ChatDeleted(info(2, "Tide tables for the harbour"))),
        "starting": after(EngineStarting(), StatusArrived(downloading)),
        "launching": after(EngineStarting()),
        "paused": after(EngineStarting(), StatusArrived(paused), *opened()),
        "failed": after(*up, *opened(), streaming, AnswerEnded(1, failed)),
        "stopped": after(*up, *opened(), stopped),
        "found": after(EngineFound(), StatusArrived(status(state="idle", sessions=0))),
        "local": after(*up, StatusArrived(status(swarm=None)), *opened()),
        "lost": after(*up, ConnectionLost("The engine does not answer.")),
    }


def chat_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The chat in every state, with its settings, and narrow."""
    for scene, state in scenes().items():
        yield from _chat(f"chat-{scene}", state, wanted)
    shown = after(
        EngineFound(),
        StatusArrived(status()),
        *opened(system_prompt="Answer like a harbour master.", sampling=SAMPLING),
    )
    yield from _chat("chat-settings", shown, wanted, width=1280, settings=True)
    yield from _chat("chat-narrow", scenes()["conversation"], wanted, width=560, height=520)


def _chat(
    name: str,
    state: AppState,
    wanted: Callable[[str], bool],
    *,
    width: int = 1080,
    height: int = 760,
    settings: bool = False,
) -> Iterator[tuple[str, QWidget]]:
    if not wanted(name):
        return
    with tempfile.TemporaryDirectory() as folder:
        window = ChatWindow(Settings(Home.under(Path(folder))))
        window.resize(width, height)
        window.show_view(chat_view(state, NOW, tr), sidebar_view(state.chats, NOW, tr))
        window.header.settings.setChecked(settings)
        window.bring_up()
        yield name, window
        window.deleteLater()


def home_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The small window in every state, as GNOME has it."""
    for scene, state in scenes().items():
        if wanted(f"home-{scene}"):
            window = HomeWindow(on_gnome=True)
            window.show_view(overview(state, NOW, tr))
            window.bring_up()
            yield f"home-{scene}", window
            window.deleteLater()


def picker_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The models, as a computer with 4 GB sees them."""
    if not wanted("models"):
        return
    rooms = Rooms("starter", is_solo=True, element_bytes=2, rooms_bytes=(4_000_000_000,))
    models = tuple(standing(entry, rooms) for entry in catalogue().values())
    window = TopWindow()
    window.dress()
    picker = ModelPicker(window)
    picker.show_view(models_view(Catalogue(models=models, can_choose=True, computers=1), tr))
    picker.show()
    yield "models", picker
    window.deleteLater()
