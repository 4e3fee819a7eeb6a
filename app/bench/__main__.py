"""`python -m app.bench [--json] -- ENGINE COMMAND`; `shoal bench desktop` starts it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.needs import what_is_missing


def main(words: Sequence[str] | None = None) -> int:
    """Measure the app. Returns the exit code: 0 done, 1 failed, 2 usage."""
    parser = argparse.ArgumentParser(
        prog="python -m app.bench",
        description="Measure the app: launch, memory, idle CPU, stalls. It is started several "
        "times and used by itself; leave mouse and keyboard alone meanwhile.",
    )
    parser.add_argument("--launches", type=int, default=5, metavar="N")
    parser.add_argument("--idle-s", type=float, default=30.0, metavar="S")
    parser.add_argument("--stream-s", type=float, default=20.0, metavar="S")
    parser.add_argument("--batch-s", type=float, default=20.0, metavar="S")
    parser.add_argument("--settle-s", type=float, default=3.0, metavar="S")
    parser.add_argument("--rows", type=int, default=50_000, metavar="N")
    parser.add_argument("--messages", type=int, default=10_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("engine", nargs="+", help="the command of an engine that only answers")
    args = parser.parse_args(words)
    if problem := what_is_missing():
        return _fail(problem)
    # These import Qt, whose absence was to be told first.
    from app.bench.measuring import Bench, MeasurementFailed, measure
    from app.bench.person import Plan
    from app.bench.report import lines

    plan = Plan(
        idle_s=args.idle_s,
        stream_s=args.stream_s,
        batch_s=args.batch_s,
        settle_s=args.settle_s,
    )
    bench = Bench(
        [*args.engine, "--messages", str(args.messages)], max(args.launches, 1), args.messages,
        args.rows, plan,
    )  # fmt: skip
    try:
        report = measure(bench)
    except MeasurementFailed as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("The measurement was stopped.")
    sys.stdout.write((report.model_dump_json() if args.json else "\n".join(lines(report))) + "\n")
    return 0


def _fail(problem: str) -> int:
    sys.stderr.write(f"shoal: {problem}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
