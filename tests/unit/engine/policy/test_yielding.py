from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engine.config import GuestConfig
from engine.policy.causes import Kind
from engine.policy.readings import GpuReading, Reading
from engine.policy.yielding import MAX_FLIPS, Decision, Memory, decision, step

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday
QUIET_GPU = GpuReading(8 << 30, 2 << 30, others_busy_share=0.0, temperature_c=60.0)
QUIET = Reading(0.0, 1e9, NOON, in_swarm=True, gpu=QUIET_GPU)
EVERY_S = 2.0


class Guest:
    """A machine that is read every two seconds."""

    def __init__(self, **rules: object) -> None:
        self.rules = GuestConfig.model_validate(rules)
        self.memory = Memory()
        self.now_s = 0.0
        self.decision = Decision(runs=True)

    def see(self, seconds: float = 0.0, gpu: dict[str, object] | None = None, **fields) -> Decision:
        """Let the machine be so for some seconds, one reading at least."""
        until_s = self.now_s + seconds
        while True:
            reading = replace(
                QUIET,
                monotonic_s=self.now_s,
                unix_s=1e9 + self.now_s,
                local=NOON + timedelta(seconds=self.now_s),
                gpu=replace(QUIET_GPU, **(gpu or {})),
            )
            reading = replace(reading, **fields)
            self.memory = step(self.memory, reading, self.rules)
            self.decision = decision(self.memory, reading)
            self.now_s += EVERY_S
            if self.now_s > until_s:
                return self.decision


@pytest.mark.parametrize(
    ("kind", "rules", "fields", "says"),
    [
        (Kind.PROGRAM, {"exclusive_programs": ["blender"]}, {"programs": {"blender"}}, "blender"),
        (Kind.GAME, {}, {"in_game_mode": True}, "GameMode"),
        (
            Kind.FULL_SCREEN,
            {},
            {"full_screen": "factorio", "gpu": {"others_busy_share": 0.6}},
            "factorio, which fills the screen",
        ),
        (
            Kind.FULL_SCREEN,
            {},
            {"full_screen": "", "gpu": {"others_busy_share": None}},
            "a program, which fills the screen",
        ),
        (Kind.GPU_MEMORY, {}, {"gpu": {"free_bytes": 100 << 20}}, "memory"),
        (Kind.TEMPERATURE, {}, {"gpu": {"temperature_c": 91.0}}, "91 °C"),
        (Kind.BATTERY, {}, {"on_battery": True}, "battery"),
        (Kind.METERED, {}, {"is_metered": True}, "by the byte"),
        (Kind.SCHEDULE, {"schedule": ["mon 18:00-20:00"]}, {}, "schedule"),
        (Kind.USER, {"user_idle_s": 300}, {"user_idle_s": 3.0}, "use the computer"),
    ],
)
def test_each_reason_is_told_within_five_seconds(kind, rules, fields, says):
    guest = Guest(**rules)
    told = guest.see(2.0, **fields)  # two readings: four seconds at most after it began
    assert not told.runs
    assert told.kind is kind
    assert says in told.reason


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ({"on_battery": True}, {"on_battery": True}),
        ({"on_metered": True}, {"is_metered": True}),
        ({"to_games": False}, {"in_game_mode": True, "full_screen": "x"}),
        ({"gpu_free_bytes": 0}, {"gpu": {"free_bytes": 0}}),
        ({"gpu_max_c": 0}, {"gpu": {"temperature_c": 110.0}}),
        ({"user_idle_s": 300}, {"user_idle_s": 301.0}),
        ({"user_idle_s": 300}, {"user_idle_s": None}),
        ({"schedule": ["mon 11:00-20:00"]}, {}),
        # A video fills the screen too, and needs hardly any of the GPU.
        ({}, {"full_screen": "mpv", "gpu": {"others_busy_share": 0.05}}),
        # Where we do not use the GPU, a game on it is not in our way.
        ({}, {"full_screen": "game", "gpu": None}),
    ],
)
def test_nothing_is_yielded_to_what_the_person_allows_or_does_not_mind(rules, fields):
    guest = Guest(**rules)
    if "gpu" in fields and fields["gpu"] is None:
        fields = dict(fields)
        del fields["gpu"]
        reading = replace(QUIET, gpu=None, **fields)
        for at_s in (0.0, 2.0, 4.0):
            guest.memory = step(guest.memory, replace(reading, monotonic_s=at_s), guest.rules)
        assert guest.memory.cause is None
        return
    assert guest.see(20.0, **fields).runs


@pytest.mark.parametrize("fields", [{"on_battery": True}, {"is_metered": True}])
def test_a_node_that_is_solo_gives_nothing_so_it_yields_only_for_room(fields):
    assert Guest().see(20.0, in_swarm=False, **fields).runs
    assert not Guest().see(4.0, in_swarm=False, in_game_mode=True).runs


def test_a_load_of_one_moment_is_no_reason():
    guest = Guest()
    busy = {"full_screen": "editor", "gpu": {"others_busy_share": 0.9}}
    assert guest.see(0.0, **busy).runs
    assert guest.see(0.0).runs
    assert guest.see(0.0, **busy).runs


def test_the_stage_runs_again_after_a_quiet_period_and_says_when():
    guest = Guest(quiet_s=60)
    guest.see(4.0, in_game_mode=True)
    told = guest.see(0.0)
    assert not told.runs
    assert told.until_unix_s == pytest.approx(1e9 + guest.now_s + 60 - EVERY_S, abs=1)
    assert "over" in told.reason
    assert not guest.see(56.0).runs
    assert guest.see(4.0).runs


def test_a_reason_that_comes_back_begins_the_quiet_period_again():
    guest = Guest(quiet_s=60)
    guest.see(4.0, in_game_mode=True)
    guest.see(50.0)
    guest.see(2.0, in_game_mode=True)
    assert not guest.see(50.0).runs
    assert guest.see(14.0).runs


def test_a_schedule_tells_when_it_opens_and_resumes_just_then():
    guest = Guest(schedule=["mon 12:01-13:00"])
    told = guest.see(4.0)
    assert told.until_unix_s == pytest.approx(1e9 + 60)
    assert not guest.see(50.0).runs
    assert guest.see(6.0).runs


def test_a_hot_gpu_must_become_cooler_than_it_may_get():
    guest = Guest(gpu_max_c=85, quiet_s=0)
    assert not guest.see(4.0, gpu={"temperature_c": 86.0}).runs
    assert not guest.see(60.0, gpu={"temperature_c": 80.0}).runs
    assert guest.see(4.0, gpu={"temperature_c": 74.0}).runs


def test_memory_must_suffice_for_us_too_before_the_stage_comes_back():
    guest = Guest(gpu_free_bytes=256 << 20, quiet_s=0)
    assert not guest.see(4.0, gpu={"free_bytes": 100 << 20, "ours_bytes": 2 << 30}).runs
    # Our own two gigabytes are free now; taking them again would bring the shortage back.
    assert not guest.see(60.0, gpu={"free_bytes": 2 << 30, "ours_bytes": 0}).runs
    assert guest.see(4.0, gpu={"free_bytes": 5 << 30, "ours_bytes": 0}).runs


def test_programs_come_before_the_schedule():
    guest = Guest(schedule=["tue"])
    assert guest.see(4.0, in_game_mode=True).kind is Kind.GAME
    assert guest.see(4.0).kind is Kind.SCHEDULE


def test_who_flickers_is_yielded_to_for_longer():
    guest = Guest(quiet_s=0)
    flips = 0
    runs = True
    for turn in range(150):  # ten minutes
        now = guest.see(2.0, in_game_mode=turn % 2 == 0).runs
        flips += now is not runs
        runs = now
    assert flips <= MAX_FLIPS
