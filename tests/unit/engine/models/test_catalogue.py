from __future__ import annotations

import math
from pathlib import Path

import pytest

from engine.core.errors import ModelError
from engine.models.catalogue import catalogue
from engine.models.families import FAMILIES
from engine.models.known import starter_spec

ROOM_OF_ONE_BYTES = 7e9
"""What the file means by a computer."""


def test_starter_stands_first_with_its_real_sizes():
    spec = starter_spec()
    first = next(iter(catalogue().values()))
    assert first.source == "starter"
    assert first.blocks == spec.num_hidden_layers
    assert first.bytes_at(2) == (2 * spec.block_parameters, 2 * spec.vocab_size * spec.hidden_size)
    assert first.bytes_at(4) == (4 * spec.block_parameters, 4 * spec.vocab_size * spec.hidden_size)
    assert first.context_tokens == spec.max_position_embeddings


def test_models_are_of_families_that_run_and_stand_in_order_of_size():
    sizes = []
    for entry in catalogue().values():
        assert entry.family in FAMILIES
        needed = entry.blocks * entry.block_bytes + entry.ends_bytes
        assert entry.minimum_swarm == math.ceil(needed / ROOM_OF_ONE_BYTES)
        sizes.append(entry.blocks * entry.block_bytes)
    assert sizes[:2] == sorted(sizes)[:2]
    assert sizes[-1] == max(sizes)


@pytest.mark.parametrize("text", ["", "models = 1", "[[models]]\nsource = 'x'", "]["])
def test_list_that_makes_no_sense_is_a_clear_error(tmp_path: Path, text: str):
    file = tmp_path / "models.toml"
    file.write_text(text)
    with pytest.raises(ModelError, match="list of models"):
        catalogue(file)
