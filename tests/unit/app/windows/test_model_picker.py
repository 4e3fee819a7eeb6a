from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.model_presenters import ModelRow, ModelsView
from app.windows.model_picker import ModelPicker

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def row(source: str, *, is_running: bool = False, can_use: bool = False) -> ModelRow:
    return ModelRow(source, source.upper(), "", "MIT", "", is_running, can_use)


def test_model_that_fits_can_be_used_and_others_not(qtbot: QtBot) -> None:
    picker = ModelPicker()
    qtbot.addWidget(picker)
    rows = (row("a", is_running=True), row("b", can_use=True), row("c"))
    picker.show_view(ModelsView(rows, "A note."))
    picker.show()
    buttons = {button.accessibleName(): button for button in picker.findChildren(QPushButton)}
    assert buttons["Use A"].text() == "In use"
    assert not buttons["Use A"].isEnabled()
    assert not buttons["Use C"].isEnabled()
    with qtbot.waitSignal(picker.chosen) as chosen:
        qtbot.mouseClick(buttons["Use B"], Qt.MouseButton.LeftButton)
    assert chosen.args == ["b"]
