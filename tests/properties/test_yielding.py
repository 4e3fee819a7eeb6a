"""However the machine behaves: soon yielded, seldom flickering, and run again in the end."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.config import GuestConfig
from engine.policy.readings import GpuReading, Reading
from engine.policy.yielding import MAX_FLIPS, WINDOW_S, Memory, decision, step

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

stretches = st.lists(
    st.tuples(
        st.sampled_from(
            ["nothing", "program", "game", "screen", "memory", "heat", "battery", "user"]
        ),
        st.integers(1, 40),
    ),
    max_size=60,
)


def seen(what: str, at_s: float) -> Reading:
    return Reading(
        at_s,
        1e9 + at_s,
        NOON + timedelta(seconds=at_s),
        in_swarm=True,
        on_battery=what == "battery",
        programs=frozenset({"x"}) if what == "program" else frozenset(),
        in_game_mode=what == "game",
        full_screen="y" if what == "screen" else None,
        gpu=GpuReading(
            0 if what == "memory" else 8 << 30, 1 << 30, 0.5, 99.0 if what == "heat" else 50.0
        ),
        user_idle_s=0.0 if what == "user" else 1e6,
    )


@given(stretches, st.sampled_from([0.0, 10.0, 60.0]), st.sampled_from([0.5, 2.0]))
def test_yields_begin_soon_flicker_seldom_and_end(machine, quiet_s, every_s):
    rules = GuestConfig(quiet_s=quiet_s, user_idle_s=60, exclusive_programs=("x",))
    memory, now_s, runs = Memory(), 0.0, True
    flips_s = []
    for what, readings in [*machine, ("nothing", int((WINDOW_S + quiet_s) / every_s) + 2)]:
        began_s = now_s
        for _ in range(readings):
            reading = seen(what, now_s)
            memory = step(memory, reading, rules)
            told = decision(memory, reading)
            if what != "nothing" and now_s - began_s >= 2.0:
                assert not told.runs
            assert told.runs or told.reason.endswith(".")
            if told.runs is not runs:
                flips_s.append(now_s)
                runs = told.runs
            now_s += every_s
    assert runs
    for flip_s in flips_s:
        assert sum(flip_s <= other_s < flip_s + WINDOW_S for other_s in flips_s) <= MAX_FLIPS
