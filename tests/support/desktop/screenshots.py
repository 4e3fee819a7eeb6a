"""Pictures of every window, drawn without a screen: `python -m tests.support.desktop.screenshots`.

Writes those in `resources/screenshots`, which README shows; with `--all FOLDER` every window in
light and dark, for looking at while working on them, if wanted in another `--language` and in a
larger font (`--font-percent 125`).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_SCALE_FACTOR", "1.5")

from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

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
from app.chat_presenters import chat_view, models_view, sidebar_view
from app.locales import LOCALES
from app.messages import (
    ConnectionLost,
    EngineFound,
    EngineStarting,
    EngineStopped,
    StatusArrived,
)
from app.messages import Message as AppMessage
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.windows.chat import ChatWindow
from app.windows.home import HomeWindow
from app.windows.model_picker import ModelPicker
from engine.http.catalogue_routes import Rooms, standing
from engine.localapi.catalogue import Catalogue
from engine.localapi.chats import AttachmentInfo, ChatList, Ending, Message, MessagePage
from engine.localapi.running import Home
from engine.localapi.schema import EngineState, EngineStatus, PipelineStage, Progress
from engine.models.catalogue import catalogue
from tests.support.app_states import after, answer, begun, info, question
from tests.support.desktop.batch_scenes import batch_pictures
from tests.support.desktop.dashboard_scenes import dashboard_pictures
from tests.support.desktop.language import speaking, tr
from tests.support.desktop.setup_scenes import setup_pictures

README_PICTURE = Path(__file__).parents[3] / "resources" / "screenshots" / "chat.png"
FONT_POINTS = 10.0
SETTLE_MS = 600
"""Cards are built one after the other, and colours of code come from beside."""
NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
DARK = {
    QPalette.ColorRole.Window: "#202124",
    QPalette.ColorRole.WindowText: "#e8eaed",
    QPalette.ColorRole.Base: "#1b1c1f",
    QPalette.ColorRole.Text: "#e8eaed",
    QPalette.ColorRole.Button: "#2b2c30",
    QPalette.ColorRole.ButtonText: "#e8eaed",
    QPalette.ColorRole.Link: "#7ab7ff",
    QPalette.ColorRole.PlaceholderText: "#8d9096",
}
LIGHT = {
    QPalette.ColorRole.Window: "#f4f4f5",
    QPalette.ColorRole.WindowText: "#1f2328",
    QPalette.ColorRole.Base: "#ffffff",
    QPalette.ColorRole.Text: "#1f2328",
    QPalette.ColorRole.Button: "#f4f4f5",
    QPalette.ColorRole.ButtonText: "#1f2328",
    QPalette.ColorRole.Link: "#1f6fc4",
    QPalette.ColorRole.PlaceholderText: "#8a9099",
}
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
    growing = tuple(AnswerGrew(1, word, 85 + at, at / 14.2) for at, word in enumerate(more))
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


def use_palette(colours: dict[QPalette.ColorRole, str]) -> None:
    """Light or dark, whatever this machine prefers."""
    palette = QPalette()
    for role, colour in colours.items():
        palette.setColor(role, QColor(colour))
    muted = QColor(colours[QPalette.ColorRole.PlaceholderText])
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, muted)
    QApplication.setPalette(palette)


def settle() -> None:
    """Let timers and layouts come to rest."""
    QTest.qWait(SETTLE_MS)


@contextmanager
def chat_window(
    state: AppState, *, width: int = 1080, height: int = 760, settings: bool = False
) -> Iterator[ChatWindow]:
    """The chat window in `state`."""
    with tempfile.TemporaryDirectory() as folder:
        window = ChatWindow(Settings(Home.under(Path(folder))))
        window.resize(width, height)
        window.show_view(chat_view(state, NOW, tr), sidebar_view(state.chats, NOW, tr))
        window.header.settings.setChecked(settings)
        window.bring_up()
        yield window
        window.deleteLater()


def chat_windows() -> Iterator[tuple[str, QWidget]]:
    """Every scene of the chat, one window after the other; then the home window's and the picker."""
    for scene, state in scenes().items():
        with chat_window(state) as window:
            yield f"chat-{scene}", window
    shown = after(
        EngineFound(),
        StatusArrived(status()),
        *opened(system_prompt="Answer like a harbour master.", sampling=SAMPLING),
    )
    with chat_window(shown, width=1280, settings=True) as window:
        yield "chat-settings", window
    with chat_window(scenes()["conversation"], width=560, height=520) as window:
        yield "chat-narrow", window
    for scene, state in scenes().items():
        home = HomeWindow(on_gnome=True)
        home.show_view(overview(state, NOW, tr))
        home.bring_up()
        yield f"home-{scene}", home
        home.deleteLater()
    yield "models", _model_picker()


def _model_picker() -> ModelPicker:
    """The picker of models, as a computer with 4 GB sees it."""
    rooms = Rooms("starter", is_solo=True, element_bytes=2, rooms_bytes=(4_000_000_000,))
    models = tuple(standing(entry, rooms) for entry in catalogue().values())
    picker = ModelPicker()
    picker.show_view(models_view(Catalogue(models=models, can_choose=True, computers=1), tr))
    picker.show()
    return picker


def keep_all(folder: Path) -> None:
    """Draw every window in light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, colours in (("light", LIGHT), ("dark", DARK)):
        use_palette(colours)
        dashboard_pictures(folder, name)
        setup_pictures(folder, name)
        batch_pictures(folder, name)
        for scene, window in chat_windows():
            settle()
            window.grab().save(str(folder / f"{scene}-{name}.png"))


def keep_those_of_readme() -> None:
    """Draw what README shows."""
    use_palette(LIGHT)
    README_PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with chat_window(scenes()["conversation"]) as window:
        settle()
        window.grab().save(str(README_PICTURE))
    for name, colours in (("light", LIGHT), ("dark", DARK)):
        use_palette(colours)
        dashboard_pictures(README_PICTURE.parent, name, only=("swarm", "hour"))
        setup_pictures(README_PICTURE.parent, name, only=("first-machine", "settings-limits"))
        batch_pictures(README_PICTURE.parent, name, only=("running",))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", metavar="FOLDER", type=Path)
    parser.add_argument("--language", choices=tuple(LOCALES), default="en")
    parser.add_argument("--font-percent", type=int, default=100)
    options = parser.parse_args()
    qt = QApplication(["shoal"])
    qt.setStyle("Fusion")
    font = QFont("DejaVu Sans")
    font.setPointSizeF(FONT_POINTS * options.font_percent / 100)
    qt.setFont(font)
    with speaking(options.language):
        if options.all is None:
            keep_those_of_readme()
        else:
            keep_all(options.all)


if __name__ == "__main__":
    sys.exit(main())
