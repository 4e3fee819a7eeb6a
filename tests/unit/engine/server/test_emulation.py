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
from engine.protocol.frames import Row, RowFlags
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


def test_no_two_rows_are_equal_and_all_are_made_of_recorded_ones(directory):
    ids = np.arange(8, dtype=np.int32)
    hidden = stage(directory, Span(0, 1)).forward(rows(SESSIONS), ids, None).hidden
    assert hidden is not None
    assert hidden.shape == (8, WIDTH)
    assert len(torch.unique(hidden.view(torch.int16), dim=0)) == 8
    assert hidden.float().std() == pytest.approx(1.0, abs=0.1)


def test_what_comes_out_does_not_depend_on_the_batch(directory):
    ids = np.arange(8, dtype=np.int32)
    together = stage(directory, Span(0, 1)).forward(rows(SESSIONS), ids, None).hidden
    alone = stage(directory, Span(0, 1)).forward(rows(SESSIONS[3:4]), ids[3:4], None).hidden
    assert torch.equal(together[3:4], alone)


def test_one_wrong_bit_changes_the_next_id(directory):
    ids = np.arange(8, dtype=np.int32)
    hidden = stage(directory, Span(0, 1)).forward(rows(SESSIONS), ids, None).hidden
    wrong = hidden.clone()
    wrong.view(torch.int16)[:, 117] ^= 1
    right_ids, wrong_ids = (
        [token.id for token in stage(directory, Span(1, 2)).forward(rows(SESSIONS), ids, x).sampled]
        for x in (hidden, wrong)
    )
    assert right_ids == [
        token.id
        for token in stage(directory, Span(1, 2)).forward(rows(SESSIONS), ids, hidden).sampled
    ]
    assert len(set(right_ids)) > 6
    assert sum(a == b for a, b in zip(right_ids, wrong_ids, strict=True)) < 2


def test_a_pass_takes_no_less_than_the_whole_stage_however_few_its_rows(directory):
    slow = stage(directory, Span(0, 1), stage_s=0.05, rows=4)
    for sessions, at_least_s in ((SESSIONS[:1], 0.05), (SESSIONS, 0.1)):
        started_s = time.perf_counter()
        slow.forward(rows(sessions), np.arange(len(sessions), dtype=np.int32), None)
        assert time.perf_counter() - started_s >= at_least_s


def test_a_model_without_recorded_hidden_states_is_not_emulated(tmp_path):
    with pytest.raises(ModelCorrupt, match=r"emulated\.hidden_states"):
        stage(save_tiny("llama", tmp_path), Span(0, 1))
