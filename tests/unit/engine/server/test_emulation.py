"""The emulated stage: real payloads, ids that depend on every bit, and the time it shall take."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.bench.emulated_model import write_emulated
from engine.config import StageEmulation
from engine.core.errors import ModelCorrupt
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import read_spec
from engine.protocol.rows import Row, RowFlags
from engine.server.stage import Stage
from tests.support.tiny_models import save_tiny

WIDTH, BLOCKS, RECORDED_WIDTH = 200, 2, 64
SESSIONS = [SessionId(number) for number in range(1, 9)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("emulated")
    recorded = torch.randn(512, RECORDED_WIDTH, generator=torch.Generator().manual_seed(0))
    write_emulated(folder, recorded, WIDTH, BLOCKS, torch.bfloat16)
    return folder


def stage(directory: Path, span: Span, *, stage_s: float = 1e-6, rows: int = 8) -> Stage:
    made = Stage(
        directory,
        read_spec(directory, "emulated@0"),
        span,
        dtype=torch.bfloat16,
        device=torch.device("cpu"),
        progress=lambda done, total: None,
        emulate=StageEmulation(stage_s=stage_s, rows=rows),
    )
    for session in SESSIONS:
        made.open(session, span, 32, 1, SamplingParams(max_new_tokens=31))
    return made


def rows(sessions: list[SessionId], position: int = 0) -> list[Row]:
    return [Row(session, position, 1, flags=RowFlags.SAMPLE) for session in sessions]


IDS = np.arange(8, dtype=np.int32)


def test_no_two_rows_are_equal_and_all_are_made_of_recorded_ones(directory):
    hidden = stage(directory, Span(0, 1)).forward(rows(SESSIONS), IDS, None).hidden
    assert hidden is not None
    assert hidden.shape == (8, WIDTH)
    assert len(torch.unique(hidden.view(torch.int16)[:, 3:], dim=0)) == 8
    assert hidden.float().std() == pytest.approx(1.0, abs=0.1)


def test_what_comes_out_does_not_depend_on_the_batch(directory):
    together = stage(directory, Span(0, 1)).forward(rows(SESSIONS), IDS, None).hidden
    alone = stage(directory, Span(0, 1)).forward(rows(SESSIONS[3:4]), IDS[3:4], None).hidden
    assert torch.equal(together[3:4], alone)


def test_sequences_that_differ_stay_different(directory):
    whole = stage(directory, Span(0, BLOCKS))
    ids, seen = IDS, set()
    for position in range(30):
        sampled = whole.forward(rows(SESSIONS, position), ids, None).sampled
        ids = np.array([token.id for token in sampled], np.int32)
        assert len(set(ids)) == 8
        seen.update(ids.tolist())
    assert len(seen) > 150


def test_one_wrong_bit_changes_the_next_id(directory):
    hidden = stage(directory, Span(0, 1)).forward(rows(SESSIONS), IDS, None).hidden
    right = stage(directory, Span(1, 2)).forward(rows(SESSIONS), IDS, hidden).sampled
    whole = stage(directory, Span(0, BLOCKS)).forward(rows(SESSIONS), IDS, None).sampled
    assert [token.id for token in right] == [token.id for token in whole]
    for channel in (0, 1, 2, 117, WIDTH - 1):
        hidden.view(torch.int16)[5, channel] ^= 64
        wrong = stage(directory, Span(1, 2)).forward(rows(SESSIONS), IDS, hidden).sampled
        hidden.view(torch.int16)[5, channel] ^= 64
        differing = [a.id != b.id for a, b in zip(right, wrong, strict=True)]
        assert differing == [number == 5 for number in range(8)]


def test_a_pass_takes_no_less_than_the_whole_stage_however_few_its_rows(directory):
    slow = stage(directory, Span(0, 1), stage_s=0.05, rows=4)
    for sessions, at_least_s in ((SESSIONS[:1], 0.05), (SESSIONS, 0.1)):
        started_s = time.perf_counter()
        slow.forward(rows(sessions), np.arange(len(sessions), dtype=np.int32), None)
        assert time.perf_counter() - started_s >= at_least_s


def test_a_model_without_recorded_hidden_states_is_not_emulated(tmp_path):
    with pytest.raises(ModelCorrupt, match=r"emulated\.hidden_states"):
        stage(save_tiny("llama", tmp_path), Span(0, 1))
