import subprocess
import sys
from dataclasses import replace

import pytest

from engine.core.errors import ResourceError
from engine.localapi.running import Home
from engine.profiler import gpus
from engine.profiler.cache import cached, read, reason_to_measure, save
from engine.profiler.gpus import Gpu
from engine.profiler.hardware import Hardware, hardware
from tests.support.measured import measured_profile, quantity

GPU = Gpu("RTX", "GPU-1", "570.1", 24 << 30, 20 << 30, 350.0, 80.0, 50.0, 0.0)
MACHINE = Hardware("a processor", 4, 8, 64 << 30, (GPU,), "2.13.0+cu130")
KNOWN = measured_profile(fingerprint=MACHINE.fingerprint)
NOW_S = KNOWN.measured_unix_s + 3600


def why(profile=KNOWN, machine=MACHINE, unix_s=NOW_S, busy=0.1):
    return reason_to_measure(profile, machine, unix_s=unix_s, cpu_busy_share=busy)


@pytest.mark.parametrize(
    "change",
    [
        {"cpu_name": "another"},
        {"cpu_threads": 6},
        {"ram_total_bytes": 32 << 30},
        {"torch": "2.13.0+cpu"},
        {"gpus": ()},
        {"gpus": (replace(GPU, driver="580.2"),)},
        {"gpus": (replace(GPU, uuid="GPU-2"),)},
    ],
)
def test_what_was_measured_on_other_hardware_or_software_does_not_hold(change):
    assert "changed" in why(machine=replace(MACHINE, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"ram_total_bytes": (64 << 30) + (16 << 20)},
        {"gpus": (replace(GPU, memory_free_bytes=1, temperature_c=80.0, busy_share=1.0),)},
    ],
)
def test_what_changes_from_minute_to_minute_is_no_other_hardware(change):
    assert why(machine=replace(MACHINE, **change)) == ""


def test_it_is_measured_again_after_a_month_or_when_the_clock_went_back():
    assert why() == ""
    assert why(unix_s=NOW_S + 31 * 86400)
    assert why(unix_s=KNOWN.measured_unix_s - 10)


def test_it_is_measured_again_when_the_load_has_changed():
    busy_then = measured_profile(
        fingerprint=MACHINE.fingerprint,
        load={"cpu_share": quantity(0.9, "1"), "gpu_share": None},
    )
    assert "busy then" in why(busy_then, busy=0.1)
    assert why(busy_then, busy=0.8) == ""
    assert "busier" in why(busy=0.9)


def test_what_is_kept_is_found_again_on_the_same_machine_only(tmp_path):
    home = Home.under(tmp_path)
    assert cached(home, lambda: MACHINE) is None
    save(home, KNOWN)
    assert cached(home, lambda: MACHINE) == KNOWN
    assert cached(home, lambda: replace(MACHINE, gpus=())) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"version": 2}', b"{}" + b" " * (1 << 20)]
)
def test_a_damaged_file_counts_as_none(tmp_path, content):
    home = Home.under(tmp_path)
    save(home, KNOWN)
    home.profile_file.write_bytes(content)
    assert read(home) is None
    assert "nothing" in why(read(home))


def test_a_file_with_an_absurd_number_counts_as_none(tmp_path):
    home = Home.under(tmp_path)
    save(home, KNOWN)
    text = home.profile_file.read_text()
    home.profile_file.write_text(text.replace('"value":0.003', '"value":-1'))
    assert read(home) is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    home = Home.under(tmp_path)
    home.cache_dir.parent.mkdir(exist_ok=True)
    home.cache_dir.write_text("a file where the folder should be")
    with pytest.raises(ResourceError, match="could not be kept"):
        save(home, KNOWN)


def test_a_machine_without_an_nvidia_driver_has_no_gpus(monkeypatch):
    monkeypatch.setattr(gpus.pynvml, "nvmlInit", _no_driver)
    assert gpus.gpus() == ()
    assert gpus.gpu_of("GPU-1") is None
    assert hardware().fingerprint == hardware().fingerprint


def _no_driver():
    raise gpus.pynvml.NVMLError_LibraryNotFound


def test_whoever_measures_loads_no_torch_itself():
    code = (
        "import sys, engine.profiler.profile, engine.cli.measure;"
        "sys.exit('torch' in sys.modules or 'hivemind' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
