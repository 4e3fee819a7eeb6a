"""Batteries and mains as Linux shows them under `/sys/class/power_supply`, whatever their names."""

from __future__ import annotations

from pathlib import Path


def on_battery(folder: Path) -> bool | None:
    """Whether the computer runs on its battery; None where the kernel shows nothing.

    A supply is known by its `type`, since names differ by maker (AC, ADP1, ACAD, BAT0, CMB1 …).
    Batteries of mice and headsets have the scope `Device`.
    """
    try:
        supplies = [supply for supply in folder.iterdir() if _read(supply, "scope") != "Device"]
    except OSError:
        return None
    is_battery = {supply: _read(supply, "type") == "Battery" for supply in supplies}
    if not any(is_battery.values()):
        return False if supplies else None
    if any(_read(s, "online") not in ("", "0") for s in supplies if not is_battery[s]):
        return False
    return any(_read(s, "status") == "Discharging" for s in supplies if is_battery[s])


def _read(supply: Path, name: str) -> str:
    try:
        return (supply / name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""  # a supply need not have every file
