"""The bench's arithmetic on runs whose numbers are known."""

import pytest

from engine.bench.bounds import Limits, link_bound
from engine.bench.children import Machine
from engine.bench.measured import Counters, Measured
from engine.bench.report import (
    Shape,
    local_run,
    step_ms_median,
    swarm_run,
    tokens_per_s,
    ttft_s,
)
from engine.protocol.messages import StatsReply

HERE = Machine("here", cores=2)
STEP_S = 0.1
FRAME_BYTES = 2368


def even_arrivals(rows: int, tokens: int, *, first_s: float = 1.0) -> list[tuple[float, ...]]:
    return [tuple(first_s + STEP_S * step for step in range(tokens)) for _ in range(rows)]


def stage(passes: int, rows: int, *, compute_s: float, sent: dict[str, int]) -> StatsReply:
    """Counters after so many passes of `rows` tokens, each taking `compute_s` of compute."""
    return StatsReply(
        request=0,
        forwards=passes,
        tokens=passes * rows,
        compute_s=passes * compute_s,
        cpu_s=passes * compute_s,
        encode_s=passes * 0.001,
        wait_s=passes * 0.002,
        local_s=passes * (compute_s + 0.006),
        sent_bytes={peer: passes * count for peer, count in sent.items()},
    )


def swarm(
    *, rows: int = 2, passes: int = 10, compute_s: float = 0.02, arrivals_s=None, ids: str = "a"
) -> Measured:
    """Stages A and B and a client C; every step takes `STEP_S`."""

    def counters(passes_so_far: int) -> Counters:
        onward = {"B": FRAME_BYTES}
        back = {"A": 92, "C": 92}
        return Counters(
            stages=(
                stage(passes_so_far, rows, compute_s=compute_s, sent=onward),
                stage(passes_so_far, rows, compute_s=2 * compute_s, sent=back),
            ),
            client_sent_bytes={"A": 500},
        )

    return Measured(
        started_s=0.5,
        arrivals_s=arrivals_s or even_arrivals(rows, passes + 1),
        ids_sha256=ids,
        client="C",
        hops=("A", "B"),
        before=counters(7),
        after=counters(7 + passes),
    )


def limits(**fields) -> Limits:
    return Limits(**{"line_rate_bytes_per_s": 0.0, "machines": (HERE, HERE), **fields})


def test_the_decode_rate_leaves_out_the_time_to_the_first_token():
    assert tokens_per_s(even_arrivals(1, 11, first_s=50.0)) == pytest.approx(1 / STEP_S)
    assert tokens_per_s(even_arrivals(4, 11)) == pytest.approx(4 / STEP_S)


def test_the_decode_rate_counts_only_the_time_in_which_every_sequence_decodes():
    early = tuple(0.01 * step for step in range(100)) + even_arrivals(1, 21)[0]
    late = even_arrivals(1, 41)[0]
    assert tokens_per_s([early, late]) == pytest.approx(2 / STEP_S)


def test_a_window_too_short_for_a_sequence_counts_all_of_it():
    assert tokens_per_s([(1.0, 2.0), (1.001, 2.001)]) == pytest.approx(2.0)


def test_time_to_first_token_waits_for_the_last_sequence():
    arrivals_s = [(1.0, 2.0), (1.5, 2.5)]
    assert ttft_s(swarm(arrivals_s=arrivals_s)) == pytest.approx(1.0)


def test_one_stall_does_not_move_the_median_step():
    arrivals_s = [(0.0, 0.1, 0.2, 5.2, 5.3)]
    assert step_ms_median(arrivals_s) == pytest.approx(100.0)


def test_the_parts_of_a_step_add_up_to_it():
    run = swarm_run("shoal", [swarm()], [], limits())
    step = run.step_ms
    assert step.compute == pytest.approx(20 + 40)
    assert step.encode == pytest.approx(2)
    assert step.wait == pytest.approx(2 * (2 + 3))  # in the queue, and between agent and worker
    assert step.compute + step.encode + step.wait + step.wire == pytest.approx(1e3 * STEP_S)


def test_bytes_are_counted_per_step_in_the_order_of_the_ring():
    run = swarm_run("shoal", [swarm(rows=2, passes=10)], [], limits())
    # Of ten steps only nine have ids that go round again, which the counters of a real run show.
    assert run.link_bytes_per_step == pytest.approx([FRAME_BYTES, 92 * 10 / 9])
    assert run.client_bytes_per_step == pytest.approx(92)
    assert run.client_bytes_per_sequence_step == pytest.approx(46)


def test_shared_cores_bound_the_sum_of_all_stages():
    run = swarm_run("shoal", [swarm(rows=2, compute_s=0.02)], [], limits())
    # 2 cores over (10 + 20) ms for each token
    assert run.bound_tokens_per_s == pytest.approx(2 / 0.030)
    assert run.bound_by == "compute"
    assert run.bound_share == pytest.approx(20 / (2 / 0.030))


def test_the_slowest_machine_bounds_stages_that_share_nothing():
    machines = (Machine("first", cores=1), Machine("second", cores=4))
    run = swarm_run("shoal", [swarm()], [], limits(machines=machines))
    assert run.bound_tokens_per_s == pytest.approx(1 / 0.010)


def test_the_best_micro_batch_sets_the_compute_bound():
    better = swarm(rows=2, compute_s=0.01)
    run = swarm_run("shoal", [swarm(rows=2, compute_s=0.02)], [better], limits())
    assert run.bound_tokens_per_s == pytest.approx(2 / 0.015)


def test_an_accelerator_is_one_core_for_as_long_as_its_passes_take():
    run = swarm_run("shoal", [swarm()], [], limits(on_accelerator=True))
    assert run.bound_tokens_per_s == pytest.approx(1 / 0.030)


def test_an_emulated_accelerator_bounds_by_its_own_rate():
    run = swarm_run("shoal", [swarm()], [], limits(emulated_tokens_per_s=780.0))
    assert run.bound_tokens_per_s == 780


def test_a_slow_line_bounds_by_its_busiest_link():
    run = swarm_run("shoal", [swarm(rows=2)], [], limits(line_rate_bytes_per_s=FRAME_BYTES * 8.0))
    assert run.bound_by == "links"
    assert run.bound_tokens_per_s == pytest.approx(16)


def test_ideal_links_of_the_client_bound_nothing():
    rate = FRAME_BYTES * 8.0
    assert link_bound([92.0], FRAME_BYTES, 2, limits(line_rate_bytes_per_s=rate)) == 16
    ideal = limits(line_rate_bytes_per_s=rate, ideal_client_link=True)
    assert link_bound([92.0], FRAME_BYTES, 2, ideal) is None
    assert link_bound([FRAME_BYTES, 10 * FRAME_BYTES], 92, 2, ideal) == 16


def test_the_ring_delays_each_token_of_a_batch_whatever_the_rate():
    run = swarm_run("shoal", [swarm(rows=4)], [], limits(ring_s=0.2))
    assert run.latency_bound_tokens_per_s == pytest.approx(20)
    assert swarm_run("shoal", [swarm()], [], limits()).latency_bound_tokens_per_s is None


def test_a_links_codec_ratio_leaves_out_what_frames_add():
    # 36 bytes a frame and 26 a row beside the hidden states: 2 rows of 1,150 of 2,300 bytes
    run = swarm_run("shoal", [swarm(rows=2)], [], limits(), Shape(hidden_row_bytes=2300))
    hidden, back = run.links
    assert hidden.codec_ratio == pytest.approx((FRAME_BYTES - 36 - 52) / 4600)
    assert hidden.bytes_per_row == FRAME_BYTES / 2
    assert back.codec_ratio is None


def test_the_median_repeat_is_reported_with_all_its_own_numbers():
    def at(step_s: float, ids: str) -> Measured:
        return swarm(arrivals_s=[tuple(step_s * step for step in range(11))] * 2, ids=ids)

    run = swarm_run("shoal", [at(0.1, "fast"), at(0.4, "slow"), at(0.2, "middle")], [], limits())
    assert run.tokens_per_s == pytest.approx(10)
    assert run.ids_sha256 == "middle"
    assert run.repeats_tokens_per_s == pytest.approx([20, 5, 10])


def test_a_local_run_has_no_links():
    measured = Measured(started_s=0.0, arrivals_s=even_arrivals(2, 5), ids_sha256="a")
    run = local_run("local", [measured])
    assert run.tokens_per_s == pytest.approx(20)
    assert run.step_ms.compute == pytest.approx(1e3 * STEP_S)
    assert run.link_bytes_per_step == []
    assert run.bound_tokens_per_s is None
