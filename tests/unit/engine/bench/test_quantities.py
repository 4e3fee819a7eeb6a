import argparse

import pytest

from engine.bench.quantities import LinkShaping, cores, link, rate_bytes_per_s


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
