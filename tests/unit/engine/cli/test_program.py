import subprocess
import sys

import pytest

from engine import __version__
from engine.cli.program import main


def test_the_version_is_shown(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"shoal {__version__}\n"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    for command in (
        "engine",
        "chat",
        "status",
        "pause",
        "resume",
        "swarm",
        "plan",
        "doctor",
        "bench",
    ):
        assert f"\n    {command} " in text


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["status", "--nonsense"],
        ["swarm"],
        ["swarm", "create"],
        ["--nonsense"],
        ["engine", "--stages", "0"],
        ["pause", "--for", "soon"],
        ["engine", "--dtype", "int4"],
        ["engine", "--ready-fd", "3", "--ready-file", "x"],
    ],
)
def test_wrong_usage_ends_with_2(words, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    assert "usage: shoal" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["pause"], ["resume"], ["swarm", "show"]])
def test_commands_on_an_engine_say_when_none_runs(command, capsys):
    assert main([*command, "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("shoal: No engine runs here")
    assert captured.err.count("\n") == 1


def test_debug_shows_where_an_error_comes_from(capsys):
    assert main(["--debug", "status"]) == 1
    assert main(["status", "--debug"]) == 1
    assert capsys.readouterr().err.count("Traceback") == 2


def test_a_bad_setting_ends_the_engine_with_one_sentence(capsys):
    assert main(["engine", "--port", "99999"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("shoal: The setting api.port is wrong")
    assert captured.err.count("\n") == 1


def test_the_commands_load_nothing_heavy():
    probe = (
        "import sys; from engine.cli.program import main; main(['status']); "
        "print(sorted({'torch', 'hivemind', 'transformers', 'aiohttp', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "[]\n"
