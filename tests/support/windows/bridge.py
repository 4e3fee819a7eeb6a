"""Does what uv.exe is asked under Wine: runs the installed setup program with this system's Python.

    python bridge.py FOLDER PREFIX

FOLDER has `call.txt`, the command line as Windows gave it, and is the computer of
`wsl_stand_in`; PREFIX is Wine's. The setup's own files are used, not those of the checkout.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def words_of(line: str) -> list[str]:
    """A command line of Windows as its program sees it; quotes within words do not occur."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def unix(word: str, prefix: Path) -> str:
    """A path of Windows as this system names it; any other word as it is."""
    match = re.fullmatch(r"([A-Z]):\\(.*)", word)
    if match is None:
        return word
    root = Path("/") if match[1] == "Z" else prefix / f"drive_{match[1].lower()}"
    return str(root / match[2].replace("\\", "/"))


def main() -> int:
    folder, prefix = Path(sys.argv[1]), Path(sys.argv[2])
    words = [unix(word, prefix) for word in words_of((folder / "call.txt").read_text("utf-16"))]
    with (folder / "uv-for-python.txt").open("a", encoding="utf-8") as file:
        file.write(json.dumps(words[1:]) + "\n")
    at = next(index for index, word in enumerate(words) if word.endswith("provision.py"))
    setup = Path(words[at]).parents[2]
    # The checkout, where these stand-ins are, comes last.
    sys.path[:] = [str(setup), *map(str, setup.glob("shoal-*.whl")), *sys.path[1:], str(ROOT)]
    from installers.windows import provision
    from tests.support.windows.computer import StandInMachine, uv_command, wsl_command
    from tests.support.windows.wsl_stand_in import Windows

    assert str(provision.__file__) == words[at]
    code = provision.main(
        words[at + 1 :],
        machine=StandInMachine(Windows(folder)),
        wsl_command=wsl_command(folder),
        uv=uv_command(folder),
    )
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
