from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from engine.bench import codec, coders
from engine.bench.main import main
from engine.codec.lanes import ElementType
from engine.core.errors import ConfigError, EngineError

WIDTH = 128
KEYS = {"file", "dtype", "codec", "ratio", "compress_mb_per_s", "decompress_mb_per_s"}


def hidden_states(seed: int, scale_seed: int = 0) -> np.ndarray:
    """[8, 16, WIDTH] float32, channels of very different size."""
    scales = np.random.default_rng(scale_seed).lognormal(0, 1.5, WIDTH)
    return np.random.default_rng(seed).normal(0, scales, (8, 16, WIDTH)).astype(np.float32)


def saved(path, array: np.ndarray) -> str:
    np.save(path, array)
    return str(path)


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two of a kind, and one each of two other types."""
    return [
        saved(tmp_path / "one.npy", hidden_states(1).astype(np.float16)),
        saved(tmp_path / "two.npy", hidden_states(2).astype(np.float16)),
        saved(tmp_path / "wide.npy", hidden_states(3)),
        saved(tmp_path / "brain.npy", (hidden_states(4).view(np.uint32) >> 16).astype(np.uint16)),
    ]


def report(capsys, *words: str) -> list[dict]:
    assert main(["codec", *words, "--repeat", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["files"]


def test_every_file_gets_a_row_for_every_codec(files, capsys):
    rows = report(capsys, *files, "--codec", "shoal,bloombee,zstd")
    assert [(row["file"], row["codec"]) for row in rows] == [
        (file, name) for file in files for name in ("shoal", "bloombee", "zstd")
    ]
    assert [row["dtype"] for row in rows[::3]] == ["float16", "float16", "float32", "bfloat16"]
    assert all(row.keys() >= KEYS for row in rows)
    assert all(0 < row["ratio"] < 1.01 and row["compress_mb_per_s"] > 0 for row in rows)


def test_shoal_is_smaller_than_the_layout_it_is_compared_with(files, capsys):
    rows = report(capsys, *files, "--codec", "shoal,bloombee")
    for ours, theirs in zip(rows[::2], rows[1::2], strict=True):
        assert ours["ratio"] < theirs["ratio"]


def test_reference_comes_from_another_file_or_counts_as_its_own(files, capsys):
    sources = [row["reference"] for row in report(capsys, *files, "--codec", "shoal")]
    assert sources == [files[1], files[0], "self", "self"]
    rows = report(capsys, files[0], "--codec", "shoal")
    recording = codec.read_recording(files[0])
    reference = codec.learn_reference(recording.raw, recording.dtype, WIDTH)
    encoded = coders.Shoal(recording.dtype, WIDTH, reference).compress(recording.raw)
    assert rows[0]["ratio"] == (len(encoded) + len(reference.shipped())) / len(recording.raw)


def test_a_copy_of_a_file_is_not_another_file(tmp_path, files, capsys):
    copy = saved(tmp_path / "copy.npy", np.load(files[0]))
    rows = report(capsys, files[0], copy, "--codec", "shoal")
    assert [row["reference"] for row in rows] == ["self", "self"]


def test_reference_that_only_harms_is_not_used(tmp_path, files, capsys):
    other = saved(tmp_path / "other.npy", hidden_states(5, scale_seed=9).astype(np.float16))
    assert report(capsys, other, files[0], "--codec", "shoal")[0]["reference"] is None


def test_payloads_are_whole_rows_of_about_the_size_asked_for(files, capsys):
    row = report(capsys, files[0], "--codec", "zstd", "--payload-kb", "1")[0]
    assert row["payload_bytes"] == 4 * WIDTH * 2
    recording = codec.read_recording(files[0])
    assert b"".join(recording.payloads(1000)) == recording.raw
    assert recording.payloads(1)[0] == recording.raw[: WIDTH * 2]


def test_order_in_memory_and_of_bytes_does_not_matter(tmp_path, files):
    array = np.load(files[0])
    fortran = saved(tmp_path / "fortran.npy", np.asfortranarray(array))
    big_endian = saved(tmp_path / "big.npy", array.astype(">f2"))
    raw = codec.read_recording(files[0]).raw
    assert [codec.read_recording(path).raw for path in (fortran, big_endian)] == [raw, raw]


def test_zipnn_is_left_out_with_a_note_where_it_is_not_installed(files, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "zipnn", raising=False)
    assert main(["codec", files[0], "--codec", "zipnn,zstd", "--repeat", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [row["codec"] for row in json.loads(out)["files"]] == ["zstd"]
    assert "zipnn is left out" in err


def test_report_for_people_has_a_line_for_each_row(files, capsys):
    assert main(["codec", *files[:2], "--codec", "shoal,zstd", "--repeat", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[1].startswith(files[0])
    assert "%" in lines[1]


@pytest.mark.parametrize(
    "array", [np.zeros(4, np.float64), np.zeros((0, 4), np.float16), np.float16(1)]
)
def test_arrays_that_are_no_hidden_states_are_refused(tmp_path, array):
    with pytest.raises(ConfigError, match=r"\.npy"):
        codec.read_recording(saved(tmp_path / "odd.npy", array))


def test_files_that_are_no_arrays_are_refused(tmp_path):
    text = tmp_path / "text.npy"
    text.write_text("not an array")
    for path in (text, tmp_path / "missing.npy", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            codec.read_recording(str(path))


def test_unknown_codecs_are_refused(files, capsys):
    with pytest.raises(SystemExit):
        main(["codec", files[0], "--codec", "shoal,gzip"])
    assert "gzip" in capsys.readouterr().err


def test_codec_that_loses_a_bit_gets_no_numbers(files, monkeypatch):
    monkeypatch.setattr(coders.Zstd, "decompress", lambda self, data, num_bytes: bytes(num_bytes))
    with pytest.raises(EngineError, match="did not give back"):
        main(["codec", files[0], "--codec", "zstd"])


@pytest.mark.parametrize("dtype", list(ElementType))
@pytest.mark.parametrize("name", ["bloombee", "zstd"])
def test_the_others_give_everything_back(dtype, name):
    raw = np.random.default_rng(0).bytes(dtype.num_bytes * 300)
    coder = coders.make(name, dtype, 3, None)
    assert coder.decompress(coder.compress(raw), len(raw)) == raw
