"""The GPU's driver is the test's, everything of ours is real."""

import os
from dataclasses import dataclass, field
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from engine.probes.gpu import GpuProbe

OTHER = 1  # a process that is never ours


@dataclass
class Driver:
    """A GPU with 8 GiB."""

    held: dict[int, int] = field(default_factory=dict)
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    """(process, time stamp in us, percent)."""
    is_there: bool = True
    opened: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def memory(handle):
            return SimpleNamespace(total=8 << 30, free=(8 << 30) - sum(self.held.values()))

        def processes(handle):
            return [SimpleNamespace(pid=pid, usedGpuMemory=b) for pid, b in self.held.items()]

        def utilization(handle, since_us):
            newer = [
                SimpleNamespace(pid=pid, timeStamp=at, smUtil=share)
                for pid, at, share in self.samples
                if at > since_us
            ]
            if not newer:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
            return newer

        def init():
            if not self.is_there:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
            self.opened += 1

        def handle(uuid):
            if not self.is_there:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            assert uuid == "GPU-abc"
            return uuid

        def shutdown():
            self.opened -= 1

        for name, function in {
            "nvmlInit": init,
            "nvmlShutdown": shutdown,
            "nvmlDeviceGetHandleByUUID": handle,
            "nvmlDeviceGetMemoryInfo": memory,
            "nvmlDeviceGetComputeRunningProcesses": processes,
            "nvmlDeviceGetGraphicsRunningProcesses": lambda handle: [],
            "nvmlDeviceGetProcessUtilization": utilization,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 71,
            "nvmlDeviceGetPowerUsage": lambda handle: 215_500,
        }.items():
            monkeypatch.setattr(pynvml, name, function)


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    driver.install(monkeypatch)
    return driver


def test_our_own_work_is_not_taken_for_that_of_others(driver):
    ours = os.getpid()
    driver.held = {ours: 2 << 30, OTHER: 1 << 30}
    driver.samples = [(ours, 10, 90), (OTHER, 10, 20), (OTHER, 20, 40)]
    probe = GpuProbe("abc")
    seen = probe.read(worker_pid=ours)
    assert seen is not None
    assert (seen.free_bytes, seen.ours_bytes, seen.temperature_c) == (5 << 30, 2 << 30, 71.0)
    assert seen.power_w == 215.5
    assert seen.others_busy_share == pytest.approx(0.3)
    # Samples are counted once; a GPU on which nothing was done since is quiet.
    assert probe.read(worker_pid=ours).others_busy_share == 0.0


def test_processes_under_the_engine_are_ours(driver):
    with psutil.Popen(["sleep", "60"]) as worker:
        driver.held = {worker.pid: 1 << 30}
        assert GpuProbe("GPU-abc").read(worker.pid).ours_bytes == 1 << 30
        worker.kill()


def test_where_the_driver_knows_us_by_other_numbers_nobody_can_tell_whose_load_it_is(driver):
    driver.held = {4_000_001: 2 << 30}  # in a container: the host's number of our worker
    driver.samples = [(4_000_001, 10, 95)]
    probe = GpuProbe("abc")
    seen = probe.read(worker_pid=os.getpid())
    assert (seen.ours_bytes, seen.others_busy_share) == (None, None)
    # Once our worker is gone, whatever is left is others'.
    driver.samples = [(4_000_001, 20, 95)]
    assert probe.read(worker_pid=None).others_busy_share == pytest.approx(0.95)


def test_a_driver_that_goes_and_comes_back_is_asked_again(driver):
    probe = GpuProbe("abc")
    assert probe.read(None) is not None
    assert probe.read(None) is not None
    assert driver.opened == 1
    driver.is_there = False
    assert probe.read(None) is None
    assert driver.opened == 0
    assert probe.read(None) is None
    driver.is_there = True
    assert probe.read(None) is not None
    probe.close()
    assert driver.opened == 0
