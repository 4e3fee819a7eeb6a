from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.server.pace import PassCost
from engine.server.prefill_share import MAX_PASS_ALONE_S, MAX_PASS_S, PrefillShare


@dataclass(slots=True)
class SimulatedStage:
    """Chats that decode in turn with chunks of a long prompt, in virtual time."""

    token_s: float
    """What a token of prefill costs."""
    step_s: float = 0.02
    now_s: float = 0.0

    def step(self, share: PrefillShare, *, prefill: bool) -> tuple[float, int]:
        """One decode step; how long it took, and what prefill rode along."""
        tokens = share.tokens(self.now_s, others_decode=True, base_s=0.0) if prefill else 0
        local_s = self.step_s + tokens * self.token_s
        self.now_s += local_s
        if tokens:
            share.prefilled(self.now_s, tokens, took_s=tokens * self.token_s, base_s=0.0)
        share.decoded(self.now_s, local_s=local_s, cost_s=self.step_s)
        return local_s, tokens


@pytest.mark.parametrize("token_s", [0.00001, 0.0005, 0.005])
def test_decoding_beside_a_long_prompt_takes_less_than_twice_as_long(token_s):
    stage, share = SimulatedStage(token_s), PrefillShare(512)
    for _ in range(100):
        stage.step(share, prefill=False)
    begun_s, prefilled = stage.now_s, 0
    steps = 400
    for _ in range(steps):
        prefilled += stage.step(share, prefill=True)[1]
    assert stage.now_s - begun_s < 2 * steps * stage.step_s
    assert prefilled >= 0.3 * steps * min(512, stage.step_s / token_s)  # and the prompt gets on


def test_tokens_that_get_dearer_with_the_prompt_make_no_step_much_longer():
    stage, share = SimulatedStage(0.0001), PrefillShare(512)
    for _ in range(100):
        stage.step(share, prefill=False)
    steps_s = []
    for _ in range(2000):
        stage.token_s *= 1.002  # fifty times as long at the end
        steps_s.append(stage.step(share, prefill=True)[0])
    assert max(steps_s[200:]) < 2.75 * stage.step_s


def test_cheap_prefill_comes_in_large_chunks():
    stage, share = SimulatedStage(0.00001), PrefillShare(512)
    for _ in range(100):
        stage.step(share, prefill=False)
    chunks = [stage.step(share, prefill=True)[1] for _ in range(100)]
    assert max(chunks) == 512


def test_prefill_that_is_done_before_the_others_are_back_costs_them_nothing():
    share = PrefillShare(512)
    now_s, late_s, prefilled = 0.0, 0.0, 0
    for step in range(600):
        back_s = now_s + 0.04  # the other stages' time
        while step >= 300 and (tokens := share.tokens(now_s, others_decode=True, base_s=0.01)):
            took_s = 0.01 + tokens * 0.0005
            now_s += took_s
            share.prefilled(now_s, tokens, took_s=took_s, base_s=0.01)
            prefilled += tokens
        late_s = max(late_s, now_s - back_s)
        now_s = max(now_s, back_s) + 0.02
        share.decoded(now_s, local_s=now_s - back_s, cost_s=0.02)
    assert late_s < 0.02
    assert prefilled * 0.0005 > 300 * 0.02


def test_prompt_alone_takes_whole_passes():
    share = PrefillShare(512)
    assert share.tokens(0.0, others_decode=False, base_s=0.0) == 512


def test_prompt_alone_takes_passes_that_one_who_comes_need_not_wait_long_for():
    share = PrefillShare(512)
    share.prefilled(1.0, 512, took_s=5.13, base_s=0.01)
    assert share.tokens(2.0, others_decode=False, base_s=0.01) == int(MAX_PASS_ALONE_S / 0.01)
    assert share.tokens(2.0, others_decode=False, base_s=1.0) == int(4 / 0.01)


def test_prompt_beside_sequences_that_do_not_get_on_goes_on_in_passes_that_stall_nobody():
    share = PrefillShare(512)
    share.decoded(1.0, local_s=0.02, cost_s=0.02)
    share.prefilled(1.0, 512, took_s=0.522, base_s=0.01)
    assert share.tokens(1.01, others_decode=True, base_s=0.01) == 0
    assert share.tokens(9.0, others_decode=True, base_s=0.01) == round((MAX_PASS_S - 0.01) / 0.001)


def test_slow_machine_does_not_hold_a_prompt_up_for_sequences_that_never_come_back():
    share = PrefillShare(512)
    share.decoded(1.0, local_s=0.4, cost_s=0.4)
    share.prefilled(2.0, 16, took_s=0.46, base_s=0.3)
    assert share.tokens(9.0, others_decode=True, base_s=0.3) == 16


def test_step_that_took_no_time_does_no_harm():
    share = PrefillShare(512)
    share.decoded(1.0, local_s=0.0, cost_s=0.0)
    assert share.tokens(1.0, others_decode=True, base_s=0.0) == 16


def test_pass_cost_is_read_off_passes_of_different_size():
    cost = PassCost()
    for _ in range(200):
        for rows in (1, 4, 16):
            cost.learn(rows, 0.02 + 0.001 * rows)
    assert cost.of(8) == pytest.approx(0.028, rel=0.02)
    assert cost.base_s == pytest.approx(0.02, rel=0.03)


def test_pass_cost_of_sizes_not_seen_is_a_guess_that_grows_with_rows():
    cost = PassCost()
    assert cost.of(3) == 0.0
    for _ in range(50):
        cost.learn(1, 0.02)
    assert cost.of(1) == pytest.approx(0.02)
    assert 0.02 < cost.of(8) < 0.04


def test_pass_cost_follows_a_machine_that_gets_slower():
    cost = PassCost()
    for time_s in (0.02, 0.04):
        for _ in range(300):
            cost.learn(8, time_s)
    assert cost.of(8) == pytest.approx(0.04, rel=0.02)
