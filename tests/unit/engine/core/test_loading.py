from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from engine.core.loading import loading


def test_garbage_is_looked_for_again_whether_loading_succeeds_or_fails() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


def test_a_child_program_gets_its_own_arguments_and_status() -> None:
    words = [sys.executable, "-m", "engine.core.child_program", "engine.models.prepare", "--help"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--models-dir" in done.stdout
