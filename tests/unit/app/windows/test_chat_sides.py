"""The chat window's list of conversations, and its settings of one."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.chat_messages import ChatDeleted, ChatOpened, ChatOpening, ChatsListed, PresetsListed
from engine.localapi.chats import ChatList, MessagePage, Preset, Sampling
from tests.support.app_states import answered, info
from tests.support.desktop.shown_chat import ShownChat, button

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def test_conversations_are_found_renamed_deleted_and_brought_back(
    chat: ShownChat, qtbot: QtBot
) -> None:
    chat.hear(ChatsListed("", None, ChatList(chats=(info(1), info(2, "Eels")), more=True)))
    sidebar = chat.window.sidebar
    with qtbot.waitSignal(sidebar.chosen) as chosen:
        sidebar.list.setCurrentIndex(sidebar.model.index(1))
    assert chosen.args == [2]
    with qtbot.waitSignal(sidebar.sought) as sought:
        qtbot.keyClicks(sidebar.search, "herr")
    assert sought.args == ["herr"]
    with qtbot.waitSignal(sidebar.more_wanted) as more:
        sidebar.model.fetchMore(QModelIndex())
    assert more.args == [2]
    with qtbot.waitSignal(sidebar.renamed) as renamed:
        sidebar.model.setData(sidebar.model.index(0), " Shoals ")
    assert renamed.args == [1, "Shoals"]
    chat.hear(ChatDeleted(info(2, "Eels")))
    assert sidebar.model.rowCount() == 1
    with qtbot.waitSignal(sidebar.undo_wanted):
        qtbot.mouseClick(button(chat, "Undo"), Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("key", [Qt.Key.Key_Delete, Qt.Key.Key_Backspace, Qt.Key.Key_D])
def test_no_single_key_deletes_a_conversation(chat: ShownChat, qtbot: QtBot, key: Qt.Key) -> None:
    chat.hear(ChatsListed("", None, ChatList(chats=(info(1), info(2, "Eels")), more=False)))
    sidebar = chat.window.sidebar
    heard: list[int] = []
    sidebar.delete_wanted.connect(heard.append)
    chat.window.header.delete_wanted.connect(lambda: heard.append(0))
    sidebar.list.setCurrentIndex(sidebar.model.index(1))
    for widget in (sidebar.list, sidebar.new, chat.window.composer.edit, chat.window):
        qtbot.keyClick(widget, key)
    assert heard == []
    assert sidebar.model.rowCount() == 2


def test_settings_are_told_when_the_hand_rests_and_unticked_ones_not_at_all(
    chat: ShownChat, qtbot: QtBot
) -> None:
    chat.hear(*answered("Why?", "So"))
    qtbot.mouseClick(button(chat, "Settings"), Qt.MouseButton.LeftButton)
    panel = chat.window.panel
    temperature = panel.numbers["temperature"]
    assert not temperature.field.isEnabled()
    with qtbot.waitSignal(panel.changed) as changed:
        qtbot.keyClicks(panel.prompt, "Be brief.")
        temperature.wanted.click()
        temperature.field.setValue(0.3)
    settings = changed.args[0]
    assert settings.system_prompt == "Be brief."
    assert settings.sampling.model_dump(exclude_none=True) == {"temperature": 0.3}
    panel.numbers["seed"].wanted.click()
    pending = panel.take_pending()
    assert pending is not None
    assert pending.sampling.seed == 1
    assert panel.take_pending() is None


def test_settings_of_another_conversation_are_shown(chat: ShownChat) -> None:
    chat.hear(*answered("Why?", "So"))
    known = info(2, "Eels", system_prompt="Be long.", sampling={"top_k": 7})
    chat.hear(ChatOpening(2), ChatOpened(known, MessagePage(messages=(), more=False)))
    panel = chat.window.panel
    assert panel.prompt.toPlainText() == "Be long."
    assert (panel.numbers["top_k"].value(), panel.numbers["top_p"].value()) == (7, None)


def test_preset_sets_prompt_and_sampling_together(chat: ShownChat, qtbot: QtBot) -> None:
    brief = Preset(name="Brief", system_prompt="Be brief.", sampling=Sampling(temperature=0.2))
    chat.hear(PresetsListed((brief,)))
    panel = chat.window.panel
    panel.show()
    with qtbot.waitSignal(panel.changed) as changed:
        panel.preset.setCurrentIndex(1)
        panel.preset.activated.emit(1)
    assert changed.args[0].system_prompt == "Be brief."
    assert panel.numbers["temperature"].value() == 0.2
    with qtbot.waitSignal(panel.preset_dropped) as dropped:
        qtbot.mouseClick(panel.drop, Qt.MouseButton.LeftButton)
    assert dropped.args == ["Brief"]
    panel.prompt.setPlainText("Be otherwise.")
    qtbot.waitUntil(lambda: panel.preset.currentIndex() == 0)
