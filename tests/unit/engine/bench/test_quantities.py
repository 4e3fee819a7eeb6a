import argparse

import pytest

from engine.bench.quantities import (
    Emulation,
    LinkShaping,
    Stretching,
    cores,
    counts,
    emulation,
    link,
    rate_bytes_per_s,
    share,
    sizes,
    spans,
    stretching,
)
from engine.core.plans import Span


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("20mbit", 2.5e6), ("1.5gbit", 187.5e6), ("500 kbit", 62.5e3), ("8bit", 1), ("0", 0)],
)
def test_rates_are_bits_as_networks_count_them(text, bytes_per_s):
    assert rate_bytes_per_s(text) == bytes_per_s


def test_a_link_is_a_rate_and_a_delay():
    assert link("20mbit,10ms") == LinkShaping(2.5e6, 0.010)
    assert link("0,500us") == LinkShaping(0.0, 0.0005)


def test_cores_are_numbers_and_ranges():
    assert cores("3,0-1") == (0, 1, 3)


@pytest.mark.parametrize("text", ["", "20", "20mbyte", "-1mbit", "fast"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a rate"):
        rate_bytes_per_s(text)


@pytest.mark.parametrize("text", ["20mbit", "20mbit,", "20mbit,10", "20mbit,10ms,5ms"])
def test_what_is_no_link_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        link(text)


@pytest.mark.parametrize("text", ["", "a", "3-1", "0,,1", "99999"])
def test_what_is_no_list_of_cores_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a list of cores"):
        cores(text)


def test_an_emulation_is_a_time_and_a_volume_of_a_batch():
    assert emulation("stage=41ms,bytes=416KB") == Emulation(0.041, 416 * 1024, None)
    assert emulation("bytes=284KB,stage=500us,draft=2ms,rows=32") == Emulation(
        0.0005, 284 * 1024, 32
    )


@pytest.mark.parametrize(
    "text", ["", "stage=41ms", "bytes=1KB", "stage=0,bytes=1KB", "stage=1ms,bytes=1KB,more=1"]
)
def test_what_is_no_emulation_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not of the form"):
        emulation(text)


def test_counts_are_one_or_several_each_once():
    assert counts("8,32,8,0") == (8, 32, 0)
    assert sizes("32") == (32,)
    with pytest.raises(argparse.ArgumentTypeError, match="holds a 0"):
        sizes("8,0")


@pytest.mark.parametrize("text", ["", "8,", "-1", "1.5", "1 2"])
def test_what_is_no_count_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number or a list"):
        counts(text)


def test_shares_are_fractions_or_percents():
    assert share("0.05") == share("5%") == 0.05
    assert share("1") == 1


@pytest.mark.parametrize("text", ["", "1.1", "101%", "-1", "5s"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a share"):
        share(text)


def test_spans_follow_one_another_from_the_first_block_on():
    assert spans("0-12,12-20,20-30") == (Span(0, 12), Span(12, 20), Span(20, 30))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a list of spans"),
        ("0-12,", "is not a list of spans"),
        ("0:12", "is not a list of spans"),
        ("0-12,12-12", "ends where it begins"),
        ("0-12,12-8", "ends where it begins or before"),
        ("0-12,13-20", "leaves blocks out or has some twice"),
        ("0-12,11-20", "leaves blocks out or has some twice"),
        ("1-12,12-20", "the first span begins at 0"),
    ],
)
def test_what_are_no_spans_is_refused(text, problem):
    with pytest.raises(argparse.ArgumentTypeError, match=problem):
        spans(text)


def test_stretched_times_are_of_a_pass_and_of_a_drafts_place():
    assert stretching("draft=2ms,target=40ms,rows=8") == Stretching(0.040, 0.002, 8)
    assert stretching("target=1s,draft=0").draft_s == 0


@pytest.mark.parametrize("text", ["", "target=40ms", "draft=2ms,target=0", "draft=2,target=40ms"])
def test_what_stretches_nothing_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        stretching(text)
