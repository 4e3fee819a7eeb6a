import os
import socket

import pytest

from engine.cli import shoal_checks
from engine.cli.checks import Level
from engine.localapi.running import Home
from engine.localapi.schema import ReadyFile


@pytest.fixture
def home(home_root) -> Home:
    home = Home.under(home_root)
    home.config_dir.mkdir(parents=True)
    return home


def only(checks):
    (check,) = checks
    return check


def test_all_is_well_in_a_fresh_home_and_looking_makes_no_folders(home):
    checks = (shoal_checks.folders, shoal_checks.settings, shoal_checks.port, shoal_checks.engine)
    for check in checks:
        assert only(check(home)).level is Level.OK
    assert not home.state_dir.exists()


def test_a_folder_that_cannot_be_written_is_named(home):
    home.data_dir.write_text("a file where a folder should be")
    check = only(shoal_checks.folders(home))
    assert check.level is Level.FAIL
    assert str(home.data_dir) in check.found
    assert "SHOAL_HOME" in check.advice


def test_a_wrong_setting_is_named(home):
    home.settings_file.write_text("[model]\ncolour = 'red'\n")
    check = only(shoal_checks.settings(home))
    assert check.level is Level.FAIL
    assert "model.colour" in check.found


def test_a_taken_port_is_found(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        home.settings_file.write_text(f"[api]\nport = {number}\n")
        check = only(shoal_checks.port(home))
        assert check.level is Level.FAIL
        assert str(number) in check.found


def test_an_engine_that_does_not_answer_is_found(home):
    home.token_file.parent.mkdir()
    home.token_file.write_text("x" * 43)
    home.running_file.parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    ready = ReadyFile(url=url, token_file=str(home.token_file), pid=os.getpid())
    home.running_file.write_text(ready.model_dump_json())
    check = only(shoal_checks.engine(home))
    assert check.level is Level.FAIL
    assert str(os.getpid()) in check.advice
