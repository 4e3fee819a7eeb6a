"""`shoal batch`: many prompts from a file, their answers into another."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

from engine.cli.attach import attached, running_engine
from engine.cli.commands import Commands
from engine.cli.engine_arguments import add_engine_arguments
from engine.cli.quantities import positive
from engine.cli.terminal import ProgressLine, printable, say
from engine.core.errors import EngineError, RequestError
from engine.localapi.client import ApiClient
from engine.localapi.jobs import ENDED_STATES, JobInfo, JobList, JobState
from engine.localapi.running import Home

_JOBS: Final = "/shoal/v1/jobs"
_LOOK_S: Final = 0.5
_CREATE_LIMIT_S: Final = 120.0
"""The engine looks through the whole input for its encoding before it answers."""
_SHOWN_PROBLEMS: Final = 10


def add_to(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command with its own."""
    parser = commands.add_parser(
        "batch", help="many prompts from a file", description="Many prompts from a file."
    )
    own = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(own, everywhere)
    for name, run, text in (
        ("status", _status, "how far the batches are"),
        ("cancel", _cancel, "end a batch; its answers so far stay"),
        ("resume", _resume, "go on with a batch that was paused"),
        ("retry", _retry, "ask the failed rows of a batch again"),
    ):
        command = own.add_parser(name, parents=[everywhere], help=text)
        needed = None if name != "status" else "?"
        command.add_argument("id", nargs=needed, metavar="ID", help="as `status` shows it")
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(run=run)


def _add_run(own: Commands, everywhere: argparse.ArgumentParser) -> None:
    run = own.add_parser(
        "run",
        parents=[everywhere],
        help="answer the rows of a file",
        description="Answer each row of INPUT: lines of JSON (OpenAI's batch format, or bodies of "
        "requests), a table (CSV) or a text (a prompt on each line). Answers come into the output "
        "in the same order while it runs. Ctrl-C pauses; the same command goes on.",
    )
    run.add_argument("input", type=Path, metavar="INPUT")
    run.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        help="lines of JSON, or a table if it ends with .csv",
    )
    run.add_argument(
        "--template",
        metavar="TEXT",
        help="the prompt, with {column} where a row's values go; {line} for texts",
    )
    run.add_argument("--system", metavar="TEXT", help="instructions for the model")
    run.add_argument("--temperature", type=float, metavar="T", help="0 is the likeliest text")
    run.add_argument("--seed", type=int, help="the same seed gives the same answers")
    run.add_argument("--max-tokens", type=positive, metavar="N", help="longest answer")
    run.add_argument("--format", choices=("jsonl", "csv", "txt"), help="of the input")
    run.add_argument("--priority", type=int, default=0, metavar="P", help="higher comes first")
    run.add_argument(
        "--skip-bad-rows", action="store_true", help="let rows that cannot be asked be error rows"
    )
    run.add_argument("--overwrite", action="store_true", help="replace an output that is there")
    run.add_argument("--json", action="store_true", help="print one JSON object at the end")
    add_engine_arguments(run)
    run.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    wanted = {"temperature": args.temperature, "seed": args.seed, "max_tokens": args.max_tokens}
    body: dict[str, object] = {
        "input_path": str(args.input.expanduser().absolute()),
        "output_path": str(args.output.expanduser().absolute()),
        "parameters": {name: value for name, value in wanted.items() if value is not None},
        "priority": args.priority,
        "skip_bad_rows": args.skip_bad_rows,
        "overwrite": args.overwrite,
    }
    optional = {"template": args.template, "system": args.system, "format": args.format}
    body |= {name: value for name, value in optional.items() if value is not None}
    if not args.input.exists():
        raise RequestError(f"There is no file {args.input}; check the path.")
    with attached(args) as engine:
        job = _read(engine.client.call("POST", _JOBS, body, timeout_s=_CREATE_LIMIT_S))
        try:
            job = _watch(engine.client, job)
        except KeyboardInterrupt:
            _pause(engine.client, job)
            raise
    if args.json:
        print(job.model_dump_json())
    return _tell_end(job, args.output)


def _watch(client: ApiClient, job: JobInfo) -> JobInfo:
    """Show how far it is until it has ended, or waits for the person."""
    with ProgressLine() as line:
        while job.state not in (*ENDED_STATES, JobState.REVIEW, JobState.PAUSED):
            line.show(*_progress(job))
            time.sleep(_LOOK_S)
            job = _read(client.call("GET", f"{_JOBS}/{job.id}"))
    return job


def _pause(client: ApiClient, job: JobInfo) -> None:
    try:
        client.call("POST", f"{_JOBS}/{job.id}/pause")
    except EngineError as error:  # it has just ended, or is still reading its input
        say(printable(str(error)))
        return
    say("Paused; the same command goes on, and so does `shoal batch resume`.")


def _tell_end(job: JobInfo, output: Path) -> int:
    """Say how it ended. Returns the exit code."""
    for problem in job.problems[:_SHOWN_PROBLEMS]:
        place = f"line {problem.line}" if problem.line is not None else "input"
        column = f", {problem.column}" if problem.column else ""
        say(printable(f"  {place}{column}: {problem.message}"))
    if job.num_problems > _SHOWN_PROBLEMS:
        say(f"  … and {job.num_problems - _SHOWN_PROBLEMS} more.")
    if job.state is JobState.REVIEW:
        raise RequestError(
            f"{job.num_problems} of {job.total_rows} rows cannot be asked, so nothing was; correct "
            "them and run the same again, or add --skip-bad-rows."
        )
    if job.state is not JobState.COMPLETED:
        raise EngineError(job.reason or f"The batch is {job.state.value}.")
    say(
        f"{_count(job.done_rows, 'answer')} in {output}"
        + (f", and {_count(job.failed_rows, 'error')}" if job.failed_rows else "")
        + "."
    )
    return 0


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _progress(job: JobInfo) -> tuple[str, str]:
    if job.state is JobState.VALIDATING:
        return "Reading the input", f"{job.total_rows} rows"
    if job.reason:
        return job.reason.removesuffix("."), f"{job.done_rows} of {job.total_rows} rows"
    parts = [f"{job.done_rows + job.failed_rows} of {job.total_rows} rows"]
    if job.failed_rows:
        parts.append(f"{job.failed_rows} failed")
    if job.tokens_per_s:
        parts.append(f"{job.tokens_per_s:.1f} tokens/s")
    if job.eta_low_s is not None and job.eta_high_s is not None:
        parts.append(_range(job.eta_low_s, job.eta_high_s))
    return "Answering", ", ".join(parts)


def _range(low_s: float, high_s: float) -> str:
    """`2 to 3 min left`, in the unit that suits the longer one."""
    unit_s, unit = next(
        ((size, name) for size, name in ((3600, "h"), (60, "min")) if high_s >= 2 * size),
        (1, "s"),
    )
    low, high = round(low_s / unit_s), max(1, round(high_s / unit_s))
    return f"{high} {unit} left" if low == high else f"{low} to {high} {unit} left"


def _status(args: argparse.Namespace) -> int:
    client = running_engine(Home.from_environment()).client
    if args.id is not None:
        answer = client.call("GET", f"{_JOBS}/{args.id}")
        jobs = [_read(answer)]
    else:
        answer = client.call("GET", _JOBS)
        jobs = list(JobList.model_validate(answer).jobs)
    if args.json:
        print(json.dumps(answer, ensure_ascii=False))
        return 0
    for job in jobs:
        print(printable(_line(job)))
    if not jobs:
        say("There are no batches; `shoal batch run` begins one.")
    return 0


def _line(job: JobInfo) -> str:
    what = job.state.value
    if job.state is JobState.RUNNING or job.reason:
        title, detail = _progress(job)
        what += f": {detail}" if title == "Answering" else f": {title} ({detail})"
    else:
        what += f", {job.done_rows} of {job.total_rows} rows"
        what += f", {job.failed_rows} failed" if job.failed_rows else ""
    return f"{job.id}  {job.name}  {what}"


def _cancel(args: argparse.Namespace) -> int:
    return _act("cancel", args)


def _resume(args: argparse.Namespace) -> int:
    return _act("resume", args)


def _retry(args: argparse.Namespace) -> int:
    return _act("retry", args)


def _act(action: str, args: argparse.Namespace) -> int:
    client = running_engine(Home.from_environment()).client
    job = _read(client.call("POST", f"{_JOBS}/{args.id}/{action}"))
    print(job.model_dump_json() if args.json else printable(_line(job)))
    return 0


def _read(answer: dict[str, Any]) -> JobInfo:
    return JobInfo.model_validate(answer)
