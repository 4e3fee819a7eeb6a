from __future__ import annotations

from typing import Any

import pytest

from app.messages import ConnectionLost, StatusArrived
from app.presenters import overview
from app.setup_messages import (
    ChangeAsked,
    ChangeDone,
    ChangeFailed,
    InviteGiven,
    MeasuringBegan,
    MeasuringFailed,
    PlanArrived,
    PlanFailed,
    SwarmArrived,
)
from app.setup_presenters import (
    MEMORY_STOPS,
    NO_RATE,
    RATES_MBIT,
    Caps,
    FirstRunView,
    first_run_view,
    values_of,
)
from app.state import AppState
from engine.localapi.schema import SwarmInfo
from tests.support.app_states import NOW, after, plan_preview, status

GB = 10**9


def waiting(**fields: Any) -> StatusArrived:
    return StatusArrived(
        status(state="starting", awaits_setup=True, span=None, can_chat=False, **fields)
    )


def seen(state: AppState, caps: Caps | None = None) -> FirstRunView:
    headline = overview(state, NOW, str).headline
    return first_run_view(state.setup, state.status, caps or Caps(), headline, str)


def test_card_says_in_one_sentence_what_would_be_held() -> None:
    preview = plan_preview(
        span=(12, 22), on_gpu=True, memory_bytes=5_800_000_000, memory_total_bytes=12 * GB
    )
    card = seen(after(waiting(), PlanArrived(preview))).card
    assert card is not None
    assert card.headline == (
        "You would hold blocks 12–21 of SmolLM2-135M-Instruct, 5.8 GB of 12 GB VRAM, "
        "up to 8 Mbit/s up"
    )
    assert "In a swarm, that line passes on at most 434 tokens a second." in card.lines


def test_card_does_not_name_blocks_that_the_swarm_will_choose() -> None:
    preview = plan_preview(span=(0, 12), is_certain=False)
    card = seen(after(waiting(), PlanArrived(preview))).card
    assert card is not None
    assert "12 of the 30 blocks" in card.headline


def test_card_says_why_nothing_would_be_held() -> None:
    preview = plan_preview(span=None, reason="A block takes 14 MB.")
    card = seen(after(waiting(), PlanArrived(preview))).card
    assert card is not None
    assert not card.is_possible
    assert card.lines == ("A block takes 14 MB.",)
    failed = seen(after(waiting(), PlanFailed("No GPU answers."))).card
    assert failed is not None
    assert failed.headline == "No GPU answers."


def test_sliders_stand_for_settings() -> None:
    preview = plan_preview(on_gpu=False, memory_total_bytes=20 * GB)
    values = values_of(Caps(memory=5, up=RATES_MBIT.index(8), down=NO_RATE), preview)
    assert values == {
        "limits.ram_bytes": 5 * GB,
        "limits.uplink_bytes_per_s": 1_000_000.0,
        "limits.downlink_bytes_per_s": None,
    }
    free = values_of(Caps(MEMORY_STOPS, NO_RATE, NO_RATE), plan_preview(on_gpu=True))
    assert set(free) == {
        "limits.gpu_memory_bytes", "limits.uplink_bytes_per_s", "limits.downlink_bytes_per_s",
    }  # fmt: skip
    assert set(free.values()) == {None}


def test_measuring_shows_how_far_it_is_and_why_it_failed() -> None:
    progress = {"what": "Measuring blocks", "done": 0.4, "total": 1.0}
    view = seen(after(waiting(progress=progress), MeasuringBegan()))
    assert view.measuring == "Measuring blocks: 40 %"
    assert view.progress == pytest.approx(0.4)
    ended = seen(after(waiting(), MeasuringBegan(), MeasuringFailed("Too little memory.")))
    assert (ended.measuring, ended.measuring_error) == ("", "Too little memory.")


def test_nothing_can_begin_twice_and_a_refusal_is_shown() -> None:
    asked = after(waiting(), ChangeAsked())
    assert not seen(asked).can_begin
    refused = seen(after(ChangeFailed("The invite is cut short."), start=asked))
    assert refused.can_begin
    assert refused.error == "The invite is cut short."
    assert not refused.has_begun


def test_after_the_beginning_the_invite_can_be_handed_on() -> None:
    founded = SwarmInfo(name="reef", invite="shoal://abc")
    state = after(waiting(), ChangeAsked(), SwarmArrived(founded), ChangeDone())
    view = seen(after(StatusArrived(status(swarm="reef")), start=state))
    assert view.has_begun
    assert view.can_chat
    assert view.progress is None
    assert view.invite == "shoal://abc"


def test_engine_that_waits_is_called_not_set_up_and_cannot_be_paused() -> None:
    view = overview(after(waiting()), NOW, str)
    assert view.headline == "Not set up yet"
    assert view.pauses == ()


def test_invite_of_a_link_is_kept_until_it_is_used() -> None:
    state = after(InviteGiven("shoal://abc"), waiting(), ConnectionLost("It sleeps."))
    assert state.setup.invite == "shoal://abc"
    assert after(InviteGiven(""), start=state).setup.invite == ""
