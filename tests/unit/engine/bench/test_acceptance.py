from __future__ import annotations

from pathlib import Path

import pytest

from engine.bench.acceptance import AcceptanceBench, lines, measure
from engine.core.errors import ConfigError
from engine.models.layout import ModelFiles, read_spec
from tests.support.tiny_draft import write_tiny_draft
from tests.support.tiny_models import save_tiny

PROMPTS = [[5, 99, 301, 7], [260, 44, 12], [9, 8, 7, 6, 5]]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    directory = save_tiny("llama", tmp_path_factory.mktemp("acceptance") / "tiny")
    return ModelFiles(read_spec(directory, "tiny@0"), directory, "")


def test_what_happens_is_what_must_be_expected_and_no_rule_beats_the_overlap(
    target: ModelFiles, tmp_path: Path
) -> None:
    write_tiny_draft(tmp_path / "draft", target.directory, target.spec, wrong=0.2)
    said: list[str] = []
    report = measure(
        AcceptanceBench(target, tmp_path / "draft", PROMPTS, 60, (1.0, 4.0)), said.append
    )
    assert len(said) == len(report.rows) == 2
    for row in report.rows:
        assert row.places == 180
        most = row.probabilities_expected
        assert most / (2 - most) < row.shared_noise_expected < most < 1
        # Three standard deviations of a share of so many places.
        assert row.shared_noise == pytest.approx(row.shared_noise_expected, abs=0.11)
        assert row.probabilities == pytest.approx(most, abs=0.11)
    assert len(list(lines(report))) == 4


def test_a_model_without_a_draft_is_refused(target: ModelFiles) -> None:
    with pytest.raises(ConfigError, match="no draft for this model"):
        measure(AcceptanceBench(target, None, PROMPTS, 4, (1.0,)), print)
