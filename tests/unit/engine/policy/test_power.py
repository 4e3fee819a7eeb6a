import pytest

from engine.policy.power import LEAST_SHARE, work_share

READINGS = 60  # two minutes


def drawn(share: float, idle_w: float, peak_w: float) -> float:
    return idle_w + share * (peak_w - idle_w)


@pytest.mark.parametrize(
    ("idle_w", "peak_w", "cap_w"), [(20, 150, 100), (70, 700, 300), (70, 700, 120), (30, 450, 400)]
)
def test_a_busy_gpu_comes_under_its_cap_within_seconds_and_stays_just_there(idle_w, peak_w, cap_w):
    share, seen = 1.0, []
    for _ in range(READINGS):
        seen.append(drawn(share, idle_w, peak_w))
        share = work_share(share, seen[-1], cap_w)
    assert all(power_w <= cap_w for power_w in seen[8:])  # 16 s
    assert seen[-1] == pytest.approx(0.97 * cap_w, rel=0.01)


def test_a_cap_that_is_never_reached_costs_nothing():
    share = 1.0
    for _ in range(READINGS):
        share = work_share(share, drawn(share, 20, 150), 200)
    assert share == 1.0


def test_a_gpu_that_draws_more_without_us_does_not_stop_us_for_ever():
    share = 1.0
    for _ in range(READINGS):
        share = work_share(share, 300.0, 100)
    assert share == LEAST_SHARE


def test_after_others_have_gone_all_of_the_time_is_ours_again():
    share = LEAST_SHARE
    for _ in range(READINGS):
        share = work_share(share, drawn(share, 20, 90), 100)
    assert share == 1.0


@pytest.mark.parametrize(("power_w", "cap_w"), [(None, 100.0), (300.0, 0.0)])
def test_without_a_cap_or_a_reading_there_is_no_pause(power_w, cap_w):
    assert work_share(0.3, power_w, cap_w) == 1.0
