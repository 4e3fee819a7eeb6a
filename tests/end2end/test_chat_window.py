"""The window of chats on a real (virtual) screen, with the real engine and the starter model."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.desktop.eyes import Thing
from tests.support.desktop.running_app import App, alive, running_app
from tests.support.desktop.screen import LOOK_LIMIT_S, desktop, require_desktop_programs, wait_until

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

CHAT = "Shoal chat"
START_LIMIT_S = 120.0
ANSWER_LIMIT_S = 90.0
KEPT_AFTER_S = 1.0
"""What has been seen for longer outlives every crash."""

STOP, SEND = "Stop the answer", "Send the message"
AGAIN = "Answer once more (Ctrl+R)"
GO_ON = "Let the answer go on (Ctrl+G)"
EDIT = "Edit and ask anew (Ctrl+E: the last)"
BEFORE, AFTER = "Show the version before", "Show the version after"
MORE = "More about this chat"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One app and its engine for all of these tests, with the window open."""
    require_desktop_programs()
    folder = tmp_path_factory.mktemp("chat")
    with (
        desktop(folder, tray=True) as screen,
        running_app(
            screen, folder, "--", "--model", "starter", start_limit_s=START_LIMIT_S
        ) as running,
    ):
        open_chat(running)
        yield running


def open_chat(app: App) -> None:
    app.wait_for_state("idle", "serving")
    wait_until(lambda: app.status().can_chat, ANSWER_LIMIT_S, "a route")
    app.click_icon()
    app.screen.wait_for_window(CHAT)


def begin(app: App, question: str) -> None:
    """Ask in a new conversation."""
    app.press("New chat", window=CHAT)
    app.wait_to_read("What would you like to know?", window=CHAT)
    ask(app, question)


def ask(app: App, question: str) -> None:
    app.press("Message", window=CHAT)
    app.screen.write(question)
    app.screen.keys("Return")


def answers(app: App) -> list[str]:
    """The texts of the answers that can be seen."""
    cards = [card for card in app.named("Answer", CHAT) if card.role == "filler"]
    return ["\n".join(part.words for part in card.all() if is_said(part)) for card in cards]


def is_said(part: Thing) -> bool:
    return part.role in ("label", "text") and part.name in ("Answer", "Code")


def answer(app: App) -> str:
    """The last of them."""
    found = answers(app)
    return found[-1].strip(" \n…") if found else ""


def wait_for_text(app: App, *, longer_than: str = "") -> str:
    """Wait until the last answer has some more words."""
    wanted = len(longer_than) + 8
    return wait_until(
        lambda: text if len(text := answer(app)) > wanted else "", ANSWER_LIMIT_S, "a longer answer"
    )


def wait_for_end(app: App) -> None:
    wait_until(lambda: app.named(SEND, CHAT), ANSWER_LIMIT_S, "the end of the answer")


def settle(app: App) -> str:
    """End the answer when some of it can be seen, if it has not ended; return what it is then."""
    wait_for_text(app)
    app.screen.keys("Escape")
    wait_for_end(app)
    return answer(app)


def test_answer_streams_stops_goes_on_and_is_given_again_beside_the_first(app: App) -> None:
    begin(app, "Describe all the seas of the world")
    first = wait_for_text(app)
    assert wait_for_text(app, longer_than=first).startswith(first.split(" ")[0])
    app.press(STOP, window=CHAT)
    app.wait_to_read("Stopped", window=CHAT)
    wait_for_end(app)
    stopped = answer(app)

    app.press(GO_ON, window=CHAT, at=-1)
    assert wait_for_text(app, longer_than=stopped).startswith(stopped[:40])
    grown = settle(app)

    app.press(AGAIN, window=CHAT, at=-1)
    wait_until(lambda: answer(app) != grown, 30, "another answer")
    other = settle(app)
    app.wait_to_read("Version 2/2", window=CHAT)
    app.press(BEFORE, window=CHAT, at=-1)
    app.wait_to_read("Version 1/2", window=CHAT)
    wait_until(lambda: answer(app) == grown, 30, "the first answer")
    app.press(AFTER, window=CHAT, at=-1)
    app.wait_to_read("Version 2/2", window=CHAT)
    wait_until(lambda: answer(app) == other, 30, "the second answer")


def test_question_is_edited_and_both_branches_stay(app: App) -> None:
    begin(app, "Name two fish")
    first = settle(app)
    app.press(EDIT, window=CHAT, at=-1)
    app.wait_to_read("You are writing an earlier message anew", window=CHAT)
    app.screen.write(" of the Baltic")
    app.screen.keys("Return")
    app.wait_to_read("Name two fish of the Baltic", "Version 2/2", window=CHAT)
    settle(app)
    app.press(BEFORE, window=CHAT)
    app.wait_to_read("Version 1/2", window=CHAT)
    wait_until(lambda: answer(app) == first, 30, "the answer to the first question")
    assert "Baltic" not in app.conversation()
    app.press(AFTER, window=CHAT)
    wait_until(lambda: "Baltic" in app.conversation(), 30, "the second question")


def test_conversation_is_renamed_found_deleted_and_brought_back(app: App) -> None:
    begin(app, "What do gulls eat?")
    settle(app)
    choose_more(app, "r")
    app.screen.keys("ctrl+a")
    app.screen.write("Birds of the coast")
    app.screen.keys("Return")
    wait_until(lambda: app.named("Birds of the coast", CHAT), 30, "the new title above")

    app.press("Search chats", window=CHAT)
    app.screen.write("gulls")
    app.wait_to_read("Birds of the coast", window=CHAT)
    wait_until(lambda: len(listed(app)) == 1, 30, "nothing but what was looked for")
    app.screen.keys("ctrl+a", "BackSpace")
    wait_until(lambda: len(listed(app)) > 1, 30, "all conversations")

    choose_more(app, "d")
    app.wait_to_read("“Birds of the coast” is in the trash.", window=CHAT)
    assert not any("Birds" in row for row in listed(app))
    app.press("Bring the conversation back", window=CHAT)
    wait_until(lambda: any("Birds" in row for row in listed(app)), 30, "the conversation")
    app.press("Birds of the coast*", window=CHAT)
    app.wait_to_read("What do gulls eat?", window=CHAT)


def test_conversation_is_exported_as_markdown_and_json(app: App, tmp_path: Path) -> None:
    begin(app, "Where do eels spawn?")
    said = settle(app)
    document, data = tmp_path / "eels.md", tmp_path / "eels.json"
    for key, path in (("m", document), ("j", data)):
        choose_more(app, key)
        name_file(app, "Export the chat", path)
        wait_until(lambda path=path: path.exists() and path.read_text(), 30, "the file")
    assert "## You\n\nWhere do eels spawn?" in document.read_text()
    assert said.split()[0] in document.read_text()
    exported = json.loads(data.read_text())
    assert exported["title"] == "Where do eels spawn?"
    assert [message["speaker"] for message in exported["messages"]] == ["user", "assistant"]


def test_system_prompt_sampling_and_presets_shape_the_answers(app: App) -> None:
    app.press("New chat", window=CHAT)
    app.press("Settings of this chat", window=CHAT)
    app.press("System prompt", window=CHAT)
    app.screen.write("You are a sailor.")
    choose_number(app, "Longest answer", "6")
    choose_number(app, "Temperature", "0")
    ask(app, "Who are you, and what do you do all day?")
    app.wait_to_read("Cut off: the answer reached its length limit", "6 tokens", window=CHAT)
    chat = app.ask_engine("/shoal/v1/chats")["chats"][0]["id"]
    kept = app.ask_engine(f"/shoal/v1/chats/{chat}")
    assert kept["system_prompt"] == "You are a sailor."
    assert (kept["sampling"]["max_tokens"], kept["sampling"]["temperature"]) == (6, 0)

    app.press("Keep these settings as a preset", window=CHAT)
    app.screen.wait_for_keyboard("Keep as preset")
    app.screen.write("Sailor")
    app.screen.keys("Return")
    wait_until(lambda: preset(app) == "Sailor", 30, "the preset's name")
    app.press("New chat", window=CHAT)
    wait_until(lambda: preset(app) == "None", 30, "no preset in a new chat")
    assert prompt(app) == ""
    app.press("None", window=CHAT)
    app.screen.keys("Down", "Return")
    wait_until(lambda: prompt(app) == "You are a sailor.", 30, "the prompt of the preset")
    app.press("Forget the chosen preset", window=CHAT)
    wait_until(lambda: preset(app) == "None", 30, "no preset")
    app.press("Settings of this chat", window=CHAT)


def test_text_file_goes_along_and_its_tokens_are_counted(app: App, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("The harbour master is called Ilse. " * 40)
    (count,) = app.ask_engine("/shoal/v1/tokens", {"texts": [notes.read_text()]})["counts"]
    app.press("New chat", window=CHAT)
    app.press("Attach text files", window=CHAT)
    name_file(app, "Attach text files", notes)
    app.wait_to_read("notes.txt", f"{count:,} of 8,192 tokens", window=CHAT)
    ask(app, "Who is the harbour master?")
    settle(app)
    app.wait_to_read("notes.txt (1.4 KB)", window=CHAT)
    assert not app.named("Do not attach notes.txt", CHAT)


def test_code_of_an_answer_is_copied_by_its_button(app: App) -> None:
    begin(app, "Write a Python function that adds two numbers. Answer with code only.")
    wait_until(lambda: app.named("Copy the code", CHAT), ANSWER_LIMIT_S, "a block of code")
    wait_until(lambda: len(app.named("Code", CHAT)[0].words) > 20, ANSWER_LIMIT_S, "its lines")
    app.screen.keys("Escape")
    wait_for_end(app)
    app.press("Copy the code", window=CHAT)
    wait_until(lambda: app.named("Copied", CHAT), LOOK_LIMIT_S, "a word that it was copied")
    code = app.named("Code", CHAT)[0].words
    assert app.screen.clipboard().rstrip("\n") == code.rstrip("\n")


def test_answer_outlives_a_killed_engine_and_the_window_says_what_happened(app: App) -> None:
    begin(app, "Tell a long story about a herring")
    seen = seen_for_a_second(app)
    first = app.engine_pid()
    os.kill(first, signal.SIGKILL)
    app.wait_to_read("Restarting the engine…", window=CHAT)
    app.wait_to_read("Interrupted: Shoal ended meanwhile", window=CHAT, limit_s=START_LIMIT_S)
    assert app.engine_pid() != first
    kept = app.conversation()
    assert kept.startswith(seen)

    wait_until(lambda: app.status().can_chat, ANSWER_LIMIT_S, "a route")
    app.press(GO_ON, window=CHAT, at=-1)
    wait_until(lambda: len(app.conversation()) > len(kept), ANSWER_LIMIT_S, "more of the answer")
    app.screen.keys("Escape")
    wait_for_end(app)
    assert app.conversation().startswith(seen)


def test_conversation_outlives_a_killed_window(app: App) -> None:
    question = "Tell a long story about a lighthouse"
    begin(app, question)
    seen = seen_for_a_second(app)
    engine = app.engine_pid()
    app.kill()
    wait_until(lambda: not alive(engine), 5, "the end of the engine, whose lease is gone")
    app.start_again()
    open_chat(app)
    app.press(f"{question}*", window=CHAT)
    app.wait_to_read("Interrupted: Shoal ended meanwhile", window=CHAT)
    assert app.conversation().startswith(seen)


def seen_for_a_second(app: App) -> str:
    """What could be read of an answer under way for long enough to be kept."""
    for _ in range(5):
        wait_for_text(app)
        seen = app.conversation()
        time.sleep(KEPT_AFTER_S)
        if app.named(STOP, CHAT):
            return seen
        app.press(AGAIN, window=CHAT, at=-1)  # a short one: the next is longer, perhaps
        wait_until(lambda: app.named(STOP, CHAT), 30, "another answer")
    raise AssertionError("the answers end before they can be disturbed")


def choose_more(app: App, key: str) -> None:
    """Choose from the menu of the conversation, by an underlined letter."""
    app.press(MORE, window=CHAT)
    wait_until(app.screen.menu_is_open, LOOK_LIMIT_S, "the menu")
    app.screen.keys(key)


def choose_number(app: App, name: str, value: str) -> None:
    """Tick a number of the sampling and write it."""
    app.press(f"Choose: {name}", window=CHAT)
    app.press(name, window=CHAT, at=-1)
    app.screen.keys("ctrl+a")
    app.screen.write(f"{value}\t")


def prompt(app: App) -> str:
    """What stands in the field of the system prompt."""
    return app.controls("System prompt", CHAT)[0].words


def preset(app: App) -> str:
    """The preset that is chosen."""
    (box,) = [thing for thing in app.things(CHAT) if thing.role == "combo box"]
    return box.name


def name_file(app: App, dialog: str, path: Path) -> None:
    """Write a path into a file dialog that opens."""
    app.screen.wait_for_keyboard(dialog)
    app.screen.keys("ctrl+a")
    app.screen.write(str(path))
    app.screen.keys("Return")


def listed(app: App) -> list[str]:
    """The conversations in the list."""
    (chats,) = app.named("Conversations", CHAT)
    return [row.name for row in chats.inside]
