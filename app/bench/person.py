"""Somebody who uses the app while it is measured: one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.application import Application
from app.bench.stalls import StallWatch
from app.chat_state import Answering, Chat
from app.store import Store
from app.tray import Tray
from app.wiring.batch import BatchWiring
from app.wiring.chat import ChatWiring
from engine.core.clock import SystemClock
from engine.localapi.jobs import JobInfo, JobState

LOOK_EVERY_MS = 20
TURN_PAGE_S = 0.4
READY_LIMIT_S = 120.0
LIMIT_S = 60.0
ANSWER_TOKENS = 16
"""Of each row of the batch."""
QUESTION = "How do fish find their way in the dark?"
Part = TypeVar("Part", bound=QObject)


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """Wait for something."""

    seen: Callable[[], bool]
    what: str
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, and for how long."""

    launch_only: bool = False
    idle_s: float = 30.0
    stream_s: float = 20.0
    batch_s: float = 20.0
    settle_s: float = 3.0
    """Before and after what is watched."""
    rows_file: Path = field(default_factory=Path)


class Person(QObject):
    """Goes through the scenes of a measurement, then quits.

    Args:
        application: The running app.
        plan: What to do.
        tell: Called with a scene's name and its facts as it happens.
    """

    def __init__(
        self, application: Application, plan: Plan, tell: Callable[[str, dict[str, Any]], None]
    ) -> None:
        super().__init__(application)
        self._application = application
        self._plan = plan
        self._tell = tell
        self._clock = SystemClock()
        self._store = _part(application, Store)
        self._chat = _part(application, ChatWiring)
        self._batches = _part(application, BatchWiring)
        self._tray = _part(application, Tray)
        self._watch = StallWatch(self)
        self._scenes = self._shown() if plan.launch_only else self._everything()
        self._awaited: Until | None = None
        self._limit_s = 0.0
        self._look = QTimer(self, interval=LOOK_EVERY_MS)
        self._look.timeout.connect(self._on_look)
        self.failed = ""
        """Why it could not go on; empty while it does."""

    def begin(self) -> None:
        """Begin with what the launch shows."""
        QTimer.singleShot(0, self._go_on)

    def _go_on(self) -> None:
        step = next(self._scenes, None)
        if step is None:
            self._application.quit()
        elif isinstance(step, Rest):
            QTimer.singleShot(round(step.seconds * 1000), self._go_on)
        else:
            self._awaited = step
            self._limit_s = self._clock.monotonic_s() + step.limit_s
            self._look.start()

    def _on_look(self) -> None:
        assert self._awaited is not None
        if self._awaited.seen():
            self._look.stop()
            self._go_on()
        elif self._clock.monotonic_s() > self._limit_s:
            self._look.stop()
            self.failed = f"{self._awaited.what} did not come within {self._awaited.limit_s:g} s."
            self._application.quit()

    # Scenes -----------------------------------------------------------------------------------

    def _everything(self) -> Iterator[Rest | Until]:
        yield from self._shown()
        yield Until(self._is_ready, "An engine that answers", READY_LIMIT_S)
        yield from self._idle("idle")
        yield from self._opening()
        yield from self._streaming()
        yield from self._batch()
        yield from self._idle("idle-windows")

    def _shown(self) -> Iterator[Rest | Until]:
        yield Until(self._is_shown, "A tray icon or a window")
        surface = "tray" if self._tray.is_shown else "window"
        platform = QApplication.platformName()
        at_s = self._clock.monotonic_s()
        self._tell("shown", {"at_s": at_s, "surface": surface, "platform": platform})

    def _idle(self, scene: str) -> Iterator[Rest | Until]:
        yield Rest(self._plan.settle_s)
        self._tell(f"{scene}-begins", {})
        yield Rest(self._plan.idle_s)
        self._tell(scene, {})

    def _opening(self) -> Iterator[Rest | Until]:
        self._watch.begin()
        self._chat.bring_up()
        yield Until(lambda: bool(self._store.state.chats.listed), "The list of conversations")
        yield Rest(self._plan.settle_s)
        self._tell("window", {"stalls": self._watch.end().model_dump()})
        window = self._chat.window
        assert window is not None
        self._watch.begin()
        clicked_s = self._clock.monotonic_s()
        window.sidebar.chosen.emit(self._store.state.chats.listed[0].id)
        yield Until(self._shows_the_newest, "The conversation")
        open_s = self._clock.monotonic_s() - clicked_s
        yield Rest(self._plan.settle_s)
        self._tell("open", {"open_s": open_s, "stalls": self._watch.end().model_dump()})

    def _streaming(self) -> Iterator[Rest | Until]:
        window = self._chat.window
        assert window is not None
        window.composer.edit.setPlainText(QUESTION)
        self._watch.begin()
        window.composer.button.click()
        yield Until(lambda: self._open.answering is Answering.STREAMING, "An answer")
        yield Rest(self._plan.stream_s)
        stalls = self._watch.end()
        newest = self._open.newest
        tokens = newest.tokens if newest is not None else 0
        self._tell("stream", {"tokens": tokens, "stalls": stalls.model_dump()})
        window.composer.button.click()
        yield Until(lambda: self._open.answering is Answering.NOT, "The end of the answer")

    def _batch(self) -> Iterator[Rest | Until]:
        self._batches.bring_up()
        window = self._batches.window
        assert window is not None
        form = window.form
        yield Rest(self._plan.settle_s)
        self._watch.begin()
        form.tokens.setValue(ANSWER_TOKENS)
        form.take_file(str(self._plan.rows_file))
        yield Until(form.start.isEnabled, "The first rows of the file")
        form.start.click()
        yield Until(self._runs, "The batch", READY_LIMIT_S)
        ends_s = self._clock.monotonic_s() + self._plan.batch_s
        bar = window.page.rows.verticalScrollBar()
        while self._clock.monotonic_s() < ends_s:
            yield Rest(TURN_PAGE_S)
            bar.setValue((bar.value() + bar.pageStep()) % max(bar.maximum(), 1))
        stalls, job = self._watch.end(), self._job()
        assert job is not None
        facts = {"rows": job.total_rows, "rows_done": job.done_rows}
        self._tell("batch", facts | {"stalls": stalls.model_dump()})
        window.page.ordered.emit(job.id, "cancel")
        yield Until(lambda: not self._runs(), "The end of the batch")

    # What is seen -----------------------------------------------------------------------------

    @property
    def _open(self) -> Chat:
        return self._store.state.chats.open

    def _is_shown(self) -> bool:
        windows = QApplication.topLevelWidgets()
        return self._tray.is_shown or any(one.isVisible() and one.isWindow() for one in windows)

    def _is_ready(self) -> bool:
        state = self._store.state
        return state.linked and state.status is not None and state.status.can_chat

    def _shows_the_newest(self) -> bool:
        window, newest = self._chat.window, self._open.newest
        cards = window.transcript.cards() if window is not None else ()
        return newest is not None and bool(cards) and cards[-1].message.id == newest.id

    def _job(self) -> JobInfo | None:
        batches = self._store.state.batches
        return next((job for job in batches.jobs if job.id == batches.chosen), None)

    def _runs(self) -> bool:
        job = self._job()
        return job is not None and job.state is JobState.RUNNING


def _part(application: Application, kind: type[Part]) -> Part:
    found = application.findChild(kind)
    assert isinstance(found, kind)
    return found
