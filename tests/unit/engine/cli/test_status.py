from __future__ import annotations

from engine.cli.status import status_rows
from engine.core.reach import LinkPath, Reach
from engine.localapi.schema import EngineState, EngineStatus, LinkStatus, PipelineStage


def rows(**fields: object) -> list[tuple[str, str]]:
    status = EngineStatus(state=EngineState.IDLE, version="0", api_url="http://x", **fields)
    return status_rows(status, None)


def test_way_of_each_link_and_what_it_costs_are_shown() -> None:
    relayed = LinkStatus(
        peer="QmFarNeighbour1",
        path=LinkPath.RELAYED,
        relay="QmTheRelay2",
        rtt_ms=44.1,
        sent_bytes=2048,
    )
    punched = LinkStatus(
        peer="QmOtherPeer3",
        path=LinkPath.PUNCHED,
        rtt_ms=23,
        bandwidth_bytes_per_s=12.5e6,
        sent_bytes=0,
    )
    shown = rows(reachability=Reach.RELAYED, relays=2, links=(relayed, punched))
    assert ("Reached", "through 2 relays: no direct connections") in shown
    assert ("Link", "hbour1: relayed by Relay2, 44.1 ms, 2.0 KiB sent") in shown
    assert ("Link", "rPeer3: punched, 23 ms, 100 Mbit/s, 0 B sent") in shown


def test_node_that_nobody_reaches_says_so_and_one_in_no_swarm_says_nothing() -> None:
    assert any("by nobody" in value for _, value in rows(reachability=Reach.OUTBOUND_ONLY))
    assert all(name != "Reached" for name, _ in rows())


def test_plan_is_shown_with_what_holds_it_up_and_why_this_node_has_its_part() -> None:
    def stage(peer: str, start: int, end: int) -> PipelineStage:
        return PipelineStage(peer=peer, start=start, end=end, is_self=peer == "QmOwn")

    shown = rows(
        span=(0, 12),
        num_blocks=30,
        span_reason="They were served worst.",
        plan=(stage("QmOwn", 0, 12), stage("QmTheOther7", 12, 30)),
        spares=(stage("QmTheSpare8", 10, 30),),
        bottleneck="…Other7 computes 40 of the 96 ms of each token.",
    )
    assert ("Blocks", "0–11 of 30") in shown
    assert ("Why these", "They were served worst.") in shown
    assert ("Pipeline", "this node (0–11) → Other7 (12–29)") in shown
    assert ("Spare", "Spare8 (10–29)") in shown
    assert ("Bottleneck", "…Other7 computes 40 of the 96 ms of each token.") in shown
