from __future__ import annotations

import json

from engine.cli.program import main
from engine.localapi.running import Home


def test_looking_is_switched_off_and_on_without_an_engine(capsys):
    file = Home.from_environment().settings_file
    assert main(["update", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"check": False}
    assert "check = false" in file.read_text()
    assert main(["update", "on"]) == 0
    assert "once a day" in capsys.readouterr().out
    assert "check = true" in file.read_text()


def test_looking_now_needs_an_engine_and_says_how_to_start_one(capsys):
    assert main(["update", "check"]) == 1
    assert "start one with `shoal`" in capsys.readouterr().err
