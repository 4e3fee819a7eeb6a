from __future__ import annotations

import pytest

from engine.bench.quantities import LinkShaping
from engine.bench.request import SwarmBench
from engine.bench.speculation_presets import mode_ways, preset_for, ways
from engine.bench.speculation_tables import Table
from engine.config import ModelConfig
from engine.core.errors import ConfigError
from engine.core.generation import DraftMode, Speculation

BENCH = SwarmBench("starter", 1, (1,), 32, 32, ModelConfig())


def test_every_draft_is_asked_for_with_every_length_but_what_decides_that_itself() -> None:
    asked = ways(("ngram", "model", "auto"), (2, 4), None)
    assert asked == (
        Speculation("ngram", 2),
        Speculation("ngram", 4),
        Speculation("model", 2),
        Speculation("model", 4),
        Speculation("auto"),
    )


def test_what_pipelined_drafts_add_is_shown_apart_in_the_table_of_far_stages() -> None:
    preset = preset_for("bb", never_slower=False)
    asked = ways(preset.drafts["copy"], preset.draft_tokens, None, preset)
    assert {(way.draft, way.pipelined) for way in asked} == {
        ("ngram", "off"),
        ("ngram", "on"),
        ("auto", "auto"),
        ("auto", "off"),
    }


def test_modes_are_compared_on_drawn_chains_where_there_are_several() -> None:
    assert mode_ways(("shared", "disco"), (4,)) == (
        Speculation("model", 4),
        Speculation("model", 4, mode=DraftMode.DISCO),
    )
    assert not mode_ways(("shared",), (4,))
    modes = preset_for("dc", never_slower=False).modes
    assert set(modes) == {"shared", "dsd", "dssd", "disco", "auto"}
    chosen = [way for way in mode_ways(modes, (2, 4)) if way.mode == "auto"]
    assert chosen == [Speculation("auto", mode="auto")]


def test_a_table_is_a_measurement_for_each_of_its_links() -> None:
    links = [bench.link for bench in Table("dc", ()).benches(BENCH)]
    assert links == [LinkShaping(mbit * 125e3, 0.010) for mbit in (1, 5, 10, 100)]
    assert [bench.env for bench in Table("bb", (), ("E5",)).benches(BENCH)] == ["E5"]
    assert Table("dc", (), ("1000",)).benches(BENCH)[0].link == LinkShaping(125e6, 0.010)
    with pytest.raises(ConfigError, match="has no link E9"):
        Table("bb", (), ("E9",)).benches(BENCH)
    with pytest.raises(ConfigError, match="has no link fast"):
        Table("dc", (), ("fast",)).benches(BENCH)
