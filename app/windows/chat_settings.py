"""Beside the conversation: what the model is told first, and how its answers are drawn."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.chat_presenters import ChatView
from engine.localapi.chats import ChatSettings, Preset, PresetSettings, Sampling

WIDTH_PX = 290
TELL_AFTER_MS = 500
"""Settings are told when the hand rests."""
PROMPT_LINES = 7
DIGITS = 8
SCROLL_BAR_PX = 14


class ChatSettingsPanel(QScrollArea):
    """Draws the settings of a `ChatView` and tells what the person makes of them.

    Signals:
        changed: The `ChatSettings` as they shall be.
        preset_kept: A name, and the `PresetSettings` that it shall stand for.
        preset_dropped: A name that shall be forgotten.
    """

    changed = Signal(object)
    preset_kept = Signal(str, object)
    preset_dropped = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setWidgetResizable(True)
        self.setMinimumWidth(220)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Settings of this chat"))
        self._chat: int | None = None
        self._settings: ChatSettings | None = None
        self._presets: tuple[Preset, ...] = ()
        self._filling = False
        self.prompt = QPlainTextEdit()
        self.prompt.setObjectName("field")
        self.prompt.setTabChangesFocus(True)
        self.prompt.setPlaceholderText(self.tr("You are a helpful assistant."))
        self.prompt.setAccessibleName(self.tr("System prompt"))
        self.prompt.setFixedHeight(self.prompt.fontMetrics().lineSpacing() * PROMPT_LINES + 20)
        self.preset = QComboBox()
        self.preset.setAccessibleName(self.tr("Preset"))
        self.keep = QPushButton(self.tr("Keep as preset…"))
        self.keep.setAccessibleName(self.tr("Keep these settings as a preset"))
        self.drop = QPushButton(self.tr("Forget"))
        self.drop.setAccessibleName(self.tr("Forget the chosen preset"))
        self.numbers = {
            "temperature": self._fraction(0.0, 2.0, 0.05, 0.7, self.tr("Temperature")),
            "top_p": self._fraction(0.0, 1.0, 0.05, 0.95, self.tr("Top p")),
            "top_k": self._whole(1, 1_000_000, 40, self.tr("Top k")),
            "min_p": self._fraction(0.0, 1.0, 0.01, 0.05, self.tr("Min p")),
            "repetition_penalty": self._fraction(
                0.5, 2.0, 0.05, 1.1, self.tr("Repetition penalty")
            ),
            "max_tokens": self._whole(1, 1_000_000, 1024, self.tr("Longest answer")),
            "seed": self._whole(0, 2_147_483_647, 1, self.tr("Seed")),
        }
        self._tell_later = QTimer(self, singleShot=True, interval=TELL_AFTER_MS)
        self._tell_later.timeout.connect(self._tell)
        self._lay_out()
        self._list_presets()
        self.prompt.textChanged.connect(self._on_edited)
        self.preset.activated.connect(self._on_preset)
        self.keep.clicked.connect(self._keep)
        self.drop.clicked.connect(lambda: self.preset_dropped.emit(self.preset.currentText()))

    def show_view(self, view: ChatView) -> None:
        """Draw the settings of `view`; what is being edited is not overwritten."""
        if view.presets != self._presets:
            self._presets = view.presets
            self._list_presets()
        switched = view.chat != self._chat and not (self._chat is None and view.said)
        self._chat = view.chat
        if view.settings == self._settings:
            return
        if self._tell_later.isActive() and not switched:
            return
        self._tell_later.stop()
        self._fill(view.settings)

    def take_pending(self) -> ChatSettings | None:
        """What has been edited and not been told yet: a question is about to be asked."""
        if not self._tell_later.isActive():
            return None
        self._tell_later.stop()
        wanted = self._wanted()
        if wanted == self._settings:
            return None
        self._settings = wanted
        return wanted

    def showEvent(self, event: QShowEvent) -> None:
        """Be as wide as the words need in the font that there is."""
        super().showEvent(event)
        self.setMinimumWidth(self._page.minimumSizeHint().width() + SCROLL_BAR_PX)

    def _lay_out(self) -> None:
        page = self._page = QWidget()
        page.setObjectName("sidebar")
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 14, 14, 14)
        column.setSpacing(8)
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.keep, 1)
        row.addWidget(self.drop)
        for label, part in (
            (self.tr("&Preset"), self.preset),
            (self.tr("&System prompt"), self.prompt),
        ):
            title = QLabel(label)
            title.setBuddy(part)
            column.addWidget(title)
            column.addWidget(part)
            if part is self.preset:
                column.addLayout(row)
        title = QLabel(self.tr("Sampling"))
        title.setObjectName("title")
        hint = QLabel(self.tr("What is not ticked is as the model's makers recommend."))
        hint.setWordWrap(True)
        hint.setObjectName("small")
        column.addSpacing(6)
        column.addWidget(title)
        column.addWidget(hint)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        form.setFormAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        form.setVerticalSpacing(6)
        for number in self.numbers.values():
            form.addRow(number.wanted, number.field)
        column.addLayout(form)
        column.addStretch(1)
        self.setWidget(page)

    def _fraction(self, low: float, high: float, step: float, usual: float, name: str) -> _Number:
        field = QDoubleSpinBox(minimum=low, maximum=high, singleStep=step, decimals=2, value=usual)
        return _Number(field, name, self._on_edited, self)

    def _whole(self, low: int, high: int, usual: int, name: str) -> _Number:
        field = QSpinBox(minimum=low, maximum=high, value=usual)
        return _Number(field, name, self._on_edited, self)

    def _fill(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._filling = True
        if self.prompt.toPlainText() != settings.system_prompt:
            self.prompt.setPlainText(settings.system_prompt)
        for name, number in self.numbers.items():
            number.show_value(getattr(settings.sampling, name))
        self._filling = False
        self._name_preset()

    def _list_presets(self) -> None:
        self.preset.clear()
        self.preset.addItem(self.tr("None"))
        self.preset.addItems([preset.name for preset in self._presets])
        self._name_preset()

    def _name_preset(self) -> None:
        """Show the preset that the settings are, if they are one."""
        now = self._wanted()
        at = next(
            (
                number
                for number, preset in enumerate(self._presets, 1)
                if (preset.system_prompt, preset.sampling) == (now.system_prompt, now.sampling)
            ),
            0,
        )
        self.preset.setCurrentIndex(at)
        self.drop.setEnabled(at > 0)

    def _on_preset(self, at: int) -> None:
        preset = self._presets[at - 1] if at else PresetSettings()
        title = self._settings.title if self._settings else ""
        chosen = ChatSettings(
            title=title, system_prompt=preset.system_prompt, sampling=preset.sampling
        )
        self._tell_later.stop()
        self._fill(chosen)
        self.changed.emit(chosen)

    def _on_edited(self) -> None:
        if not self._filling:
            self._tell_later.start()

    def _tell(self) -> None:
        wanted = self._wanted()
        self._name_preset()
        if wanted != self._settings:
            self._settings = wanted
            self.changed.emit(wanted)

    def _wanted(self) -> ChatSettings:
        values = {name: number.value() for name, number in self.numbers.items()}
        return ChatSettings(
            title=self._settings.title if self._settings else "",
            system_prompt=self.prompt.toPlainText(),
            sampling=Sampling.model_validate(values),
        )

    def _keep(self) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle(self.tr("Keep as preset"))
        dialog.setLabelText(self.tr("Name"))
        dialog.setTextValue(self.preset.currentText() if self.preset.currentIndex() > 0 else "")
        dialog.textValueSelected.connect(self._keep_as)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _keep_as(self, name: str) -> None:
        wanted = self._wanted()
        if name.strip():
            self.preset_kept.emit(
                name.strip()[:100],
                PresetSettings(system_prompt=wanted.system_prompt, sampling=wanted.sampling),
            )


class _Number:
    """A tick and a number: without the tick there is no wish."""

    def __init__(
        self,
        field: QSpinBox | QDoubleSpinBox,
        name: str,
        on_edited: Callable[[], None],
        parent: QWidget,
    ) -> None:
        self.field = field
        field.setAccessibleName(name)
        field.setFixedWidth(field.fontMetrics().horizontalAdvance("0" * DIGITS) + 26)
        field.setEnabled(False)
        field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel scrolls the panel
        self.wanted = QCheckBox(name, parent)
        self.wanted.setAccessibleName(parent.tr("Choose: {name}").format(name=name))
        self.wanted.toggled.connect(field.setEnabled)
        self.wanted.toggled.connect(lambda _on: on_edited())
        field.valueChanged.connect(lambda _value: on_edited())

    def value(self) -> float | None:
        """What is wished."""
        return self.field.value() if self.wanted.isChecked() else None

    def show_value(self, value: float | None) -> None:
        """Show a wish, or that there is none."""
        self.wanted.setChecked(value is not None)
        if isinstance(self.field, QSpinBox):
            self.field.setValue(int(value if value is not None else self.field.value()))
        elif value is not None:
            self.field.setValue(value)
