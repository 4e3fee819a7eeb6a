from __future__ import annotations

import json

import pytest

from engine.bench.draft_bytes import FRAMING_BYTES, RoundBytes, measure
from engine.bench.main import main
from engine.core.generation import DraftMode
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.rows import ROW_BYTES

STARTER_VOCAB = 49_152
ID = 2
"""Bytes, where every id is below 65,536."""
WHOLE = 2 * STARTER_VOCAB


def rows(gamma: int) -> dict[DraftMode, RoundBytes]:
    return {row.mode: row for row in measure(STARTER_VOCAB, [gamma]).rows}


@pytest.mark.parametrize("gamma", range(2, 9))
def test_a_message_has_its_ids_and_what_its_mode_needs_and_no_byte_more(gamma: int) -> None:
    ids = ID * (1 + gamma)
    found = rows(gamma)
    assert {mode: row.up_bytes for mode, row in found.items()} == {
        DraftMode.SHARED: ids,
        DraftMode.DSD: ids + gamma * WHOLE,
        DraftMode.DSSD: ids + gamma * 2,
        DraftMode.DISCO: ids + gamma * 2,
    }
    assert {row.down_bytes for row in found.values()} == {ID}
    refused = {mode: row.down_refused_bytes for mode, row in found.items()}
    assert refused == {mode: ID + (WHOLE if mode is DraftMode.DSSD else 0) for mode in DraftMode}
    assert FRAMING_BYTES == HEADER_BYTES + ROW_BYTES == 60


@pytest.mark.parametrize("gamma", range(2, 9))
def test_no_message_is_larger_than_the_paper_has_it(gamma: int) -> None:
    for row in rows(gamma).values():
        assert row.up_bytes <= row.up_paper_bytes
        assert row.down_bytes <= row.down_paper_bytes
        assert row.down_refused_bytes <= row.down_refused_paper_bytes
        # What the paper counts differently is an id's bytes, and where the count travels.
        assert row.up_paper_bytes - row.up_bytes == 2 * gamma - ID
        assert row.down_refused_paper_bytes - row.down_refused_bytes in (2, 6)


@pytest.mark.parametrize(
    ("mode", "up", "down"), [(DraftMode.SHARED, 16, 8), (DraftMode.DISCO, 24, 8)]
)
@pytest.mark.parametrize("vocab_size", [49_152, 50_272, 128_256, 262_144])
def test_four_drafted_tokens_are_a_few_bytes_each_way_whatever_the_vocabulary(
    mode: DraftMode, up: int, down: int, vocab_size: int
) -> None:
    (row,) = (row for row in measure(vocab_size, [4]).rows if row.mode is mode)
    assert row.up_bytes <= up
    assert max(row.down_bytes, row.down_refused_bytes) <= down


def test_command_prints_one_object_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draft-bytes", "--draft-tokens", "4", "--json"]) == 0
    (up,) = (
        r["up_bytes"] for r in json.loads(capsys.readouterr().out)["rows"] if r["mode"] == "dsd"
    )
    assert main(["draft-bytes", "--draft-tokens", "4"]) == 0
    assert f"{up} B (393232)" in capsys.readouterr().out
