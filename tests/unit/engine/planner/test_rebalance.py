from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.planner.coverage import best_rearrangement
from engine.planner.petals import block_rates
from engine.planner.placement import servers
from engine.planner.rebalance import better_places, decide, steady
from tests.support.builders import model_size, snapshot, stage_info

ANA, BEN, CAT = PeerId("ana"), PeerId("ben"), PeerId("cat")


def node(peer: str, start: int, end: int, block_s: float = 0.001, **fields: object) -> StageInfo:
    return stage_info(peer, start, end, block_s=block_s, max_blocks=end - start, **fields)


def with_intent(swarm: SwarmSnapshot, peer: str, span: Span) -> SwarmSnapshot:
    return replace(
        swarm,
        stages=tuple(replace(s, next_span=span) if s.peer == peer else s for s in swarm.stages),
    )


def test_newcomer_goes_where_the_swarm_is_slowest() -> None:
    swarm = snapshot(20, node("ana", 0, 10), node("ben", 10, 20, 0.004))
    move = decide(swarm, PeerId("dan"), 10)
    assert move is not None
    assert move.span == Span(10, 20)
    assert "blocks 10–19" in move.reason


def test_slow_newcomer_stands_in_for_a_fast_node_that_is_needed_elsewhere() -> None:
    swarm = snapshot(20, node("ana", 0, 10), node("ben", 10, 20, 0.004), node("cat", 0, 10))
    move = decide(swarm, PeerId("dan"), 10)
    assert move is not None
    assert move.span == Span(0, 10)
    joined = snapshot(20, *swarm.stages, node("dan", 0, 10, 0.02))
    assert Span(10, 20) in [move.span for move in better_places(joined).values()]


def test_newcomer_of_a_small_swarm_gets_its_part_of_the_best_pipeline() -> None:
    swarm = snapshot(8, node("ana", 0, 6, 0.001))
    move = decide(swarm, BEN, 6, size=model_size(8))
    assert move is not None
    assert 2 <= len(move.span) <= 6, "both have a part"
    assert "fastest pipeline" in move.reason


def test_blocks_that_nobody_serves_are_taken_by_one_who_can_be_spared() -> None:
    swarm = snapshot(20, node("ana", 0, 10), node("ben", 0, 10), node("cat", 10, 15))
    moves = better_places(swarm)
    after = {s.peer: moves[s.peer].span if s.peer in moves else s.span for s in swarm.stages}
    assert {block for span in after.values() for block in range(span.start, span.end)} == set(
        range(20)
    )
    assert decide(swarm, CAT, 5) == moves.get(CAT)


def test_large_swarm_out_of_balance_is_put_right_and_then_left_alone() -> None:
    stages = [node(f"n{index:03}", 0, 10) for index in range(150)]
    stages += [node(f"s{index:03}", 10, 20) for index in range(60)]
    swarm = snapshot(20, *stages)
    moves = better_places(swarm)
    for _ in range(20):
        if not moves:
            break
        places = {peer: move.span for peer, move in moves.items()}
        swarm = snapshot(20, *(replace(s, span=places.get(s.peer, s.span)) for s in swarm.stages))
        moves = better_places(swarm)
    rates = block_rates(20, servers(swarm))
    assert not moves
    assert rates.mean() / 1.1 <= rates.min() < rates.mean()


def test_who_is_needed_where_it_is_stays() -> None:
    swarm = snapshot(20, node("ana", 0, 10), node("ben", 10, 20))
    assert decide(swarm, ANA, 10) is None
    assert decide(swarm, BEN, 10) is None


def test_of_two_with_the_same_aim_the_lower_id_goes_and_the_other_stays() -> None:
    swarm = snapshot(
        20, *(node(peer, 0, 10) for peer in ("ana", "ben", "cat")), node("dan", 10, 20)
    )
    moves = better_places(swarm)
    assert len(moves) == 1
    aim = Span(10, 20)
    both = with_intent(with_intent(swarm, "ana", aim), "ben", aim)
    assert decide(both, ANA, 10) is None
    stay = decide(both, BEN, 10)
    assert stay is not None
    assert stay.span == Span(0, 10)


def test_of_two_newcomers_with_the_same_aim_the_lower_id_goes_there() -> None:
    joining = {"state": StageState.JOINING}
    swarm = snapshot(
        20,
        node("cat", 0, 10, 0.002),
        node("ana", 10, 20, **joining),
        node("ben", 10, 20, **joining),
    )
    assert decide(swarm, ANA, 10) is None
    other = decide(swarm, BEN, 10)
    assert other is not None
    assert other.span == Span(0, 10)


def test_intent_whose_reason_is_gone_is_given_up() -> None:
    swarm = snapshot(20, node("ana", 0, 10), node("ben", 10, 20), node("dan", 0, 10))
    stay = decide(with_intent(swarm, "ben", Span(0, 10)), BEN, 10)
    assert stay is not None
    assert stay.span == Span(10, 20)


def test_whoever_leaves_is_asked_nothing() -> None:
    swarm = snapshot(20, node("ana", 0, 10, state=StageState.DRAINING), node("ben", 0, 10))
    assert decide(swarm, ANA, 10) is None


def test_node_without_room_for_a_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        decide(snapshot(8), ANA, 0)


def test_no_rearrangement_where_no_node_may_move() -> None:
    assert best_rearrangement(4, ()) is None


def test_noise_of_a_measurement_is_not_announced() -> None:
    assert steady(0.010, 0.0103) == 0.010
    assert steady(0.010, 0.012) == 0.012
    assert steady(0.0, 0.010) == 0.010
