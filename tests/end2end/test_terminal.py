"""The commands as a person has them: in a terminal, with Ctrl-C."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.fake_home import running_in

pytestmark = pytest.mark.end2end
LIMIT_S = 30.0


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def backend(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer)
    with running_in(tmp_path, backend):
        yield backend


def environment(home_root) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    return {**kept, "SHOAL_HOME": str(home_root), "TERM": "dumb"}


class Terminal:
    """A program on a terminal: what it shows, and what is typed."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, pattern: str) -> None:
        """Wait until `pattern` is shown; what came before it is then forgotten."""
        deadline = time.monotonic() + LIMIT_S
        while not (match := re.search(pattern, self.shown)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} did not come, but: {self.shown!r}"
            if select.select([self._descriptor], [], [], left)[0]:
                self.shown += os.read(self._descriptor, 4096).decode("utf-8", "replace")
        self.shown = self.shown[match.end() :]


@contextmanager
def terminal(home_root, *words: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "engine", *words]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(home_root),
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def settle() -> None:
    """A person does not press a key in the instant in which the prompt appears, and readline is
    deaf to a signal just then."""
    time.sleep(0.5)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_conversation_goes_on_and_ctrl_c_stops_only_the_answer(backend, tmp_path):
    with terminal(tmp_path, "chat") as screen:
        screen.wait_for("> ")
        screen.type("Hello\n")
        screen.wait_for(re.escape(backend.answer))
        screen.wait_for(r"\d+ tokens, [\d.]+ tokens/s")
        backend.hang_after = 4
        screen.type("And then?\n")
        screen.wait_for("The sho")
        screen.type("\x03")
        screen.wait_for("> ")
        assert screen.process.poll() is None
        backend.hang_after = None
        screen.type("Once more\n")
        screen.wait_for(re.escape(backend.answer))
        asked = backend.tokenizer.decode(backend.seen[-1][0])
        assert "Hello" in asked
        assert "And then?" in asked
        screen.type("/exit\n")
        assert screen.process.wait(LIMIT_S) == 0
    assert backend.running == 0


def test_a_second_ctrl_c_at_the_prompt_leaves(backend, tmp_path):
    with terminal(tmp_path, "chat") as screen:
        screen.wait_for("> ")
        settle()
        screen.type("\x03")
        screen.wait_for("Ctrl-C again leaves")
        screen.wait_for("> ")
        settle()
        screen.type("\x03")
        assert screen.process.wait(LIMIT_S) == 0


def test_without_a_display_shoal_answers_and_stays_until_ctrl_c(backend, tmp_path):
    command = [sys.executable, "-m", "engine"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment(tmp_path),
    ) as process:
        assert process.stderr.readline() == (
            "No window: there is no display. Going on in the terminal.\n"
        )
        assert process.stdout.readline() == backend.answer + "\n"
        lines = iter(process.stderr.readline, "")
        assert any("API: http://127.0.0.1:" in line for line in lines)
        assert any("until Ctrl-C" in line for line in lines)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()


def test_a_reader_that_leaves_early_is_no_error_of_ours(backend, tmp_path):
    backend.answer = "line\n" * 50
    command = f"{sys.executable} -m engine chat Hello | head -n 1"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert done.stdout == "line\n"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
