from __future__ import annotations

from engine.config import Config
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.localapi.setup import PlanPreview
from engine.models.known import starter_spec
from engine.node.caps import RAM_BASE_BYTES, room_bytes
from engine.node.compute import Compute
from engine.node.preview import Would, preview
from engine.profiler.hardware import Hardware

GB = 10**9
ME = PeerId("me")
SOME_BYTES = RAM_BASE_BYTES + (400 << 20)
"""Room for a part of the model."""


def would_hold(
    *,
    ram_bytes: int = 0,
    in_swarm: bool = False,
    others: tuple[StageInfo, ...] | None = None,
    is_known: bool = True,
    **settings: object,
) -> PlanPreview:
    config = Config.model_validate({"limits": {"ram_bytes": ram_bytes}, **settings})
    snapshot = None if others is None else SwarmSnapshot("m", 30, others)
    machine = Compute("cpu", "float32", 16 * GB, room_bytes=room_bytes(ram_bytes, RAM_BASE_BYTES))
    hardware = Hardware("A processor", 4, 8, 32 * GB, (), "2.0")
    spec = starter_spec() if is_known else None
    return preview(Would(config, machine, "starter", spec, in_swarm, ME, snapshot, None, hardware))


def stage(peer: str, start: int, end: int) -> StageInfo:
    return StageInfo(
        peer=PeerId(peer),
        span=Span(start, end),
        state=StageState.ONLINE,
        kv_free_tokens=4096,
        decode_tokens_per_s=0.0,
        addresses=(),
        version="0",
        max_blocks=end - start,
        block_s=0.002,
    )


def test_a_large_machine_would_hold_the_whole_model() -> None:
    shown = would_hold()
    assert shown.span == (0, 30)
    assert shown.is_certain
    assert shown.device == "A processor"
    assert shown.memory_bytes < shown.memory_free_bytes < shown.memory_total_bytes


def test_less_memory_holds_fewer_blocks_and_never_takes_more_than_allowed() -> None:
    lengths = []
    for ram_bytes in (SOME_BYTES, SOME_BYTES + (200 << 20), 8 * GB):
        shown = would_hold(ram_bytes=ram_bytes)
        assert shown.span is not None
        assert shown.memory_bytes <= ram_bytes
        lengths.append(shown.span[1] - shown.span[0])
    assert lengths == sorted(set(lengths))
    assert lengths[-1] == 30


def test_a_cap_without_room_for_a_block_is_told_with_numbers() -> None:
    shown = would_hold(ram_bytes=RAM_BASE_BYTES + (50 << 20))
    assert shown.span is None
    assert "A block of SmolLM2-135M-Instruct takes 14 MB" in shown.reason


def test_in_a_swarm_it_would_hold_what_others_do_not() -> None:
    shown = would_hold(
        ram_bytes=SOME_BYTES, in_swarm=True, others=(stage("a", 0, 15), stage("me", 0, 5))
    )
    assert shown.is_certain
    assert shown.span is not None
    assert shown.span[0] >= 15


def test_before_the_swarm_has_been_seen_the_place_is_open() -> None:
    shown = would_hold(ram_bytes=SOME_BYTES, in_swarm=True)
    assert not shown.is_certain
    assert "the swarm says which" in shown.reason


def test_a_model_that_is_not_here_is_not_guessed_at() -> None:
    shown = would_hold(is_known=False)
    assert (shown.span, shown.num_blocks) == (None, None)
    assert "not on this computer yet" in shown.reason


def test_a_client_holds_nothing() -> None:
    assert would_hold(stage={"enabled": False}).span is None


def test_blocks_that_the_settings_fix_are_shown_as_they_are() -> None:
    shown = would_hold(stage={"blocks": (12, 22)})
    assert shown.span == (12, 22)
    assert shown.is_certain
