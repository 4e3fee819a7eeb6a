"""Commands that start an engine of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.localapi.running import Home, find_running
from tests.support.real_engine import eventually, gone
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return str(save_tiny("llama", tmp_path_factory.mktemp("tiny")))


def command(home: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    environment = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    return [sys.executable, "-m", "engine", *words], {**environment, "SHOAL_HOME": str(home)}


def test_a_question_starts_an_engine_answers_and_leaves_nothing_behind(tiny, tmp_path):
    words, environment = command(tmp_path, "chat", "Hello", "--json", "--max-tokens", "6")
    words += ["--model", tiny, "--seed", "1"]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    assert 1 <= json.loads(done.stdout)["completion_tokens"] <= 6
    assert find_running(Home.under(tmp_path)) is None
    left = [
        process.pid
        for process in psutil.process_iter()
        if _home_of(process) == str(tmp_path) and process.pid != os.getpid()
    ]
    assert left == []


def test_a_killed_command_takes_its_engine_with_it(tiny, tmp_path):
    words, environment = command(tmp_path, "--headless", "--model", tiny)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    ) as shoal:
        assert any("until Ctrl-C" in line for line in iter(shoal.stderr.readline, ""))
        engine = psutil.Process(find_running(Home.under(tmp_path)).pid)
        family = [engine, *engine.children(recursive=True)]
        assert len(family) >= 3
        shoal.send_signal(signal.SIGKILL)
        assert gone(family, 30) == []


def test_an_unknown_model_is_one_clear_sentence(tmp_path):
    words, environment = command(tmp_path, "chat", "Hello", "--model", "./no-such-model")
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("shoal: ")
    assert "no-such-model" in last
    assert "Traceback" not in done.stderr
    eventually(lambda: find_running(Home.under(tmp_path)), lambda running: running is None, 30)


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("SHOAL_HOME")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
