import pytest

from engine.probes.power_supply import on_battery

MAINS_ON = {"type": "Mains", "online": "1"}
MAINS_OFF = {"type": "Mains", "online": "0"}
DISCHARGING = {"type": "Battery", "status": "Discharging", "scope": "System"}
CHARGING = {"type": "Battery", "status": "Charging"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({"AC": MAINS_ON, "BAT0": CHARGING}, False),
        ({"AC": MAINS_OFF, "BAT0": DISCHARGING}, True),
        ({"macsmc-ac": MAINS_OFF, "macsmc-battery": DISCHARGING}, True),
        ({"ACAD": MAINS_ON, "CMB1": DISCHARGING}, False),  # a weak charger is a charger
        ({"ucsi-source-psy-1": {"type": "USB", "online": "1"}, "BATC": DISCHARGING}, False),
        ({"BAT1": DISCHARGING}, True),
        ({"BAT1": {"type": "Battery", "status": "Not charging"}}, False),
        ({"BAT0": {"type": "Battery", "status": "Full"}, "BAT1": DISCHARGING}, True),
        ({"ADP1": MAINS_ON}, False),
        ({"hidpp_battery_0": MOUSE}, None),
        ({"hidpp_battery_0": MOUSE, "AC": MAINS_ON}, False),
        ({"BAT0": {"type": "Battery"}}, False),  # it does not say
        ({}, None),
    ],
)
def test_the_battery_is_seen_whatever_the_supplies_are_called(tmp_path, supplies, expected):
    for name, files in supplies.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(f"{text}\n")
    assert on_battery(tmp_path) is expected


def test_without_sysfs_nobody_knows(tmp_path):
    assert on_battery(tmp_path / "none") is None
