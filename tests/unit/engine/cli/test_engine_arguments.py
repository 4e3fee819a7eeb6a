import argparse

import pytest

from engine import config
from engine.cli.engine_arguments import (
    add_engine_arguments,
    invite_text,
    overrides_of,
    passed_on,
)
from engine.core.errors import ConfigError, InviteInvalid


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_engine_arguments(parser)
    return parser.parse_args(words)


EVERYTHING = (
    *("--model", "starter", "--stages", "3", "--blocks", "2:7", "--no-stage"),
    *("--dtype", "float32", "--device", "cpu", "--port", "8123", "--threads", "2"),
    *("--listen", "/ip4/127.0.0.1/tcp/0", "--listen", "/ip4/0.0.0.0/tcp/31330"),
    *("--kv-budget", "64MiB", "--invite", "shoal://v1/abc"),
    *("--set", "client.step_timeout_s=5", "--set", "swarm.shape.rate_bytes_per_s=1e6"),
    *("--set", 'model.device="cuda:1"', "--set", "stage.enabled=true"),
)


def test_nothing_given_changes_nothing():
    assert overrides_of(parse()) == {}
    assert passed_on(parse()) == []


def test_arguments_become_settings(tmp_path):
    args = parse(*EVERYTHING[:-4], "--set", "swarm.shape={rate_bytes_per_s = 1e6}")
    args.settings = [setting for setting in args.settings if setting[1] != "shape.rate_bytes_per_s"]
    tree = config.load(tmp_path / "settings.toml", overrides_of(args))
    assert tree.model.source == "starter"
    assert tree.stage.blocks == (2, 7)
    assert not tree.stage.enabled
    assert tree.stage.kv_budget_bytes == 64 << 20
    assert tree.stage.threads == 2
    assert tree.swarm.listen == ("/ip4/127.0.0.1/tcp/0", "/ip4/0.0.0.0/tcp/31330")
    assert tree.swarm.shape.rate_bytes_per_s == 1e6
    assert tree.client.step_timeout_s == 5
    assert tree.api.port == 8123


def test_what_is_passed_on_means_the_same_to_the_engine():
    args = parse(*EVERYTHING)
    again = parse(*passed_on(args))
    assert vars(again) == vars(args)


def test_set_wins_over_the_options_and_takes_bare_words():
    args = parse("--device", "cpu", "--set", "model.device=cuda:1")
    assert overrides_of(args)["model"]["device"] == "cuda:1"


def test_a_local_model_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert overrides_of(parse("--model", "mine")) == {"model": {"source": str(tmp_path / "mine")}}


@pytest.mark.parametrize("text", ["device=cpu", "model.device", ".a=1", "model.=1"])
def test_settings_of_another_form_are_usage_errors(text, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse("--set", text)
    assert exit_.value.code == 2
    assert "branch.field=value" in capsys.readouterr().err


def test_unknown_settings_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"model\.colour"):
        config.load(tmp_path / "none", overrides_of(parse("--set", "model.colour=red")))


def test_an_invite_may_come_as_text_or_in_a_file(tmp_path):
    file = tmp_path / "reef.shoal"
    file.write_text("shoal://v1/abc\n")
    assert invite_text(" shoal://v1/abc ") == "shoal://v1/abc"
    assert invite_text(str(file)) == "shoal://v1/abc"


@pytest.mark.parametrize("contents", [None, b"hello", b"\xff\xfe", b""])
def test_anything_else_is_no_invite(tmp_path, contents):
    file = tmp_path / "file"
    if contents is not None:
        file.write_bytes(contents)
    with pytest.raises(InviteInvalid):
        invite_text(str(file))
