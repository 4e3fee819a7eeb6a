"""One computer with Windows and what its setup left, for tests of the setup's own program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from installers.package.windows import own_program
from installers.windows import provision
from installers.windows.provision import Exit
from tests.support.windows.computer import (
    ROOT,
    Mirror,
    StandInMachine,
    mirror,
    small_linux,
    uv_command,
    wsl_command,
)
from tests.support.windows.wsl_stand_in import Windows


@dataclass
class Pc:
    """One computer, and what its setup left."""

    root: Path
    state: Path
    exchange: Path
    windows: Windows
    machine: StandInMachine
    mirror: Mirror
    said: str = ""

    def run(self, task: str, *options: str) -> Exit:
        self.exchange.mkdir(exist_ok=True)
        code = provision.main(
            [task, "--root", str(self.root), "--state", str(self.state),
             "--exchange", str(self.exchange), *options],
            machine=self.machine,
            wsl_command=wsl_command(self.windows.folder),
            uv=uv_command(self.windows.folder),
        )  # fmt: skip
        self.said = (self.exchange / "result.txt").read_text("utf-16")
        return code

    def uv_calls(self) -> list[list[str]]:
        file = self.windows.folder / "uv.txt"
        return (
            [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            if file.exists()
            else []
        )

    def shown(self) -> str:
        return (self.exchange / "progress.txt").read_text("utf-16")

    def log(self) -> str:
        return (self.state / "logs" / "setup.log").read_text("utf-8")

    def unpack(self, version: str) -> None:
        """Do what the wizard does first: lay the files of a version's setup there."""
        shutil.rmtree(self.root / "setup", ignore_errors=True)
        own_program(ROOT, self.root / "setup")
        (self.root / "setup" / "gui.txt").write_text("pydantic==2 --hash=sha256:0\n", "utf-8")
        (self.root / "setup" / f"shoal-{version}-py3-none-any.whl").write_bytes(version.encode())
        told = {"urls": [self.mirror.url], "sha256": self.mirror.sha256}
        told |= {"size_bytes": len(self.mirror.content)}
        (self.root / "setup" / "root-file-system.json").write_text(json.dumps(told))


@contextmanager
def a_pc(folder: Path) -> Iterator[Pc]:
    """A computer in `folder` on which the setup of version 1 has been unpacked."""
    windows = Windows(folder)
    windows.put()
    with mirror(small_linux()) as one:
        pc = Pc(
            folder / "Jörg Müller & Söhne" / "魚群",
            folder / "state",
            folder / "exchange",
            windows,
            StandInMachine(windows),
            one,
        )
        pc.unpack("1")
        yield pc
