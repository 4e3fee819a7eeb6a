import subprocess
import sys

import pytest

from engine.core.errors import ConfigError
from engine.localapi.lock import engine_lock
from engine.localapi.running import Home

HOLD = """
import sys
from pathlib import Path
from engine.localapi.lock import engine_lock
from engine.localapi.running import Home
with engine_lock(Home.under(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_engine_is_refused_and_told_the_first_ones_process(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ConfigError, match=rf"already runs here \(process {holder.pid}"),
            engine_lock(Home.under(tmp_path)),
        ):
            pass
        holder.kill()
    # A killed engine leaves no lock behind.
    with engine_lock(Home.under(tmp_path)):
        pass


def test_engines_of_different_homes_do_not_meet(tmp_path):
    with engine_lock(Home.under(tmp_path / "a")), engine_lock(Home.under(tmp_path / "b")):
        pass


def test_a_home_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "state").write_text("a file where a folder should be")
    with (
        pytest.raises(ConfigError, match="SHOAL_HOME"),
        engine_lock(Home.under(tmp_path)),
    ):
        pass
