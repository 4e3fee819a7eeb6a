"""The app as a process that is measured: `python -m app.bench.driven PLAN -- ENGINE COMMAND`.

It is started as `python -m app` is, with somebody who uses it; what happens is told to the parent,
one JSON object on a line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from app.application import SignalWatch, new_application, new_qt
from app.bench.person import Person, Plan
from app.engine_process import EngineStart
from app.single_instance import SingleInstance
from engine.localapi.running import Home


def main() -> int:
    """See the module. Returns the exit code: 0 done, 1 failed."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.driven")
    parser.add_argument("--launch-only", action="store_true")
    parser.add_argument("--idle-s", type=float, required=True)
    parser.add_argument("--stream-s", type=float, required=True)
    parser.add_argument("--batch-s", type=float, required=True)
    parser.add_argument("--settle-s", type=float, required=True)
    parser.add_argument("--rows-file", type=Path, required=True)
    parser.add_argument("engine", nargs="+")
    args = parser.parse_args()
    home = Home.from_environment()
    qt = new_qt()
    instance = SingleInstance(home)
    if not instance.claim(""):
        return 1
    application = new_application(qt, home, EngineStart(tuple(args.engine), home), instance)
    watch = SignalWatch(application)
    plan = Plan(
        args.launch_only, args.idle_s, args.stream_s, args.batch_s, args.settle_s, args.rows_file
    )
    person = Person(application, plan, _tell)
    application.start()
    person.begin()
    qt.exec()
    watch.deleteLater()
    if person.failed:
        _tell("failed", {"reason": person.failed})
    return 1 if person.failed else 0


def _tell(scene: str, facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"scene": scene, **facts}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
