"""`shoal batch` over real HTTP, with jobs that are really kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.program import main
from tests.support.api_backend import ScriptedBackend
from tests.support.fake_home import running_in

ANSWER = "The shoal turns when they turn."


@pytest.fixture
def backend(tokenizer, home_root):
    backend = ScriptedBackend(tokenizer)
    with running_in(home_root, backend):
        yield backend


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("title,year\n" + "".join(f"Shoal {n},19{n}\n" for n in range(10, 40)))
    return path


def test_a_table_is_answered_into_a_table(backend, table, tmp_path, capsys):
    output = tmp_path / "out.csv"
    words = ["batch", "run", str(table), "-o", str(output), "--template", "Tell of {title}"]
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["done_rows"] == 30
    assert f"30 answers in {output}." in told.err
    lines = output.read_text("utf-8-sig").splitlines()
    assert lines[0] == "title,year,answer,finish_reason,error"
    assert lines[1] == f"Shoal 10,1910,{ANSWER},stop,"
    assert len(lines) == 31
    assert main(["batch", "status"]) == 0
    assert "in.csv  completed, 30 of 30 rows" in capsys.readouterr().out


def test_bad_rows_are_told_with_their_lines_and_nothing_is_asked(backend, tmp_path, capsys):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('"Hello"\n{"nothing": 1}\n')
    words = ["batch", "run", str(source), "-o", str(output)]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "line 2, body: The line has no request" in told
    assert "1 of 2 rows cannot be asked, so nothing was" in told
    assert backend.seen == []
    assert main([*words, "--skip-bad-rows"]) == 0
    assert "1 answer in" in capsys.readouterr().err
    source.write_text('"Hello"\n"There"\n')
    assert main([*words]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    assert len(output.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["batch", "run", "none.csv", "-o", "x"], "There is no file none.csv"),
        (["batch", "status", "batch_x"], "There is no job 'batch_x'"),
        (["batch", "cancel", "batch_x"], "There is no job 'batch_x'"),
    ],
)
def test_mistakes_are_one_sentence(backend, words, text, capsys):
    assert main(words) == 1
    assert text in capsys.readouterr().err


def test_a_template_that_no_column_fits_is_refused(backend, table, tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    words = ["batch", "run", str(table), "-o", str(output), "--template", "{titel}"]
    assert main(words) == 1
    assert "write 'title' if you mean" in capsys.readouterr().err
    assert not output.exists()


def test_interrupted_batches_go_on_with_the_same_command(
    tokenizer, home_root, table, tmp_path, capsys
):
    output = tmp_path / "out.jsonl"
    words = ["batch", "run", str(table), "-o", str(output), "--template", "{title}"]
    backend = ScriptedBackend(tokenizer, step_s=0.1)
    with running_in(home_root, backend):
        with subprocess.Popen(
            [sys.executable, "-m", "engine", *words],
            env={**os.environ, "SHOAL_HOME": str(home_root)},
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            assert command.stderr is not None
            while "Answering" not in (line := command.stderr.readline()):
                assert line, "it ended too early"
            command.send_signal(signal.SIGINT)
            told = command.stderr.read()
        assert command.returncode == 1
        assert "Paused; the same command goes on" in told
        assert main(["batch", "status", "--json"]) == 0
        (job,) = json.loads(capsys.readouterr().out)["jobs"]
        assert job["state"] == "paused"
        backend.step_s = 0.0
        assert main(words) == 0
        assert main(["batch", "cancel", job["id"], "--json"]) == 0
        ended = json.loads(capsys.readouterr().out)
        assert (ended["state"], ended["done_rows"]) == ("completed", 30)
    assert len(output.read_text().splitlines()) == 30
    assert len(backend.seen) == 30
