import dataclasses

import pytest

from engine.core.errors import ModelError
from engine.models.known import known_spec, starter_spec
from engine.models.layout import read_spec
from tests.support.starter import starter_directory
from tests.support.tiny_models import save_tiny


def test_a_folder_is_known_by_its_config(tmp_path):
    spec = known_spec(str(save_tiny("qwen3", tmp_path / "tiny")), tmp_path)
    assert spec is not None
    assert (spec.family, spec.hidden_size, spec.name) == ("qwen3", 64, "tiny")


def test_a_model_that_is_not_here_is_not_known_and_nothing_is_asked_of_a_network(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("socket.socket.connect", None)
    assert known_spec("some-owner/some-model", tmp_path) is None


def test_a_family_that_cannot_be_run_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ModelError):
        known_spec(str(tmp_path), tmp_path)


@pytest.mark.slow
def test_the_starter_is_known_before_it_is_here():
    there = read_spec(starter_directory(), starter_spec().model_id)
    sampling = dict.fromkeys(("default_temperature", "default_top_p", "default_top_k"), 0)
    assert dataclasses.replace(there, **sampling) == dataclasses.replace(starter_spec(), **sampling)
