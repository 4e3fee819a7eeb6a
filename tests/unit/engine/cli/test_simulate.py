import json

import pytest

from engine.cli.program import main


def test_json_is_one_object_with_the_fixed_keys(capsys, tmp_path):
    picture = tmp_path / "picture.svg"
    words = ("--json", "--reload-s", "60", "--seed", "3", "--plot", str(picture))
    assert main(["simulate", "bloombee-e2", *words]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts.keys() >= {
        "mean_bound_share",
        "seconds_at_zero",
        "moves_per_node_day",
        "tokens_per_s",
    }
    assert (facts["seed"], facts["reload_s"], facts["policy"]) == (3, 60.0, "shoal")
    assert len(facts["tokens_per_s"]) == len(facts["at_s"]) == len(facts["bound_tokens_per_s"])
    assert 0.5 < facts["mean_bound_share"] <= 1
    assert picture.read_text().startswith("<svg")


def test_text_says_how_much_is_served_and_at_what_price(capsys):
    assert main(["simulate", "bloombee-e2", "--policy", "join"]) == 0
    captured = capsys.readouterr()
    assert "of what is possible is served" in captured.out
    assert "moves for each node and day" in captured.out
    assert "placed by join" in captured.out


def test_list_names_every_scenario(capsys):
    assert main(["simulate", "list"]) == 0
    assert capsys.readouterr().out.startswith("petals-206    206 servers")
    assert main(["simulate", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["scenarios"]) == 12


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("petals",), "There is no scenario 'petals' to simulate; choose one of petals-206,"),
        (("liar", "--plot", "picture.png"), "The picture is an SVG"),
        (("liar", "--plot", "/no/such/folder/picture.svg"), "There is no folder /no/such/folder"),
    ],
)
def test_what_cannot_be_simulated_or_drawn_is_said_in_one_sentence(capsys, words, said):
    assert main(["simulate", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"shoal: {said}")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("--reload-s", "-1"), ("--reload-s", "nan"), ("--seed", "x"), ("--policy", "best")]
)
def test_wrong_option_is_a_usage_error(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "liar", *words])
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err
