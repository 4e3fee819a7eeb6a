"""What is asked for on the command line, and what each peer of the swarm is told of it."""

from __future__ import annotations

import itertools
import tomllib

import pytest

from engine.bench.peer_settings import Role, host_command, listen_address, merged, stage_words
from engine.bench.peer_settings import shape_of as shape
from engine.bench.quantities import LinkShaping
from engine.bench.request import SwarmBench
from engine.config import ModelConfig
from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.plans import Span

CLIENT, FIRST = PeerId("client"), PeerId("first")


def bench(**fields) -> SwarmBench:
    usual = {
        "model": "starter",
        "stages": 3,
        "batch_sizes": (32,),
        "prompt_tokens": 32,
        "new_tokens": 64,
        "model_config": ModelConfig(),
    }
    return SwarmBench(**{**usual, **fields})


def role(span: Span | None, *, is_last: bool = False) -> Role:
    return Role(1, span, is_last, CLIENT, (FIRST,))


def test_an_environment_slows_lines_down_only_where_the_hosts_have_none_of_their_own():
    assert bench(env="E5").shape == LinkShaping(2.5e6, 0.1)
    hosts = bench(env="E5", host_exec="netns h{i}", host_addr="10.0.0.{i}")
    assert hosts.shape is None
    assert hosts.rate_bytes_per_s == 2.5e6  # for the bound
    assert bench(env="E1").rate_bytes_per_s == bench().rate_bytes_per_s == 0


def test_a_token_meets_every_links_delay_on_its_way_around_the_ring():
    assert bench(env="E2").ring_delay_s == pytest.approx(3 * 0.025)
    assert bench(env="E2", ideal_client_link=True).ring_delay_s == pytest.approx(2 * 0.025)
    assert bench(env="E2", stages=1).ring_delay_s == 0


def test_with_an_ideal_client_link_only_the_links_between_stages_are_slow():
    asked = bench(env="E5", ideal_client_link=True)
    assert shape(asked, role(None)) is None
    assert shape(asked, role(Span(0, 2)))["ideal_peers"] == [CLIENT]
    assert shape(asked, role(Span(4, 6), is_last=True))["ideal_peers"] == [CLIENT, FIRST]
    assert "ideal_peers" not in shape(bench(env="E5"), role(Span(0, 2)))


@pytest.mark.parametrize(
    "fields",
    [
        {"new_tokens": 1},
        {"host_exec": "ssh h{i}"},
        {"env": "E1", "link": LinkShaping(0, 0)},
        {"kills": 1, "soak_s": 10},
        {"batch_sizes": (1, 2), "against": "local"},
        {"micro_batches": (1, 2), "generations": 2},
        {"generations": 2, "against": "local"},
    ],
)
def test_what_does_not_fit_together_is_said(fields):
    with pytest.raises(ConfigError):
        bench(**fields).check()


def test_settings_reach_a_stage_as_toml():
    tree = {"swarm": {"shape": {"delay_s": 0.1, "ideal_peers": ["a"]}, "codec": "raw"}}
    words = stage_words("shoal://v1/x", Span(0, 2), "/ip4/127.0.0.1/tcp/0", tree)
    assert words[words.index("--blocks") + 1] == "0:2"
    settings = [word for before, word in itertools.pairwise(words) if before == "--set"]
    assert tomllib.loads("\n".join(settings)) == tree


def test_later_settings_lie_over_earlier_ones():
    one, two = {"client": {"a": 1, "b": 2}}, {"client": {"b": 3}, "stage": {"c": 4}}
    assert merged(one, two) == {"client": {"a": 1, "b": 3}, "stage": {"c": 4}}


def test_slowed_down_lines_carry_less_and_take_longer_but_are_called_the_same():
    asked = bench(env="E5", slow_down=2.0)
    assert asked.shape == LinkShaping(1.25e6, 0.2)
    assert asked.network == LinkShaping(2.5e6, 0.1)


def test_hosts_are_counted_from_one():
    assert host_command("ssh -x h{i}", 2) == ["ssh", "-x", "h2"]
    assert listen_address("10.77.0.{i}", 3, 4001) == "/ip4/10.77.0.3/tcp/4001"
    assert listen_address("/ip4/10.77.0.{i}/tcp/5", 3, 4001) == "/ip4/10.77.0.3/tcp/5"
    assert listen_address(None, 1) == "/ip4/127.0.0.1/tcp/0"
    with pytest.raises(ConfigError, match="neither an IP address nor a multiaddr"):
        listen_address("host{i}", 1)
