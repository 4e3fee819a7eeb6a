from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.dashboard_presenters import DashboardView, dashboard_view
from app.messages import ConnectionLost, EngineStarting, EngineStopped, Message, StatusArrived
from app.presenters import overview
from app.words import bits_per_s, milliseconds
from engine.localapi.schema import LinkStatus
from tests.support.app_states import after, status

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


def seen(*messages: Message) -> DashboardView:
    state = after(EngineStarting(), *messages)
    return dashboard_view(state, overview(state, NOW, str), str)


def told(**fields: Any) -> DashboardView:
    return seen(StatusArrived(status(**fields)))


def test_what_i_hold_is_told_with_units() -> None:
    held = dict(
        told(
            span=(10, 20), span_reason="The settings fix them.", worker_rss_bytes=412_000_000,
            kv_total_tokens=8192, kv_free_tokens=6976, kv_ram_total_tokens=100,
            kv_ram_free_tokens=100,
        ).held
    )  # fmt: skip
    assert held == {
        "Blocks": "10–19 of 30",
        "Model": "SmolLM2-135M-Instruct",
        "Why these": "The settings fix them.",
        "Memory in use": "412 MB",
        "Cache": "1,216 of 8,192 tokens in use",
        "Cache in RAM": "0 of 100 tokens in use",
    }


def test_node_without_blocks_says_so_and_gives_no_reason_for_them() -> None:
    held = dict(told(state="paused", span=None, span_reason="Here it lacked most.").held)
    assert held["Blocks"] == "none now"
    assert "Why these" not in held


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"reachability": "direct"}, "everyone in the swarm, directly"),
        ({"reachability": "relayed", "relays": 1}, "everyone, through 1 relay."),
        ({"reachability": "relayed", "relays": 2}, "everyone, through 2 relays."),
        ({"reachability": "outbound_only"}, "nobody: no connections come in"),
        ({"reachability": "local"}, "programs on this computer alone"),
    ],
)
def test_who_can_reach_me_is_one_sentence(fields: dict[str, Any], words: str) -> None:
    reach = dict(told(swarm="reef", private=True, peers=1, **fields).reach)
    assert reach["Swarm"] == "reef (private), 1 other node"
    assert reach["Reached by"].startswith(words)


def test_advice_is_given_where_connections_do_not_come_in() -> None:
    for reach, advised in (("direct", False), ("relayed", True), ("outbound_only", True)):
        facts = dict(told(swarm="reef", reachability=reach, relays=1).reach)
        assert ("router" in facts["Reached by"]) is advised


def test_links_are_told_with_units_and_what_is_not_known() -> None:
    links = (
        LinkStatus(peer="Qmxaaaaaa", path="direct", rtt_ms=23.1, bandwidth_bytes_per_s=5.2e6,
                   sent_bytes=48_000_000),
        LinkStatus(peer="Qmxbbbbbb", path="punched", rtt_ms=4.2, sent_bytes=0),
    )  # fmt: skip
    rows = told(swarm="reef", peers=2, links=links).links
    assert [(row.peer, row.path, row.rtt, row.bandwidth, row.sent) for row in rows] == [
        ("…aaaaaa", "direct", "23 ms", "42 Mbit/s", "48 MB"),
        ("…bbbbbb", "direct, through both routers", "4.2 ms", "not measured", "0 B"),
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "No links: the model runs on this computer alone."),
        ({"swarm": "reef"}, "No links: nobody else is in the swarm now. Invite somebody."),
        ({"swarm": "reef", "peers": 2}, "No links now; they open when tokens travel."),
    ],
)
def test_absence_of_links_has_its_reason(fields: dict[str, Any], words: str) -> None:
    assert told(**fields).no_links == words


def test_absence_of_a_picture_has_its_reason() -> None:
    assert told(plan=()).no_pipeline.startswith("The picture comes as soon as")
    assert told(state="paused", plan=()).no_pipeline == (
        "There is no pipeline to draw now: Paused until you resume."
    )


def test_nothing_old_is_shown_while_the_engine_is_away() -> None:
    view = seen(StatusArrived(status()), ConnectionLost("It is away."))
    assert view.absent == "The numbers come as soon as the engine answers."
    assert (view.held, view.tokens, view.links, view.pipeline) == ((), (), (), None)
    assert seen(EngineStopped("It ended.")).absent == (
        "There is nothing to show while the engine does not run."
    )


def test_damage_that_was_found_at_the_start_is_told() -> None:
    told_once = told(notices=("A damaged file was put aside.",))
    assert told_once.notices == ("A damaged file was put aside.",)


def test_times_and_rates_have_fitting_units() -> None:
    assert [milliseconds(ms, str) for ms in (0.42, 9.96, 38.4, 1250)] == [
        "0.4 ms", "10.0 ms", "38 ms", "1.2 s"
    ]  # fmt: skip
    assert [bits_per_s(rate, str) for rate in (0, 100, 5e4, 5.2e6, 1e6, 2e8)] == [
        "0 kbit/s", "0.8 kbit/s", "400 kbit/s", "42 Mbit/s", "8.0 Mbit/s", "1.6 Gbit/s"
    ]  # fmt: skip
