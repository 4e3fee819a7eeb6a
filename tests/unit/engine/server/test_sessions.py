from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.errors import CacheFull, StageRefused
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.protocol.messages import HopMessage, OpenRequest, SamplingMessage, SequenceMessage
from engine.server.sessions import SessionTable

ME, CLIENT = PeerId("me"), PeerId("client")


def table(*, budget_tokens: int = 100, ram_tokens: int = 50) -> SessionTable:
    return SessionTable(
        local_peer=ME,
        model_id="m@1",
        num_blocks=4,
        span=Span(2, 4),
        kv_budget_bytes=budget_tokens * 10 * 2,
        kv_ram_budget_bytes=ram_tokens * 10 * 2,
        block_token_bytes=10,
        lease_s=30.0,
    )


def request(
    *capacities: int,
    model: str = "m@1",
    hops: tuple[tuple[str, int, int], ...] | None = None,
    first_session: int = 0,
    kv_offload: float = 0.0,
) -> OpenRequest:
    hops = hops or (("other", 0, 2), ("me", 2, 4))
    return OpenRequest(
        request=1,
        model_id=model,
        hops=tuple(HopMessage(peer=peer, start=start, end=end) for peer, start, end in hops),
        sequences=tuple(
            SequenceMessage(
                session=first_session + n,
                capacity_tokens=capacity,
                prompt_tokens=1,
                sampling=SamplingMessage(),
                kv_offload=kv_offload,
            )
            for n, capacity in enumerate(capacities)
        ),
    )


def test_room_is_reserved_at_opening_and_given_back_at_closing() -> None:
    sessions = table(budget_tokens=100)
    sessions.open(request(60, 30), CLIENT, 0.0)
    assert sessions.free_tokens == (10, 50)
    sessions.close([SessionId(0)], CLIENT)
    assert sessions.free_tokens == (70, 50)


def test_request_that_does_not_fit_reserves_nothing() -> None:
    sessions = table(budget_tokens=100)
    sessions.open(request(60), CLIENT, 0.0)
    with pytest.raises(CacheFull, match="40 are free"):
        sessions.open(request(30, 30, first_session=5), PeerId("second"), 0.0)
    assert sessions.free_tokens == (40, 50)


def test_request_that_can_never_fit_is_told_the_limit() -> None:
    with pytest.raises(StageRefused, match="room for 100 in all"):
        table(budget_tokens=100).open(request(101), CLIENT, 0.0)


def test_the_share_that_lies_in_ram_takes_no_room_on_the_device() -> None:
    sessions = table(budget_tokens=100, ram_tokens=50)
    sessions.open(request(60, kv_offload=0.35), CLIENT, 0.0)
    assert sessions.free_tokens == (100 - 39, 50 - 21)
    sessions.open(request(20, first_session=5, kv_offload=1), CLIENT, 0.0)
    assert sessions.free_tokens == (61, 9)
    sessions.close([SessionId(0), SessionId(5)], CLIENT)
    assert sessions.free_tokens == sessions.total_tokens == (100, 50)


def test_request_that_does_not_fit_in_ram_is_told_so_and_reserves_nothing() -> None:
    sessions = table(budget_tokens=100, ram_tokens=50)
    with pytest.raises(StageRefused, match=r"room for 50 there in all; lower client\.kv_offload"):
        sessions.open(request(60, kv_offload=1), CLIENT, 0.0)
    sessions.open(request(30, kv_offload=1), CLIENT, 0.0)
    with pytest.raises(CacheFull, match=r"in RAM .* \(20 are free there\)"):
        sessions.open(request(60, first_session=5, kv_offload=0.5), CLIENT, 0.0)
    assert sessions.free_tokens == (100, 20)
    with pytest.raises(StageRefused, match="room for 0 there in all"):
        table(ram_tokens=0).open(request(10, kv_offload=0.5), CLIENT, 0.0)


def test_where_room_is_given_in_pages_they_are_counted_whole_and_in_all_blocks() -> None:
    sessions = replace(table(budget_tokens=100), in_pages=True)
    sessions.open(request(33), CLIENT, 0.0)
    assert sessions.free_tokens.device == 100 - 64
    part = request(10, hops=(("other", 0, 2), ("me", 2, 3), ("more", 3, 4)), first_session=5)
    sessions.open(part, CLIENT, 0.0)
    assert sessions.free_tokens.device == 100 - 96
    sessions.close([SessionId(0), SessionId(5)], CLIENT)
    assert sessions.free_tokens == sessions.total_tokens


def test_lease_lapses_unless_renewed() -> None:
    sessions = table()
    sessions.open(request(10), CLIENT, 0.0)
    assert sessions.expired(29.0) == []
    sessions.keep([SessionId(0)], CLIENT, 29.0)
    assert sessions.expired(58.0) == []
    assert [session.id for session in sessions.expired(59.0)] == [0]
    assert sessions.free_tokens == (100, 50)


def test_stranger_can_neither_close_nor_renew() -> None:
    sessions = table()
    sessions.open(request(10), CLIENT, 0.0)
    sessions.keep([SessionId(0)], PeerId("stranger"), 29.0)
    assert sessions.close([SessionId(0)], PeerId("stranger")) == []
    assert len(sessions.expired(30.0)) == 1


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (request(10, model="n@2"), "must run the same model"),
        (request(10, hops=(("x", 0, 2), ("y", 2, 4))), "does not pass"),
        (request(10, hops=(("x", 0, 1), ("me", 1, 4))), "holds blocks 2–3"),
        (request(10, hops=(("x", 0, 1), ("me", 2, 4))), "cover every block"),
        (request(10, hops=(("x", 0, 2), ("me", 2, 3))), "cover every block"),
    ],
)
def test_nonsense_is_refused_with_the_reason(bad: OpenRequest, why: str) -> None:
    with pytest.raises(StageRefused, match=why):
        table().open(bad, CLIENT, 0.0)


def test_same_id_twice_is_refused() -> None:
    sessions = table()
    sessions.open(request(10), CLIENT, 0.0)
    with pytest.raises(StageRefused, match="in use"):
        sessions.open(request(10), PeerId("thief"), 0.0)


def test_rows_are_accepted_from_the_stage_before_only() -> None:
    (session,) = table().open(request(10), CLIENT, 0.0)
    assert session.accepts_from(PeerId("other"))
    assert not session.accepts_from(CLIENT)
    assert session.is_last
    assert session.next_peer == "other"
