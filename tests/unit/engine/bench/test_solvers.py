from __future__ import annotations

import ctypes
import os

from engine.bench.solvers import output_to_stderr


def test_what_a_library_prints_does_not_reach_standard_output(capfd):
    with output_to_stderr():
        ctypes.CDLL(None).puts(b"a doubt")
        os.write(1, b"another\n")
    print("{}")
    printed = capfd.readouterr()
    assert printed.out == "{}\n"
    assert "a doubt" in printed.err
    assert "another" in printed.err
