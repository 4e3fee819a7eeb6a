"""The bench's host as a program: it speaks lines, and nothing that it started outlives it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from engine.bench.children import BenchFailed, Child, Children, OrderFailed, Program

LIMIT_S = 20.0


def script(folder: Path, text: str) -> Program:
    """A program that talks, from source text."""
    (folder / "scripted_program.py").write_text(text, encoding="utf-8")
    return Program(["scripted_program"], {}, {"PYTHONPATH": str(folder)}, talks=True)


ECHO = """
import os, sys
print('{"ready": %d}' % os.getpid(), flush=True)
for line in sys.stdin:
    print('{"result": %s}' % line.strip(), flush=True)
"""


async def test_a_program_answers_what_it_is_asked(tmp_path):
    async with Children(None) as children:
        child = await children.launch("The echo")
        await child.start(script(tmp_path, ECHO), LIMIT_S)
        await child.answer("ready", LIMIT_S)
        assert await child.ask({"n": 1}, LIMIT_S) == {"n": 1}


CROWD = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print('{"ready": %d}' % child.pid, flush=True)
for line in sys.stdin:
    print('{"reached": 1}', flush=True)
    print('{"failed": "It is too late."}' if "late" in line else '{"result": 2}', flush=True)
"""


def wait_until_dead(pid: int) -> None:
    deadline_s = time.monotonic() + 5
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


async def test_a_killed_program_takes_its_children_along_and_another_can_be_started(tmp_path):
    async with Children(None) as children:
        child = await children.launch("The crowd")
        for _ in range(2):
            await child.start(script(tmp_path, CROWD), LIMIT_S)
            pid = (await child.answer("ready", LIMIT_S))["ready"]
            resident = await child.resident_bytes()
            assert resident["program"] > 1 << 20
            assert resident["others"] > 0
            await child.kill()
            await asyncio.to_thread(wait_until_dead, pid)
        assert not child.ended.done()


async def test_notices_come_before_the_result_and_a_refusal_does_not_end_the_program(tmp_path):
    async with Children(None) as children:
        child = await children.launch("The crowd")
        await child.start(script(tmp_path, CROWD), LIMIT_S)
        await child.answer("ready", LIMIT_S)
        heard: list[int] = []
        assert await child.ask({"n": 1}, LIMIT_S, heard.append) == 2
        with pytest.raises(OrderFailed, match="The crowd: It is too late"):
            await child.ask({"n": "late"}, LIMIT_S, heard.append)
        assert heard == [1, 1]
        assert await child.ask({"n": 1}, LIMIT_S, heard.append) == 2


async def test_leaving_ends_the_program_and_removes_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with Children(None) as children:
        child = await children.launch("The echo")
        await child.start(script(tmp_path, ECHO), LIMIT_S)
        pid = (await child.answer("ready", LIMIT_S))["ready"]
        assert psutil.pid_exists(pid)
        assert list(tmp_path.glob("shoal-bench-*"))
    assert not psutil.pid_exists(pid)
    assert not list(tmp_path.glob("shoal-bench-*"))


async def test_a_program_that_ends_is_reported_with_its_last_words_and_its_log(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    failing = script(tmp_path, "import sys; sys.exit('shoal: The stage fell over.')")

    async def wait_for_it() -> None:
        async with Children(None) as children:
            child = await children.launch("Stage 2")
            await child.start(failing, LIMIT_S)
            await children.first(child.answer("ready", LIMIT_S))

    with pytest.raises(BenchFailed, match=r"Stage 2 .* code 1: The stage fell over\.; read") as why:
        await wait_for_it()
    log = str(why.value).rpartition("read ")[2].removesuffix(".")
    assert "fell over" in Path(log).read_text(encoding="utf-8")


async def test_the_end_of_one_program_interrupts_waiting_for_another(tmp_path):
    async def wait_for_the_other() -> None:
        async with Children(None) as children:
            waiting = await children.launch("The client")
            ending = await children.launch("Stage 1")
            await ending.start(script(tmp_path, "raise SystemExit(3)"), LIMIT_S)
            await children.first(waiting.answer("ready", LIMIT_S))

    with pytest.raises(BenchFailed, match="Stage 1 ended with code 3"):
        await wait_for_the_other()


async def test_a_host_that_cannot_be_reached_says_why():
    with pytest.raises(BenchFailed, match=r"Stage 1 cannot be reached.*no such host"):
        await Child.launch("Stage 1", ["sh", "-c", "echo no such host >&2; exit 255"], None)


async def test_cores_that_are_not_there_are_refused():
    with pytest.raises(BenchFailed, match=r"Stage 1: none of the cores \[4000\] is there"):
        await Child.launch("Stage 1", [], [4000])


async def test_the_program_dies_when_its_host_is_killed(tmp_path):
    child = await Child.launch("The echo", [], None)
    await child.start(script(tmp_path, ECHO), LIMIT_S)
    program = psutil.Process((await child.answer("ready", LIMIT_S))["ready"])
    host = program.parent()
    assert host is not None
    host.kill()
    await asyncio.to_thread(program.wait, 5)
    assert "cannot be reached" in str(await asyncio.wait_for(child.ended, 5))
    await child.end(keep=False)


def test_the_program_dies_when_nobody_can_give_orders_any_more(tmp_path):
    program = script(tmp_path, ECHO)
    start = {
        "op": "start",
        "words": program.words,
        "files": {},
        "environment": program.environment,
        "talks": True,
        "listens_at": None,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "engine.bench.host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(json.dumps(start).encode() + b"\n")
        host.stdin.flush()
        pid = json.loads(host.stdout.readline())["ready"]
        assert psutil.pid_exists(pid)
        host.stdin.close()
        host.wait(LIMIT_S)
    assert not psutil.pid_exists(pid)
    assert not list(tmp_path.glob("shoal-bench-*"))
