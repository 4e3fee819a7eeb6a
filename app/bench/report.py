"""The numbers of `shoal bench desktop`, and how far each is from its target. Pure."""

from __future__ import annotations

from pydantic import BaseModel, computed_field

LAUNCH_LIMIT_S = 2.0
MEMORY_LIMIT_BYTES = 150_000_000
IDLE_LIMIT_PERCENT = 0.5
STALL_LIMIT_MS = 50.0


class Stalls(BaseModel):
    """How long the main thread was away from its events during something."""

    seconds: float
    """How long it was watched."""
    longest_ms: float
    busy_ms: float
    """What of that the main thread itself computed; the rest it waited, for a core as a rule."""
    where: str
    """Our functions that it was in, the innermost first; empty: none of ours."""
    busiest_ms: float
    """The longest that it computed at a stretch, which no other program on the machine changes."""
    busiest_where: str
    late: int
    """How often it was away longer than the target allows."""
    median_ms: float
    """Of those that could be felt, by more than 15 ms; 0: there was none."""


class Target(BaseModel):
    """One number beside what it must not exceed."""

    name: str
    value: float
    limit: float
    unit: str
    share: float
    """Value over limit: up to 1 it is met."""

    met: bool


class Report(BaseModel):
    """Everything that was measured."""

    platform: str
    """Qt's: `xcb`, `wayland`, `windows`, `offscreen` …"""
    surface: str
    """What the launch was waited for: `tray`, or `window` where there is no tray."""
    qt: str
    cores: int
    launch_s: float
    """From the start of the process to the icon, with what the first start read in memory; median."""
    launches_s: list[float]
    rss_bytes: dict[str, int]
    """Resident at the end of each scene."""
    rss_peak_bytes: int
    idle_cpu_percent: float
    """Of one core, in the tray without windows."""
    idle_windows_cpu_percent: float
    """The same with the windows of chat and batches open."""
    messages: int
    """Of the long conversation."""
    open_s: float
    """From the click on it to its last message."""
    rows: int
    """Of the batch."""
    rows_done: int
    """When it was last looked at."""
    streamed_tokens: int
    stalls: dict[str, Stalls]
    """By scene: the chat's window is opened, the conversation is opened, an answer streams into it,
    a batch is checked and runs."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def targets(self) -> list[Target]:
        """What is promised, each beside its number."""
        stalls = [
            _target(f"longest stall, {scene}", self.stalls[scene].longest_ms, STALL_LIMIT_MS, "ms")
            for scene in ("open", "stream", "batch")
        ]
        return [
            _target("launch", self.launch_s, LAUNCH_LIMIT_S, "s"),
            _target("memory", self.rss_peak_bytes / 1e6, MEMORY_LIMIT_BYTES / 1e6, "MB"),
            _target("idle CPU", self.idle_cpu_percent, IDLE_LIMIT_PERCENT, "%"),
            *stalls,
        ]


def lines(report: Report) -> list[str]:
    """The report for a terminal."""
    found = [f"Shoal's app on {report.platform} (Qt {report.qt}, {report.cores} cores)"]
    for one in report.targets:
        verdict = "met" if one.met else "MISSED"
        found.append(
            f"  {one.name:<24} {one.value:8.2f} {one.unit:<2} of {one.limit:g} "
            f"({one.share:4.0%}, {verdict})"
        )
    for scene, stalls in report.stalls.items():
        found.append(
            f"  {scene}: away {stalls.longest_ms:.0f} ms at most, {stalls.busy_ms:.0f} of them "
            f"computing{_in(stalls.where)}; computing {stalls.busiest_ms:.0f} ms at most"
            f"{_in(stalls.busiest_where)}"
        )
    found.append(
        f"  {report.messages:,} messages opened in {report.open_s:.2f} s; "
        f"{report.streamed_tokens:,} tokens streamed; {report.rows_done:,} of {report.rows:,} rows "
        f"done; CPU with open windows {report.idle_windows_cpu_percent:.2f} %"
    )
    memory = ", ".join(f"{scene} {size / 1e6:.0f}" for scene, size in report.rss_bytes.items())
    return [*found, f"  memory in MB: {memory}"]


def _in(where: str) -> str:
    return f" in {where.split(' < ')[0]}" if where else ""


def _target(name: str, value: float, limit: float, unit: str) -> Target:
    return Target(
        name=name, value=value, limit=limit, unit=unit, share=value / limit, met=value <= limit
    )
