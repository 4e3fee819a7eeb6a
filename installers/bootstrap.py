"""Set Shoal up in a virtual environment of its own, then run it or its checks.

    python3 installers/bootstrap.py run [arguments of `shoal`]
    python3 installers/bootstrap.py test [arguments of `pytest`]

The first call installs what is missing; later ones find everything in place and start at once.
`test` without arguments runs every check, with arguments only the tests they choose.
Standard library only: this file runs before anything is installed, and is kept readable for older
Pythons, so that they can say what is wrong.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USAGE = """usage: python3 installers/bootstrap.py run [arguments of shoal]
       python3 installers/bootstrap.py test [arguments of pytest]"""


def main(arguments: list) -> int:  # type: ignore[type-arg]  # subscripts fail before Python 3.9
    """Obey the command line; returns the exit status (0 done, 1 failed, 2 usage)."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the very case that must be told
        version = sys.version.split()[0]
        print(
            "Shoal needs Python 3.11 or newer, but this is Python " + version + "; "
            "install a newer one and start this file with it.",
            file=sys.stderr,
        )
        return 1
    sys.path.insert(0, str(ROOT))
    from installers.setup_steps import commands

    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if not arguments or arguments[0] not in commands.COMMANDS:
        print(USAGE, file=sys.stderr)
        return 2
    return commands.COMMANDS[arguments[0]](ROOT, arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
