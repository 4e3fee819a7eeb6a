from __future__ import annotations

import pytest

from app.settings_presenters import pages
from app.setup_state import Setup
from engine.config import Config, ModelConfig
from engine.node.settings import value_of
from tests.support.measured import measured_profile

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")


def rows(setup: Setup):
    return {row.name: row for page in pages(setup, str) for row in page}


def gpu(uuid: str) -> dict[str, object]:
    return {
        "name": "NVIDIA GeForce RTX 4090",
        "uuid": uuid,
        "driver": "570.1",
        "memory_total_bytes": {"value": 24e9, "spread": 0, "unit": "B"},
        "memory_free_bytes": {"value": 20e9, "spread": 0, "unit": "B"},
        "power_limit_w": None,
        "temperature_c": None,
    }


def test_a_gpu_is_chosen_by_the_uuid_that_engine_and_commands_know_it_by() -> None:
    profile = measured_profile(gpus=[gpu(uuid) for uuid in UUIDS])
    offered = [value for value, _ in rows(Setup(profile=profile))["model.device"].choices]
    assert offered == ["auto", "cpu", *UUIDS]
    for value in offered:  # the settings file, `shoal settings set` and the API take just that
        assert ModelConfig(device=value).device == value


@pytest.mark.parametrize("name", list(rows(Setup())))
def test_every_row_is_a_setting_of_the_engine(name: str) -> None:
    value_of(Config(), name)
