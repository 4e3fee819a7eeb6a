import json
import re

import pytest

from engine.cli.program import main
from tests.support.measured import measured_profile

NODE = {
    "block": {
        "mlp": {"base_s": 0.001, "unit_s": 0.0001},
        "attention": {"base_s": 0.0001, "unit_s": 1e-8},
        "prefill_row_s": 0.0001,
    },
    "head": {"base_s": 0.004, "unit_s": 0.0008},
    "pass_overhead_s": {"value": 0.002, "spread": 0.0001, "unit": "s"},
    "memory_bytes": 1e9,
    "uplink_bytes_per_s": 2.5e6,
    "downlink_bytes_per_s": None,
}
FILE = {
    "model": {"name": "starter", "element_bytes": 4},
    "nodes": [{"peer": "ada", **NODE}, {"peer": "bob", **NODE}],
    "network": {"delay_s": 0.01},
    "objective": {"context_tokens": 512},
}


@pytest.fixture
def planned(tmp_path, capsys):
    """Run the command on a file; gives exit code, output and errors."""

    def run(content, *words):
        path = tmp_path / "NODES.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        code = main(["plan", str(path), *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def changed(where: str, value: object) -> dict:
    """The file with one field set, or taken away."""
    file = json.loads(json.dumps(FILE))
    *path, last = (int(part) if part.isdigit() else part for part in where.split("."))
    at = file
    for part in path:
        at = at[part] if isinstance(at, list) else at.setdefault(part, {})
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return file


def test_json_is_one_object_with_the_fixed_keys(planned):
    code, out, _ = planned(FILE, "--json", "--batch", "8")
    facts = json.loads(out)
    assert code == 0
    assert facts["stages"][0]["start"] == 0
    assert facts["stages"][-1]["end"] == 30
    assert facts["batch_size"] == 8
    assert facts.keys() >= {
        "num_microbatches",
        "codec",
        "draft_tree_size",
        "prune_threshold",
        "tokens_per_s",
        "bottleneck",
        "solve_s",
    }
    assert "terms" not in facts
    assert json.loads(planned(FILE, "--json", "--explain")[1])["terms"]


def test_picture_shows_every_stage_and_marks_the_bottleneck(planned):
    file = changed("nodes.1.memory_bytes", 700_000_000)
    file["nodes"][0] |= {"memory_bytes": 700_000_000, "peer": "ada (home)"}
    code, out, _ = planned(file, "--batch", "16", "--explain")
    picture = out.partition("\n\n")[0]
    assert code == 0
    assert "ada (home)" in picture
    assert "bob" in picture
    assert picture.count("◀ bottleneck") == 1
    assert "s uplink)" in out
    assert "tokens/s" in out


def test_file_may_hold_what_shoal_measure_prints(planned):
    measured = json.loads(measured_profile().model_dump_json())
    file = changed("nodes.1", {**measured, "peer": "bob", "limits": {"memory_bytes": 1e9}})
    assert planned(file, "--json")[0] == 0
    file["nodes"][1] = measured
    stages = json.loads(planned(file, "--json")[1])["stages"]
    assert {stage["peer"] for stage in stages} <= {"ada", "node-2"}


def test_of_many_machines_that_are_not_needed_a_few_are_named(planned):
    many = [{"peer": f"node-{index:02}", **NODE} for index in range(20)]
    _, out, _ = planned({**FILE, "nodes": many}, "--goal", "latency")
    assert re.search(r"Left out, .*: (node-\d\d, ){7}node-\d\d and 11 more\.", out)


def test_measured_values_may_stand_among_numbers_of_ones_own(planned):
    measured = json.loads(measured_profile().model_dump_json())["block"]
    block = {
        "mlp": {name: measured["mlp"][name] for name in ("base_s", "unit_s")},
        "attention": {name: measured["attention"][name] for name in ("base_s", "unit_s")},
        "prefill_row_s": measured["prefill_row_s"],
    }
    assert planned(changed("nodes.1.block", block), "--json")[0] == 0


def test_joining_says_what_changes(planned):
    file = changed("nodes.0.memory_bytes", 300_000_000)
    _, out, _ = planned(file, "--me", "bob")
    assert "Without it the model cannot run." in out
    joining = json.loads(planned(FILE, "--json", "--me", "bob")[1])["joining"]
    assert joining["peer"] == "bob"
    assert joining["sustained_tokens_per_s_without"] > 0


def test_what_does_not_fit_is_said_and_fails(planned):
    code, out, err = planned(FILE, "--json", "--context", "1000000", "--batch", "64")
    assert code == 1
    assert json.loads(out)["infeasible"].keys() == {"constraint", "hint"}
    assert not err
    code, out, err = planned(FILE, "--context", "1000000", "--batch", "64")
    assert (code, out) == (1, "")
    assert err.startswith("shoal: The weights fit, but the cache does not")


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("nodes.0.memory_bytes", -1, "nodes.0.memory_bytes is wrong"),
        ("nodes.0.memory_bytes", 1e30, "nodes.0.memory_bytes is wrong"),
        ("nodes.1.block.mlp.unit_s", float("nan"), "nodes.1.block.mlp.unit_s is wrong"),
        ("nodes.1.pass_overhead_s", float("inf"), "nodes.1.pass_overhead_s is wrong"),
        ("nodes.1.pass_overhead_s", "2 ms", "nodes.1.pass_overhead_s is wrong"),
        ("nodes.1.pass_overhead_s", True, "nodes.1.pass_overhead_s is wrong"),
        (
            "nodes.1.pass_overhead_s",
            {"value": 2, "spread": 0, "unit": "ms"},
            "nodes.1.pass_overhead_s is wrong: its unit must be s, not ms",
        ),
        ("nodes.0.head", ..., "nodes.0.head is missing"),
        ("nodes.0.watts", 100, "nodes.0.watts is no field that we know"),
        ("nodes.0.uplink_bytes_per_s", 0, "nodes.0.uplink_bytes_per_s is wrong"),
        ("nodes.0.peer", "ada\x1b[2J", "nodes.0.peer is wrong: it must be one line"),
        ("nodes.1.peer", "ada", "nodes.peer is wrong: ada is there 2 times"),
        ("nodes", [], "nodes is wrong"),
        ("network", ..., "network is missing"),
        ("network.delay_s", [[0, 1]], "network.delay_s is wrong: it must be one number, or 2 rows"),
        ("network.delay_s", [[0, -1], [1, 0]], "network.delay_s.0.1 is wrong"),
        (
            "network.delay_s",
            [[0, 0.1], [None, 0]],
            "network.delay_s is wrong: there is no way from bob",
        ),
        ("network.bytes_per_s", 0, "network.bytes_per_s is wrong"),
        ("network.peers", ["ada", "eve"], "network.peers is wrong"),
        ("objective.goal", "fame", "objective.goal is wrong"),
        ("objective.context_tokens", 100, "objective.context_tokens is wrong"),
        ("calibration.step_overhead_s", -1000, "calibration.step_overhead_s is wrong"),
        (
            "calibration.micro_batch_overhead_s",
            -0.1,
            "calibration.micro_batch_overhead_s is wrong",
        ),
        ("model", "no/such-model", "model is wrong"),
        ("model", {"num_blocks": 0}, "model.num_blocks is wrong"),
        ("me", "eve", "me is wrong: there is no node eve"),
    ],
)
def test_wrong_field_is_named_in_one_sentence(planned, where, value, said):
    code, out, err = planned(changed(where, value), "--json")
    assert (code, out) == (1, "")
    assert err.startswith(f"shoal: In NODES.json, {said}")
    assert err.count("\n") == 1


def test_machine_that_takes_no_time_is_no_machine(planned):
    free = {"base_s": 0, "unit_s": 0}
    file = changed("nodes.1.block.mlp", free)
    file["nodes"][1]["pass_overhead_s"] = 0
    assert planned(file)[2].startswith(
        "shoal: In NODES.json, nodes.1.block.mlp is wrong: no machine"
    )


def test_measured_machine_may_be_absurd_but_no_plan_is(planned):
    measured = {**json.loads(measured_profile().model_dump_json()), "peer": "bob"}
    file = changed("nodes.1", measured)
    measured["memory_bytes"]["value"] = 1e18
    assert planned(file, "--json")[0] == 0
    measured["memory_bytes"]["value"] = 1e300
    assert "nodes.1.memory_bytes.value is wrong" in planned(file)[2]
    measured["memory_bytes"]["value"] = 1e9
    measured["model"]["element_bytes"] = 10**15
    assert "nodes.1.model.element_bytes is wrong" in planned(file)[2]
    measured["model"]["element_bytes"] = 4
    measured["uplink_bytes_per_s"] = {"value": 0, "spread": 0, "unit": "B/s"}
    assert "nodes.1.uplink_bytes_per_s is wrong" in planned(file)[2]


def test_what_other_peoples_files_hold_cannot_drive_the_terminal(planned):
    assert "\x1b" not in planned(changed("nodes.0.\x1b[2J", 1))[2]


def test_json_has_no_infinities_where_a_machine_is_out_of_reach(planned):
    file = changed("network.delay_s", [[0, 0.01, None], [0.01, 0, 0.01], [0.01, None, 0]])
    file["nodes"].append({"peer": "eve", **NODE})
    code, out, _ = planned(file, "--json", "--explain", "--batch", "1")
    facts = json.loads(out, parse_constant=pytest.fail)
    assert code == 0
    why = {term["what"]: term["why"] for term in facts["terms"]}
    assert facts["left_out"]
    assert any("do not reach" in why[f"{peer}: left out"] for peer in facts["left_out"])


def test_file_that_is_none_says_so(planned, capsys, tmp_path):
    assert "is not JSON" in planned("{")[2]
    assert main(["plan", str(tmp_path / "nothing.json")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_other_ways_of_placing_are_compared(planned):
    slow = {**NODE, "block": {**NODE["block"], "mlp": {"base_s": 0.01, "unit_s": 0.0001}}}
    file = {**FILE, "nodes": [{"peer": "ada", **NODE}, {"peer": "bob", **slow}]}
    code, out, _ = planned(file, "--json", "--batch", "8", "--against", "even,milp,petals,brute")
    facts = json.loads(out)
    assert code == 0
    against = {rival["name"]: rival for rival in facts["against"]}
    assert against["even"]["ratio"] < 0.5, "half of the blocks are on a machine ten times as slow"
    assert against["milp"]["ratio"] == pytest.approx(1)
    assert against["brute"]["stages"] == facts["stages"]
    text = planned(file, "--batch", "8", "--against", "even")[1]
    assert "of ours: ada 0–14, bob 15–29" in text


def test_way_of_placing_that_is_not_possible_says_why(planned):
    many = [{"peer": f"node-{index}", **NODE} for index in range(6)]
    code, out, _ = planned({**FILE, "nodes": many}, "--batch", "8", "--against", "brute")
    assert code == 0
    assert "brute cannot plan for these machines" in out
