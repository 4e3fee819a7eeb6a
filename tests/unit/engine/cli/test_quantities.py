import argparse

import pytest

from engine.cli.quantities import block_span, duration_s, positive, shown_bytes, size_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("1GiB", 1 << 30), ("512 mb", 512_000_000), ("1.5k", 1536), ("2G", 2 << 30)],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("30s", 30), ("10m", 600), ("1.5h", 5400), ("2d", 172800)]
)
def test_durations_are_read_as_people_write_them(text, seconds):
    assert duration_s(text) == seconds


def test_spans_leave_their_end_out():
    assert block_span("0:15") == (0, 15)


@pytest.mark.parametrize("text", ["", "lots", "-1", "1e9", "1 lightyear", "nan", "1" * 40, "٣"])
@pytest.mark.parametrize("read", [size_bytes, duration_s, positive, block_span])
def test_anything_else_is_a_usage_error(read, text):
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)


def test_empty_and_backward_spans_and_zero_are_usage_errors():
    for read, text in (
        (block_span, "5:5"),
        (block_span, "5:2"),
        (positive, "0"),
        (duration_s, "0"),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)


def test_sizes_are_shown_in_the_unit_that_suits_them():
    assert shown_bytes(512) == "512 B"
    assert shown_bytes(1536) == "1.5 KiB"
    assert shown_bytes(3 << 40) == "3.0 TiB"
