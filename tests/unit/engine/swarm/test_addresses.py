from __future__ import annotations

import pytest

from engine.swarm.addresses import (
    circuit,
    is_address,
    is_bootstrap,
    is_circuit,
    is_plain,
    is_public,
    port_of,
    relay_of,
)
from engine.swarm.binary_addresses import from_bytes, to_bytes

RELAY = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
PLAIN = "/ip4/45.77.0.1/tcp/4001"
CIRCUIT = circuit(PLAIN, RELAY)


def test_circuit_address_names_its_relay_and_is_no_plain_one() -> None:
    assert is_circuit(CIRCUIT)
    assert is_address(CIRCUIT)
    assert not is_plain(CIRCUIT)
    assert not is_bootstrap(CIRCUIT)
    assert relay_of(CIRCUIT) == RELAY
    assert relay_of(PLAIN) is None


@pytest.mark.parametrize(
    "address",
    [
        "/p2p-circuit",
        f"{PLAIN}/p2p-circuit",
        f"{PLAIN}/p2p/{RELAY}",
        f"{CIRCUIT}/p2p/{RELAY}",
        f"{PLAIN}/p2p/12D3KooWNope/p2p-circuit",
        "/ip4/300.0.0.1/tcp/1",
        "/ip4/1.2.3.4/tcp/65536",
    ],
)
def test_what_only_looks_like_an_address_is_none(address: str) -> None:
    assert not is_address(address)


def test_public_addresses_are_those_of_the_whole_internet() -> None:
    assert is_public(PLAIN)
    for address in ("/ip4/192.168.1.2/tcp/1", "/ip4/127.0.0.1/tcp/1", "/ip4/100.64.3.4/tcp/1"):
        assert not is_public(address)
    assert not is_public("/dns4/example.org/tcp/1")
    assert port_of(CIRCUIT) == 4001


def test_circuit_in_bytes_holds_the_relays_bare_multihash_as_p2pd_expects() -> None:
    data = to_bytes(CIRCUIT)
    assert data.startswith(to_bytes(PLAIN) + b"\xa5\x03\x22\x12\x20")
    assert data.endswith(b"\xa2\x02")
    assert len(data) == len(to_bytes(PLAIN)) + 3 + 34 + 2
    assert from_bytes(data) == CIRCUIT


def test_bytes_of_another_kind_of_address_are_none() -> None:
    assert from_bytes(b"\xff\xff\xff\x7f") is None


def test_address_that_only_looks_like_one_has_no_bytes() -> None:
    assert to_bytes("/ip6/:::::/tcp/1") is None
    assert to_bytes(f"/ip6/1:2:3/tcp/1/p2p/{RELAY}/p2p-circuit") is None
