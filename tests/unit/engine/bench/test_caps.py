"""`shoal bench caps`: what is counted, what it needs, and what it says."""

import argparse
import socket
import sys

import psutil
import pytest

from engine.bench import caps
from engine.bench.children import Children
from engine.bench.main import main
from engine.bench.measured import Traffic
from engine.bench.quantities import byte_rates
from engine.core.errors import ConfigError


def test_caps_are_bytes_a_second_as_the_settings_have_them():
    assert byte_rates("1MB,250KB,64000b") == (1e6, 250e3, 64e3)
    for text in ("", "1", "1mbit", "0", "1MB,"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a list of bytes per second"):
            byte_rates(text)


def test_without_hosts_of_their_own_nothing_can_be_told_apart():
    with pytest.raises(ConfigError, match="--host-exec and --host-addr"):
        main(["caps", "--seconds", "1"])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's counters")
async def test_a_host_counts_its_interfaces_but_not_what_stays_on_it():
    async with Children(None) as children:
        child = await children.launch("The host")
        before = Traffic.model_validate(await child.traffic())
        with socket.create_server(("127.0.0.1", 0)) as server:
            with socket.create_connection(server.getsockname()) as sender:
                receiver, _ = server.accept()
                with receiver:
                    for _ in range(64):
                        sender.sendall(bytes(1 << 16))
                        receiver.recv(1 << 16, socket.MSG_WAITALL)
        after = Traffic.model_validate(await child.traffic())
    counted = psutil.net_io_counters(pernic=True)
    assert counted["lo"].bytes_sent > 4 << 20
    assert after.at_s > before.at_s
    real_bytes = sum(c.bytes_sent for name, c in counted.items() if name != "lo")
    assert before.sent_bytes <= after.sent_bytes <= real_bytes


def test_the_report_has_cap_measured_and_ratio_in_one_line():
    row = caps.Row(
        direction="up", cap_bytes_per_s=1e6, measured_bytes_per_s=998_769.0, ratio=0.998769,
        other_bytes_per_s=145e3, idle_bytes_per_s=1.4e3, seconds=60.0, tokens=2354, probes=5, failed=0,
    )  # fmt: skip
    head, line = caps.lines(caps.CapsReport(rows=[row], payload_bytes=8192))
    assert head.split()[:4] == ["direction", "cap", "measured", "ratio"]
    assert line.split()[:6] == ["up", "1,000", "KB/s", "998.8", "KB/s", "0.999"]
