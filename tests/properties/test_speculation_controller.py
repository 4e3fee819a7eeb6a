"""Simulated sessions: the controller against plain decoding, with times and texts it cannot know."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.generation import DraftMode
from engine.planner.speculation import break_even_bytes_per_s
from engine.speculation.controller import Controller, Reason
from engine.speculation.costs import PLAIN, Costs, Option, Source
from engine.speculation.estimates import Acceptance, Timing

LEAST_SHARE = 0.97
"""Of plain decoding's speed, whatever happens."""
TOKENS = 160

LOOKUP = Option(Source.LOOKUP, 8)
OPTIONS = (
    LOOKUP,
    Option(Source.MODEL, 2),
    Option(Source.MODEL, 4),
    Option(Source.MODEL, 8),
    Option(Source.MODEL, 13, width=4),
    Option(Source.LOOKUP, 8, ahead=4),
    Option(Source.LOOKUP, 8, beside=True),
    Option(Source.MODEL, 13, width=4, beside=True),
)
COSTS = Costs(
    num_stages=3,
    compute_s=0.03,
    compute_token_s=0.004,
    token_bytes=1152,
    bytes_per_s=2.5e6,
    rtt_s=0.05,
    draft_token_s={Source.LOOKUP: 0.00005, Source.MODEL: 0.008},
)

Rates = Callable[[int, Option], float]
"""The true chance that a place is right, by token and option."""


@dataclass(frozen=True)
class World:
    """What the controller is not told."""

    rates: Rates
    costs: Callable[[int], Costs]
    """By token."""
    plain_factor: float = 1.0
    """True over predicted time."""
    round_factor: float = 1.0
    judging_factor: float = 1.0
    """The same besides, of rounds that are verified by probabilities."""
    noise: float = 0.1


def play(
    world: World,
    told: Costs,
    seed: int,
    tokens: int = TOKENS,
    options: Sequence[Option] = OPTIONS,
) -> tuple[float, float]:
    """Seconds of a session with the controller, and of plain decoding."""
    rng = random.Random(seed)
    controller = Controller(options, told, Timing())
    done, taken_s, plain_s = 0, 0.0, 0.0
    expected = False  # whether the last row had a draft beside the ring
    flowing: Option | None = None  # whose next chunk is on its way, and right so far
    while done < tokens:
        costs = world.costs(done)
        controller.set_costs(told if options is MODES else costs)
        option = controller.choose().option
        right, flows = 0, flowing == option
        places = option.depth - flows  # one of them was the last answer
        flowing = None
        # Beside a ring a row with a draft comes after one without, and its first place is another guess.
        expected = option.beside and not expected and rng.random() < world.rates(done, option)
        if option.is_plain:  # look-up is held against what was committed without it
            controller.observe_guesses(LOOKUP, 1, int(rng.random() < world.rates(done, LOOKUP)))
        elif option.beside:
            while expected and right < places - 1 and rng.random() < world.rates(done, option):
                right += 1
            controller.observe_guesses(option, 1, right)
            if expected:
                led = replace(option, beside=False)
                controller.observe_guesses(led, min(right + 1, places - 1), right)
        else:
            while right < places and rng.random() < world.rates(done, option):
                right += 1
            controller.observe_guesses(option, min(right + 1, places), right)
            if option.ahead > 1 and right == places and rng.random() < world.rates(done, option):
                flowing = option
        factor = world.plain_factor if option.is_plain else world.round_factor
        is_judged = option.mode is not DraftMode.SHARED
        factor *= world.judging_factor if is_judged else 1.0
        jitter = 1 + world.noise * (2 * rng.random() - 1)
        sure = float(right == option.num_tokens) if is_judged else float(flows)
        round_s = costs.round_s(option, sure) * factor * jitter
        if option.beside:
            more_s = 2 * (costs.round_s(option) - costs.plain_s) * expected
            round_s = (costs.plain_s * world.plain_factor + more_s * factor) * jitter
        seen = option if flows else replace(option, ahead=1)
        controller.observe(seen, 1 + right, round_s)
        taken_s += round_s
        committed = min(1 + right, tokens - done)
        plain_s += committed * costs.plain_s * world.plain_factor
        done += committed
    return taken_s, plain_s


def best_speed_up(rate: float, lookup: float, costs: Costs) -> float:
    """Of the best option, taken from the first token to the last."""
    of = steady(rate, lookup)
    return max(
        sum(of(0, option) ** depth for depth in range(option.depth + 1))
        * costs.plain_s
        / costs.round_s(option)
        for option in OPTIONS
        if not option.beside
    )


def steady(rate: float, lookup: float) -> Rates:
    def of(token: int, option: Option) -> float:
        if option.source is Source.LOOKUP:
            return lookup
        return rate if option.width == 1 else 1 - (1 - rate) ** 1.5

    return of


def shares(world: World, told: Costs) -> list[float]:
    """Of plain decoding's speed, over some sessions."""
    played = [play(world, told, seed) for seed in range(9)]
    return sorted(plain_s / taken_s for taken_s, plain_s in played)


factors = st.floats(0.6, 1.7)


@settings(deadline=None, max_examples=25)
@given(
    rate=st.floats(0.0, 0.9),
    lookup=st.floats(0.0, 0.9),
    compute_s=st.floats(0.001, 0.2),
    token_share=st.floats(0.0, 0.4),
    rtt_s=st.floats(0.0, 0.2),
    bytes_per_s=st.floats(1e5, 1e8),
    batch_size=st.sampled_from([1, 8, 32]),
    plain_factor=factors,
    round_factor=factors,
    takes_expected=st.booleans(),
)
def test_no_session_is_slower_than_plain_decoding(
    rate: float,
    lookup: float,
    compute_s: float,
    token_share: float,
    rtt_s: float,
    bytes_per_s: float,
    batch_size: int,
    plain_factor: float,
    round_factor: float,
    takes_expected: bool,
) -> None:
    costs = replace(
        COSTS,
        compute_s=compute_s,
        compute_token_s=token_share * compute_s,
        rtt_s=rtt_s,
        bytes_per_s=bytes_per_s,
        batch_size=batch_size,
        takes_expected=takes_expected,
    )
    world = World(steady(rate, lookup), lambda token: costs, plain_factor, round_factor)
    taken = shares(world, costs)
    assert taken[len(taken) // 2] >= LEAST_SHARE


@settings(deadline=None, max_examples=15)
@given(
    texts=st.lists(st.tuples(st.floats(0, 0.9), st.floats(0, 0.95)), min_size=2, max_size=5),
    links=st.lists(st.floats(1e5, 1e7), min_size=1, max_size=3),
    rtts=st.lists(st.floats(0.0, 0.2), min_size=1, max_size=3),
)
def test_texts_and_links_that_change_make_no_session_slower(
    texts: Sequence[tuple[float, float]], links: Sequence[float], rtts: Sequence[float]
) -> None:
    def part(values: Sequence[float], token: int) -> float:
        return values[min(token * len(values) // TOKENS, len(values) - 1)]

    def costs(token: int) -> Costs:
        return replace(COSTS, bytes_per_s=part(links, token), rtt_s=part(rtts, token))

    def rates(token: int, option: Option) -> float:
        rate, lookup = texts[min(token * len(texts) // TOKENS, len(texts) - 1)]
        return steady(rate, lookup)(token, option)

    taken = shares(World(rates, costs), costs(0))
    assert taken[len(taken) // 2] >= LEAST_SHARE


@pytest.mark.parametrize(("rate", "lookup"), [(0.75, 0.2), (0.5, 0.1), (0.2, 0.85), (0.1, 0.6)])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_what_pays_is_used(rate: float, lookup: float, batch_size: int) -> None:
    costs = replace(COSTS, rtt_s=0.13, batch_size=batch_size, compute_token_s=0.0005)
    best = best_speed_up(rate, lookup, costs)
    assert best > 1.2
    taken = shares(World(steady(rate, lookup), lambda token: costs), costs)
    assert taken[len(taken) // 2] >= 1 + 0.7 * (best - 1)


def test_drafts_wait_beside_the_ring_where_the_client_is_too_far_to_lead() -> None:
    costs = replace(
        COSTS,
        num_stages=1,
        compute_s=0.04,
        compute_token_s=0.0002,
        bytes_per_s=1e9,
        rtt_s=0.0,
        client_rtt_s=0.02,
        draft_token_s={Source.LOOKUP: 0.00005, Source.MODEL: 0.002},
    )
    led, beside = (
        shares(World(steady(0.6, 0.1), lambda token, there=there: there), there)[4]
        for there in (costs, replace(costs, takes_expected=True))
    )
    assert beside > max(1.15, led)


def test_a_text_that_turns_to_copying_is_noticed() -> None:
    costs = replace(COSTS, rtt_s=0.13)

    def rates(token: int, option: Option) -> float:
        return steady(0.1, 0.02 if token < TOKENS // 2 else 0.9)(token, option)

    world = World(rates, lambda token: costs)
    before = replace(world, rates=steady(0.1, 0.02))
    assert shares(world, costs)[4] > 1.2 * shares(before, costs)[4]


def test_it_turns_on_and_off_where_the_paper_says() -> None:
    """The prediction alone, without hysteresis: eq. 9's S*."""
    option = Option(Source.MODEL, 8)
    acceptance = Acceptance()
    acceptance.note(option, 1000, 700)
    a = acceptance.committed(option)
    costs = replace(COSTS, compute_token_s=0.0008)
    m = 1 + 8 * costs.compute_token_s / costs.compute_s
    break_even = break_even_bytes_per_s(
        1, 9, a, costs.token_bytes, costs.rtt_s, costs.compute_s, m, costs.draft_s(option) / 3
    )
    assert 0 < break_even < float("inf")
    for factor, pays in ((0.98, False), (1.02, True)):
        there = replace(costs, bytes_per_s=break_even * factor)
        assert (a * there.plain_s > there.round_s(option)) is pays


def test_disco_is_chosen_below_its_bandwidth_and_dssd_above() -> None:
    options = [Option(Source.MODEL, 4, mode=mode) for mode in (DraftMode.DISCO, DraftMode.DSSD)]
    costs = replace(COSTS, num_stages=1, rtt_s=0.0, vocab_size=50_272, replica_s=0.01)
    at_bytes_per_s = costs.vocab_size * 2 / costs.replica_s
    for factor, expected in ((0.9, DraftMode.DISCO), (1.1, DraftMode.DSSD)):
        there = replace(costs, down_bytes_per_s=at_bytes_per_s * factor)
        best = min(options, key=lambda option: there.round_s(option, 0.3))
        assert best.mode is expected


MODES = tuple(Option(Source.MODEL, number, mode=mode) for mode in DraftMode for number in (2, 4, 8))
CLIENT = replace(
    COSTS,
    num_stages=1,
    compute_s=0.04,
    compute_token_s=0.0,
    rtt_s=0.0,
    client_rtt_s=0.02,
    vocab_size=49_152,
    drawn_token_s=0.002,
    draft_token_s={Source.MODEL: 0.002},
)
"""[DC]'s setting."""


@pytest.mark.parametrize(
    ("mbit", "replica_s", "expected"),
    [
        (1, 0.005, {DraftMode.DISCO}),
        (1, float("inf"), {DraftMode.SHARED}),
        (30, 0.03, {DraftMode.SHARED}),
        (1000, 0.03, {DraftMode.DSSD, DraftMode.DSD}),
        (1000, float("inf"), {DraftMode.DSSD, DraftMode.DSD}),
    ],
    ids=[
        "slow-line",
        "slow-line-and-no-replica",
        "neither-gains-what-it-takes",
        "fast-line",
        "fast-line-and-no-replica",
    ],
)
def test_mode_is_what_line_replica_and_acceptance_make_the_fastest(
    mbit: float, replica_s: float, expected: set[DraftMode]
) -> None:
    line = mbit * 1e6 / 8
    costs = replace(CLIENT, up_bytes_per_s=line, down_bytes_per_s=line, replica_s=replica_s)
    rates = {True: 0.70, False: 0.80}  # by shared noise a little less than by probabilities
    chosen: Counter[DraftMode] = Counter()
    for seed in range(8):
        rng, controller = random.Random(seed), Controller(MODES, costs, Timing())
        for _ in range(200):
            option, right = controller.choose().option, 0
            if option.is_plain:
                controller.observe(option, 1.0, costs.plain_s)
                continue
            rate = rates[option.mode is DraftMode.SHARED]
            while right < option.num_tokens and rng.random() < rate:
                right += 1
            chosen[option.mode] += 1
            controller.observe_guesses(option, min(right + 1, option.num_tokens), right)
            is_right = float(right == option.num_tokens)
            controller.observe(option, 1 + right, costs.round_s(option, is_right))
    assert sum(chosen[mode] for mode in expected) > 0.8 * chosen.total() > 300


@settings(deadline=None, max_examples=15)
@given(
    rate=st.floats(0.0, 0.9),
    gain=st.floats(0.0, 0.3),
    mbit=st.floats(0.5, 1000),
    told_share=st.floats(0.2, 5.0),
    replica_s=st.sampled_from([0.002, 0.03, float("inf")]),
    judging_factor=st.floats(0.9, 1.6),
)
def test_no_session_with_a_choice_of_modes_is_slower_than_plain_decoding(
    rate: float,
    gain: float,
    mbit: float,
    told_share: float,
    replica_s: float,
    judging_factor: float,
) -> None:
    line = mbit * 1e6 / 8
    costs = replace(CLIENT, up_bytes_per_s=line, down_bytes_per_s=line, replica_s=replica_s)
    told = replace(costs, up_bytes_per_s=told_share * line, down_bytes_per_s=told_share * line)

    def rates(token: int, option: Option) -> float:
        return rate if option.mode is DraftMode.SHARED else rate + gain * (1 - rate)

    world = World(rates, lambda token: costs, judging_factor=judging_factor)
    taken = sorted(
        plain_s / taken_s
        for taken_s, plain_s in (play(world, told, seed, options=MODES) for seed in range(9))
    )
    assert taken[len(taken) // 2] >= LEAST_SHARE


def test_each_rule_speaks_for_the_other() -> None:
    for known, asked, expected in ((MODES[0], MODES[-1], 0.66), (MODES[-1], MODES[0], 0.60)):
        acceptance = Acceptance()
        right = 600 if known is MODES[0] else 660
        acceptance.note(known, 1000, right)
        assert acceptance.per_place(asked) == pytest.approx(expected, abs=0.01)


def test_it_says_why_nothing_is_drafted() -> None:
    assert Controller([], COSTS, Timing()).choose().reason is Reason.NOTHING_TO_DRAFT_WITH
    timing = Timing()
    timing.note(PLAIN, COSTS.plain_s, COSTS.plain_s)
    slow = replace(COSTS, draft_token_s={Source.MODEL: 1.0})
    models = [option for option in OPTIONS if option.source is Source.MODEL]
    assert Controller(models, slow, timing).choose().reason is Reason.TOO_SLOW
    controller = Controller(OPTIONS[:1], COSTS, timing)
    controller.observe_guesses(OPTIONS[0], 50, 0)
    assert controller.choose().reason is Reason.TOO_FEW_RIGHT


def test_probabilities_are_for_chains_of_a_model() -> None:
    for wrong in (
        {"source": Source.LOOKUP},
        {"source": Source.MODEL, "width": 2},
    ):
        with pytest.raises(ValueError, match="chains of a model"):
            Option(num_tokens=4, mode=DraftMode.DISCO, **wrong)  # type: ignore[arg-type]


def test_a_draft_with_nothing_to_say_leaves_the_round_to_another() -> None:
    timing = Timing()
    timing.note(PLAIN, COSTS.plain_s, COSTS.plain_s)
    controller = Controller(OPTIONS, replace(COSTS, rtt_s=0.3), timing)
    for option, right in ((LOOKUP, 45), (OPTIONS[2], 40)):
        controller.observe_guesses(option, 50, right)
    assert controller.choose().option.source is Source.LOOKUP
    assert controller.choose({Source.LOOKUP}).option.source is Source.MODEL
    assert controller.choose(set(Source)).option == PLAIN
