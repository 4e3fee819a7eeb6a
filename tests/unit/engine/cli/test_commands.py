"""The commands that talk to a running engine, over real HTTP."""

import io
import json
import re

import pytest

from engine.cli.program import main
from engine.core.errors import NoRoute
from engine.localapi.schema import SwarmInfo
from tests.support.api_backend import ScriptedBackend
from tests.support.fake_home import running_in

STATUS_KEYS = {
    *("state", "reason", "until", "span", "model", "peers", "sessions"),
    *("tokens_served", "tokens_used", "plan"),
}


@pytest.fixture
def backend(tokenizer, home_root):
    backend = ScriptedBackend(tokenizer)
    with running_in(home_root, backend):
        yield backend


def test_status_prints_one_object_with_the_promised_keys(backend, capsys):
    assert main(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert set(status) >= STATUS_KEYS
    assert status["state"] == "idle"


def test_status_for_people_says_where_the_api_and_its_token_are(backend, capsys, home_root):
    assert main(["status"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^State +idle$", text, re.MULTILINE)
    assert re.search(r"^Blocks +0–3", text, re.MULTILINE)
    assert str(home_root / "data" / "api-token") in text


def test_pause_and_resume(backend, capsys):
    assert main(["pause", "--finish", "--for", "1h"]) == 0
    assert backend.paused.finish_first
    assert backend.paused.seconds == 3600
    assert "paused: You paused it." in capsys.readouterr().out
    assert main(["resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "idle"


def test_a_pause_without_end_is_the_default(backend):
    assert main(["pause"]) == 0
    assert backend.paused.seconds is None
    assert not backend.paused.finish_first


def test_swarm_create_join_show_leave(backend, capsys, tmp_path):
    file = tmp_path / "reef.shoal"
    assert main(["swarm", "create", "reef", "--private", "-o", str(file)]) == 0
    assert file.read_text() == "shoal://reef\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "shoal://reef" in capsys.readouterr().out
    assert main(["swarm", "leave"]) == 0
    assert main(["swarm", "join", str(file)]) == 0
    assert main(["swarm", "show", "--json"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert SwarmInfo.model_validate_json(last).name == "reef"


def test_an_unusable_invite_never_reaches_the_engine(backend, capsys):
    assert main(["swarm", "join", "nonsense"]) == 1
    assert "neither an invite" in capsys.readouterr().err
    assert backend.swarm_name is None


def test_chat_prints_the_answer_alone_on_standard_output(backend, capsys):
    assert main(["chat", "Hello", "--temperature", "0", "--max-tokens", "300"]) == 0
    assert capsys.readouterr().out == backend.answer + "\n"
    (_, params) = backend.seen[-1]
    assert params.temperature == 0
    assert params.max_new_tokens == 300


def test_chat_as_json(backend, capsys):
    assert main(["chat", "Hello", "--json", "--seed", "5"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["answer"] == backend.answer
    assert answer["finish_reason"] == "stop"
    assert answer["completion_tokens"] == len(backend.tokenizer.encode(backend.answer)) + 1
    assert answer["tokens_per_s"] > 0
    assert backend.seen[-1][1].seed == 5


def test_chat_reads_its_prompt_from_a_pipe(backend, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("How are you?\n"))
    assert main(["chat", "--system", "Be brief."]) == 0
    asked = backend.tokenizer.decode(backend.seen[-1][0])
    assert "Be brief." in asked
    assert "How are you?" in asked


def test_an_empty_prompt_is_an_error(backend, capsys):
    assert main(["chat", "  "]) == 1
    assert "prompt is empty" in capsys.readouterr().err


def test_the_engines_errors_reach_the_person_as_one_sentence(backend, capsys):
    backend.fail_after, backend.error = 0, NoRoute("No stage holds block 3; wait for one.")
    assert main(["chat", "Hello"]) == 1
    assert capsys.readouterr().err.endswith("shoal: No stage holds block 3; wait for one.\n")


def test_an_error_in_mid_answer_is_told_after_what_came(backend, capsys):
    backend.fail_after, backend.error = 3, NoRoute("Every route failed; try again.")
    assert main(["chat", "Hello"]) == 1
    captured = capsys.readouterr()
    assert backend.answer.startswith(captured.out.strip())
    assert captured.err.endswith("shoal: Every route failed; try again.\n")


def test_a_paused_engine_is_not_waited_for(backend, capsys):
    assert main(["pause"]) == 0
    assert main(["chat", "Hello"]) == 1
    assert "You paused it. (`shoal resume`)" in capsys.readouterr().err


def test_escape_sequences_from_the_model_do_not_reach_the_terminal(backend, capsys):
    backend.answer = "red \x1b[31m\x07 and\ttab\nline"
    assert main(["chat", "Hello"]) == 0
    assert capsys.readouterr().out == "red [31m and\ttab\nline\n"


def test_options_for_an_engine_that_already_runs_are_not_silently_dropped(backend, capsys):
    assert main(["chat", "Hello", "--model", "other"]) == 0
    assert "--model other has no effect" in capsys.readouterr().err


def test_the_headless_start_answers_once_and_tells_the_address(backend, capsys):
    assert main(["--once"]) == 0
    captured = capsys.readouterr()
    assert captured.out == backend.answer + "\n"
    assert "API: http://127.0.0.1:" in captured.err


def test_doctor_finds_the_running_engine(backend, capsys):
    main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["Engine"]["level"] == "ok"
    assert "idle" in checks["Engine"]["found"]
    assert {"Python", "torch", "Packages", "Window", "p2pd", "Clock", "Disk", "Port"} <= set(checks)
    for check in checks.values():
        assert (check["level"] == "ok") == (check["advice"] == "")


def test_device_that_does_not_exist_is_refused_by_name(capsys):
    assert main(["measure", "--device", "gpu0"]) == 1
    assert capsys.readouterr().err.startswith("shoal: The setting model.device is wrong")
