from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from app.messages import (
    Command,
    CommandFailed,
    CommandSent,
    ConnectionLost,
    EngineCrashed,
    EngineFound,
    EngineStarting,
    EngineStopped,
    Message,
    QuitAsked,
    StatusArrived,
)
from app.presenters import Icon, Overview, overview
from engine.localapi.schema import EngineState, PauseRequest
from tests.support.app_states import after, status

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=timezone(timedelta(hours=1)))


def seen(*messages: Message) -> Overview:
    return overview(after(*messages), NOW, str)


def told(**fields: Any) -> tuple[Message, ...]:
    return EngineStarting(), StatusArrived(status(**fields))


@pytest.mark.parametrize(
    ("fields", "icon", "headline"),
    [
        (
            {"state": "serving", "span": (10, 20)},
            Icon.SERVING,
            "Serving blocks 10–19 of SmolLM2-135M-Instruct",
        ),
        ({"state": "idle"}, Icon.IDLE, "Ready with all 30 blocks of SmolLM2-135M-Instruct"),
        ({"state": "paused"}, Icon.PAUSED, "Paused until you resume"),
        ({"state": "yielding"}, Icon.YIELDING, "Yielding to you for now"),
        ({"state": "draining", "sessions": 2}, Icon.DRAINING, "Finishing 2 sessions, then pausing"),
        ({"state": "draining", "sessions": 1}, Icon.DRAINING, "Finishing 1 session, then pausing"),
        ({"state": "offline"}, Icon.OFFLINE, "Offline: no connection to the swarm"),
        ({"state": "error"}, Icon.ERROR, "Shoal cannot serve"),
        ({"state": "starting"}, Icon.STARTING, "Getting ready…"),
        (
            {
                "state": "starting",
                "progress": {
                    "what": "Downloading X", "done": 58e6, "total": 138e6, "unit": "bytes"
                },
            },
            Icon.STARTING,
            "Downloading X: 42 % of 138 MB",
        ),
        (
            {
                "state": "starting",
                "progress": {"what": "Loading blocks", "done": 15, "total": 30, "unit": "blocks"},
            },
            Icon.STARTING,
            "Loading blocks: 50 %",
        ),
        (
            {"state": "starting", "progress": {"what": "Joining", "done": 0, "total": 0}},
            Icon.STARTING,
            "Joining…",
        ),
    ],
)  # fmt: skip
def test_headline_and_icon_tell_the_state(
    fields: dict[str, Any], icon: Icon, headline: str
) -> None:
    view = seen(*told(**fields))
    assert (view.icon, view.headline) == (icon, headline)


def test_every_state_of_the_engine_has_its_own_icon() -> None:
    icons = {seen(*told(state=state)).icon for state in EngineState}
    assert icons == set(Icon)


@pytest.mark.parametrize(
    ("after_now", "words"),
    [
        (timedelta(minutes=25), "Paused until 18:30 (25 min left)"),
        (timedelta(seconds=20), "Paused until 18:05 (1 min left)"),
        (timedelta(hours=13, minutes=5), "Paused until tomorrow 07:10 (13 h 5 min left)"),
        (timedelta(days=5), "Paused until Mon 9 Mar, 18:05 (5 d left)"),
        (timedelta(minutes=-1), "Paused until 18:04 (0 min left)"),
    ],
)
def test_pause_with_an_end_says_when_and_how_long(after_now: timedelta, words: str) -> None:
    assert seen(*told(state="paused", until=(NOW + after_now).timestamp())).headline == words


def test_reason_is_shown_beside_the_state() -> None:
    view = seen(*told(state="paused", reason="On battery power."))
    assert view.detail == "On battery power."
    assert view.tooltip == "Shoal\nPaused until you resume\nOn battery power."


def test_reason_that_only_repeats_the_state_is_left_out() -> None:
    assert seen(*told(state="paused", reason="Paused until you resume.")).detail == ""


def test_running_engine_can_be_paused_in_every_way_and_not_resumed() -> None:
    view = seen(*told(state="serving", swarm="reef"))
    assert view.pause.visible
    assert view.pause.enabled
    assert {choice.label: choice.request for choice in view.pauses} == {
        "Pause for 1 &hour": PauseRequest(seconds=3600),
        "Pause until &tomorrow": PauseRequest(until_tomorrow=True),
        "&Pause until I resume": PauseRequest(),
        "&Finish, then pause": PauseRequest(finish_first=True),
        "Pause &everything, chat too": PauseRequest(scope="everything"),
    }
    assert not view.resume.visible


def test_solo_engine_has_no_traffic_to_pause() -> None:
    requests = [choice.request for choice in seen(*told(state="idle")).pauses]
    assert PauseRequest(scope="everything") not in requests
    assert len(requests) == 4


@pytest.mark.parametrize("state", ["serving", "yielding", "starting", "offline", "error"])
def test_person_can_pause_whatever_the_engine_does(state: str) -> None:
    assert PauseRequest() in [choice.request for choice in seen(*told(state=state)).pauses]


def test_paused_engine_can_only_be_resumed() -> None:
    view = seen(*told(state="paused"))
    assert view.resume.visible
    assert not view.pause.visible
    assert not view.pauses


def test_draining_engine_can_go_on_serving_or_pause_at_once() -> None:
    view = seen(*told(state="draining"))
    assert view.resume.label == "&Keep serving"
    assert [(choice.label, choice.request) for choice in view.pauses] == [
        ("&Pause now", PauseRequest())
    ]


def test_no_two_entries_of_the_menu_have_the_same_key() -> None:
    for state in EngineState:
        view = seen(*told(state=state, swarm="reef"))
        single = (view.resume, view.start, view.chat, view.dashboard, view.quit)
        labels = [action.label for action in single if action.visible]
        labels += [choice.label for choice in view.pauses]
        keys = [label.partition("&")[2][:1].lower() for label in labels]
        assert all(keys)
        assert len(set(keys)) == len(keys)


def test_controls_wait_while_an_order_is_under_way() -> None:
    view = seen(*told(), CommandSent(Command.PAUSE))
    assert view.headline == "Pausing…"
    assert not view.pause.enabled


def test_refused_order_is_told() -> None:
    assert seen(*told(), CommandFailed("The disk is full.")).detail == "The disk is full."


def test_quit_says_when_the_engine_stays() -> None:
    found = (EngineFound(), StatusArrived(status()))
    assert seen(*told()).quit.label == "&Quit Shoal"
    assert seen(*found).quit.label == "&Quit (engine keeps running)"
    leased = (EngineFound(), StatusArrived(status(leased=True)))
    assert seen(*leased).quit.label == "&Quit Shoal"


def test_crashed_engine_is_restarted_and_a_stopped_one_waits_for_the_person() -> None:
    crashed = seen(*told(), EngineCrashed("No memory."))
    assert crashed.headline == "Restarting the engine…"
    assert not crashed.start.visible
    stopped = seen(*told(), EngineStopped("No memory."))
    assert stopped.icon is Icon.ERROR
    assert stopped.detail == "No memory."
    assert stopped.start.visible
    assert stopped.start.label == "&Try again"


def test_lost_engine_is_said_to_be_sought() -> None:
    assert seen(*told(), ConnectionLost("x")).headline == "Reconnecting to the engine…"


def test_nothing_can_be_chosen_while_quitting() -> None:
    view = seen(*told(), QuitAsked())
    assert not any(action.enabled for action in (view.pause, view.chat, view.quit))


def test_facts_name_the_swarm_only_when_there_is_one() -> None:
    solo = dict(seen(*told()).facts)
    assert solo["Swarm"] == "none: solo on this computer"
    assert "Other nodes" not in solo
    swarm = dict(seen(*told(swarm="reef", peers=1204, tokens_served=48213)).facts)
    assert swarm["Other nodes"] == "1,204"
    assert swarm["Tokens served"] == "48,213"
