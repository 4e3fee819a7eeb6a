"""The bench's hand on one machine: places files, runs one program there, and ends it with us.

Started as `[PREFIX…] python -m engine.bench.host`, so nothing on the command line needs quoting,
whatever the prefix is (`ip netns exec`, `ssh`). Orders come as JSON lines on standard input, and
the end of that stream ends the program too: that reaches through ssh, where signals do not.

    {"op": "hello", "cores": [0, 1] | null}
    {"op": "start", "words": ["engine", …], "files": {path: base64}, "environment": {…},
     "talks": bool, "listens_at": [host, port] | null}
    {"op": "tell", "line": "…"}                      for the program's standard input
    {"op": "memory"}
    {"op": "traffic"}
    {"op": "kill"}                                   at once, with all its children
    {"op": "end", "keep": bool}

In `words`, `{home}` is the folder made here. Answers are JSON lines: `hello`, `up` once something
listens at the address, `memory`, `traffic`, `killed` (then another program can start), and `ended`. A program
that talks has our standard output as its own.
Standard library only, so that it starts at once on every machine.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from engine.core.lifetime import death_signal

END_LIMIT_S = 10.0
_POLL_S = 0.1
_TAIL_BYTES = 1 << 16
_ERROR_PREFIX = "shoal: "
_GRAVE = (" WARN", " ERROR", " CRITICAL", " FATAL")

Order = dict[str, Any]


class Host:
    """The one program that runs here, and its folder."""

    def __init__(self) -> None:
        self._home: Path | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()
        self._printing = threading.Lock()

    def obey(self, order: Order) -> bool:
        """Carry out one order; False after the last one."""
        match order["op"]:
            case "hello":
                self._hello(order["cores"])
            case "start":
                self._start(order)
            case "tell":
                self._tell(order["line"])
            case "memory":
                self._say({"memory": self._memory()})
            case "traffic":
                self._say(_traffic())
            case "kill":
                self._kill()
            case "end":
                self.end(keep=order["keep"])
                return False
            case other:
                raise AssertionError(f"unknown order {other!r}")
        return True

    def end(self, *, keep: bool) -> None:
        """End the program and wait; then say how it went, and remove its folder unless `keep`."""
        if self._ending.is_set():
            return
        self._ending.set()
        program = self._program
        if program is not None and program.poll() is None:
            program.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(END_LIMIT_S)
            _kill_group(program.pid)  # and whatever it leaves behind
            program.wait()
        self._say_ended()
        if self._home is not None and not keep:
            shutil.rmtree(self._home, ignore_errors=True)

    def _kill(self) -> None:
        assert self._program is not None, "nothing was started"
        assert self._home is not None
        program, self._program = self._program, None  # `_watch` shall not report it
        _kill_group(program.pid)
        program.wait()
        shutil.rmtree(self._home, ignore_errors=True)
        self._say({"killed": True})

    def _memory(self) -> dict[str, int]:
        """Resident bytes of the program, of the engine's own workers, and of other children."""
        assert self._program is not None, "nothing was started"
        resident = {"program": 0, "workers": 0, "others": 0}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if os.getpgid(int(folder.name)) != self._program.pid:
                    continue
                words = (folder / "cmdline").read_bytes().split(b"\0")
                pages = int((folder / "statm").read_text("ascii").split()[1])
                kind = "program" if int(folder.name) == self._program.pid else "others"
                if any(word.startswith(b"engine.") for word in words):
                    kind = "workers"
                resident[kind] += pages * os.sysconf("SC_PAGE_SIZE")
        return resident

    def _hello(self, cores: list[int] | None) -> None:
        if cores is not None:
            try:
                os.sched_setaffinity(0, cores)
            except OSError:
                self._say({"error": f"none of the cores {cores} is there; choose others."})
                return
        self._say(
            {
                "hello": {
                    "machine": _machine(),
                    "cores": len(os.sched_getaffinity(0)),
                    "free_port": _free_port(),
                }
            }
        )

    def _start(self, order: Order) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="shoal-bench-"))
        for name, data in order["files"].items():
            path = self._home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(data))
            path.chmod(0o600)
        words = [word.replace("{home}", str(self._home)) for word in order["words"]]
        talks = order["talks"]
        with (self._home / "output.log").open("wb") as log:
            self._program = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=None if talks else log,
                stderr=log,
                env={**os.environ, **order["environment"], "SHOAL_HOME": str(self._home)},
                process_group=0,
                preexec_fn=death_signal(),
            )
        threading.Thread(target=self._watch, args=(self._program,), daemon=True).start()
        if order["listens_at"] is not None:
            address = (order["listens_at"][0], order["listens_at"][1])
            threading.Thread(target=self._await_listener, args=(address,), daemon=True).start()

    def _tell(self, line: str) -> None:
        assert self._program is not None, "nothing was started"
        assert self._program.stdin is not None, "it does not listen"
        with contextlib.suppress(BrokenPipeError):  # it has ended, and `_watch` says so
            self._program.stdin.write(line.encode() + b"\n")
            self._program.stdin.flush()

    def _watch(self, program: subprocess.Popen[bytes]) -> None:
        program.wait()
        if self._program is program and not self._ending.is_set():
            self._say_ended()

    def _await_listener(self, address: tuple[str, int]) -> None:
        while not self._ending.is_set():
            try:
                with socket.create_connection(address, timeout=1.0):
                    self._say({"up": True})
                    return
            except OSError:
                time.sleep(_POLL_S)

    def _say_ended(self) -> None:
        if self._program is not None and self._home is not None:
            log, last = last_words(self._home)
            self._say({"ended": {"code": self._program.returncode, "log": log, "last": last}})

    def _say(self, answer: dict[str, Any]) -> None:
        with self._printing, contextlib.suppress(BrokenPipeError):  # the bench may be gone
            print(json.dumps(answer), flush=True)


def last_words(home: Path) -> tuple[str, str]:
    """The log to read, and its line that says most about an end: (path, line)."""
    output, log = home / "output.log", home / "state" / "engine.log"
    said, logged = _tail(output), _tail(log)
    for line in reversed(said):
        if line.startswith(_ERROR_PREFIX):
            return str(output), line.removeprefix(_ERROR_PREFIX)
    for line in reversed(logged):
        if any(level in line for level in _GRAVE):
            return str(log), line
    if said:
        return str(output), said[-1]
    return str(log if logged else output), logged[-1] if logged else ""


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def _traffic() -> dict[str, Any]:
    """Bytes over all network interfaces but loopback."""
    try:
        lines = Path("/proc/net/dev").read_text("ascii").splitlines()
    except OSError as error:
        return {"error": f"this host does not count what its interfaces carry: {error}."}
    counts = [
        (int(words[0]), int(words[8]))
        for name, _, rest in (line.partition(":") for line in lines)
        if (words := rest.split()) and words[0].isdecimal() and name.strip() != "lo"
    ]
    received_bytes, sent_bytes = (
        (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    )
    return {
        "traffic": {
            "received_bytes": received_bytes,
            "sent_bytes": sent_bytes,
            "at_s": time.monotonic(),
        }
    }


def _kill_group(leader_pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader_pid, signal.SIGKILL)


def _machine() -> str:
    """The same for programs that share processor cores, different on every boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return socket.gethostname()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """Obey until told to end, or until nobody can tell us any more."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    host = Host()
    try:
        while line := sys.stdin.readline():
            if not host.obey(json.loads(line)):
                break
    finally:
        host.end(keep=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
