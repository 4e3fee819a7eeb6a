"""What has been measured, as lines for a person. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from engine.cli.quantities import shown_bytes
from engine.core.ids import PeerId, short
from engine.localapi.measurements import (
    FittedTime,
    MeasuredProfile,
    NetworkMeasurement,
    Quantity,
)


def lines(profile: MeasuredProfile) -> Iterator[str]:
    """All of it: the machine, its times with spreads, the table they were fitted to, the lines."""
    when = datetime.fromtimestamp(profile.measured_unix_s, tz=UTC).astimezone()
    busy = profile.load.cpu_share.value
    yield from (f"{name:<10} {value}" for name, value in _machine(profile))
    yield f"{'Measured':<10} {when:%Y-%m-%d %H:%M}, {'quickly, ' if profile.quick else ''}in " + (
        f"{sum(profile.took_s.values()):.0f} s, while the processor was {busy:.0%} busy"
    )
    yield ""
    where = "GPU" if profile.device != "cpu" else "CPU"
    yield (
        f"One block of {profile.model.name} in {profile.dtype} on the {where}, {profile.threads} "
        "threads"
    )
    yield from _block(profile)
    yield ""
    yield "batch  context  cache     MLP, ms  off fit  attention, ms  off fit"
    for row in profile.table:
        yield (
            f"{row.batch:5}  {row.context:7}  {row.where:<6}  {row.mlp_s.value * 1e3:9.3f}"
            f"  {row.mlp_residual:+7.0%}  {row.attention_s.value * 1e3:13.3f}"
            f"  {row.attention_residual:+7.0%}"
        )
    yield ""
    yield from _network(profile.network)


def _machine(profile: MeasuredProfile) -> Iterator[tuple[str, str]]:
    cpu, disk = profile.cpu, profile.disk
    clock = "" if cpu.frequency_hz is None else f", {cpu.frequency_hz.value / 1e9:.1f} GHz"
    yield "Processor", f"{cpu.name}, {cpu.cores} cores, {cpu.usable_threads} threads{clock}"
    for gpu in profile.gpus:
        limits = [f"{shown_bytes(gpu.memory_free_bytes.value)} of"]
        limits.append(f"{shown_bytes(gpu.memory_total_bytes.value)} free, driver {gpu.driver}")
        if gpu.power_limit_w is not None:
            limits.append(f", at most {gpu.power_limit_w.value:.0f} W")
        if gpu.temperature_c is not None:
            limits.append(f", {gpu.temperature_c.value:.0f} °C")
        yield "GPU", f"{gpu.name}, {limits[0]} {''.join(limits[1:])}"
    if not profile.gpus:
        yield "GPU", "none that an NVIDIA driver knows"
    yield (
        "Memory",
        f"{shown_bytes(profile.ram_total_bytes.value)}; "
        + (f"{shown_bytes(profile.memory_bytes.value)} free where the blocks compute"),
    )
    read = disk.read_bytes_per_s
    speed = "" if read is None else f", read at {_rate(read)}"
    yield "Disk", f"{shown_bytes(disk.free_bytes.value)} free{speed}"


def _block(profile: MeasuredProfile) -> Iterator[str]:
    block = profile.block
    yield f"  MLP        {_line(block.mlp, 'row')}"
    yield f"  attention  {_line(block.attention, 'row and 1,000 tokens', 1000)}"
    if block.ram_attention is not None:
        yield f"  … in RAM   {_line(block.ram_attention, 'row and 1,000 tokens', 1000)}"
    yield f"  prefill    {_ms(block.prefill_row_s)} per token"
    yield f"LM head      {_line(profile.head, 'row')}"
    yield f"Each pass    {_ms(profile.pass_overhead_s)} more"
    if profile.frame is not None:
        where = "the blocks wait meanwhile" if profile.frame_shares_cores else "on other cores"
        yield f"Each frame   {_line(profile.frame, 'MB', 1e6)}; {where}"
    if profile.to_device_bytes_per_s is not None and profile.to_ram_bytes_per_s is not None:
        there, back = _rate(profile.to_device_bytes_per_s), _rate(profile.to_ram_bytes_per_s)
        yield f"Copies       {there} to the GPU, {back} back"
    if profile.power_w is not None:
        yield f"Power        {profile.power_w.value:.0f} ± {profile.power_w.spread:.0f} W under load"
    encode, decode = _rate(profile.encode_bytes_per_s), _rate(profile.decode_bytes_per_s)
    yield f"Codec        {encode} encoded, {decode} decoded"


def _network(network: NetworkMeasurement) -> Iterator[str]:
    if network.reachability is not None:
        yield f"Reached      {network.reachability.value.replace('_', ' ')}"
    own = (("Uplink", network.uplink_bytes_per_s), ("Downlink", network.downlink_bytes_per_s))
    yield from (f"{name:<12} {_mbit(rate)}" for name, rate in own if rate is not None)
    for peer in network.peers:
        up, down = peer.uplink_bytes_per_s, peer.downlink_bytes_per_s
        parts = [f"{_ms(peer.rtt_s)} there and back"]
        parts += [] if up is None else [f"{_mbit(up)} up"]
        parts += [] if down is None else [f"{_mbit(down)} down"]
        way = "" if peer.path is None else f" ({peer.path.value})"
        yield f"To {short(PeerId(peer.peer))}{way}: {', '.join(parts)}. {peer.note}".rstrip()
    if network.note:
        yield network.note


def _line(fitted: FittedTime, unit: str, scale: float = 1.0) -> str:
    base, slope = fitted.base_s, fitted.unit_s
    each = f"{slope.value * scale * 1e3:.3g} ± {slope.spread * scale * 1e3:.1g} ms"
    return f"{_ms(base)}, and {each} per {unit} (the table is {fitted.residual.value:.0%} off)"


def _ms(quantity: Quantity) -> str:
    return f"{quantity.value * 1e3:.3g} ± {quantity.spread * 1e3:.1g} ms"


def _rate(quantity: Quantity) -> str:
    return f"{quantity.value / 1e6:.0f} ± {quantity.spread / 1e6:.0f} MB/s"


def _mbit(quantity: Quantity) -> str:
    value, spread = (part * 8 / 1e6 for part in (quantity.value, quantity.spread))
    return (
        f"{value:,.0f} ± {spread:,.0f} Mbit/s"
        if value >= 10
        else f"{value:.1f} ± {spread:.1f} Mbit/s"
    )
