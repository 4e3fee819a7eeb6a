"""PyTorch into an environment, from the index that has the build for this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from installers.setup_steps import pip_runs
from installers.setup_steps.report import Report, SetupFailed
from installers.setup_steps.torch_build import CPU_INDEX

# pip, and not something faster: it goes on at the byte where a connection was cut.
PIP_INSTALL = ("install", "--progress-bar=raw", "--resume-retries=10", "--no-user")


class Pip(Protocol):
    """Runs pip of one environment."""

    def __call__(self, purpose: str, *arguments: str) -> None:
        """Run it.

        Raises:
            SetupFailed: It failed.
        """


def install_for_cpus(python: Path, lock: Path, pip: Pip, report: Report) -> bool:
    """Take torch from PyTorch's CPU index, by hash; whether it is there now.

    A person who has told pip where to look, or who cannot reach that index, gets it elsewhere.

    Args:
        python: The environment's.
        lock: The list that names it with the hashes of its files, `torch-cpu.txt`.
        pip: How to run pip there.
        report: Hears why it is not taken from there.
    """
    if pip_runs.has_own_index(python):
        report.say("pip is configured with an index of its own, so PyTorch comes from it.")
        return False
    larger = "PyTorch's larger default build is used, which works on a CPU too."
    if not pip_runs.is_reachable(f"{CPU_INDEX}/torch/", python):
        report.say(f"{CPU_INDEX} cannot be reached: {larger}")
        return False
    try:
        pip(
            "install PyTorch for CPUs",
            *(*PIP_INSTALL, "--index-url", CPU_INDEX, "--no-deps"),
            *("--require-hashes", "--requirement", str(lock)),
        )
    except SetupFailed as error:
        report.say(f"{error} Going on: {larger}")
        return False
    return True
