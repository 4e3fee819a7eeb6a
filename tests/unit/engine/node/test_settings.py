import json

import pytest

from engine.config import Config
from engine.core.errors import ConfigError, RequestError
from engine.localapi.running import Home
from engine.localapi.settings import Effect, SettingsChange
from engine.node.household import Household
from engine.node.settings import SettingsFile, changes, effect_of, value_of

COMMENTED = """\
# My machine.
[guest]
quiet_s = 30.0  # shorter than usual
exclusive_programs = ["blender"]

[swarm] # mine
listen = ["/ip4/0.0.0.0/tcp/31330"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "config" / "settings.toml"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    return path


def test_a_change_keeps_what_the_person_has_written_around_it(file):
    text, changed = SettingsFile(file).changed(
        {"guest.quiet_s": 90, "limits.uplink_bytes_per_s": 1e6, "guest.exclusive_programs": None}
    )
    assert changed.guest.quiet_s == 90
    assert changed.guest.exclusive_programs == ()
    assert changed.limits.uplink_bytes_per_s == 1e6
    for kept in ("# My machine.", "# shorter than usual", "[swarm] # mine", "31330"):
        assert kept in text
    assert file.read_text() == COMMENTED  # until it is written
    SettingsFile(file).write(text)
    assert SettingsFile(file).read() == changed


@pytest.mark.parametrize(
    ("values", "param", "says"),
    [
        ({"guest.quiet_s": -1}, "guest.quiet_s", "greater than or equal"),
        ({"guest.schedule": ["someday"]}, "guest.schedule", "does not begin with days"),
        ({"limits.uplink_bytes_per_s": 5}, "limits.uplink_bytes_per_s", "at least 16000"),
        ({"guest.nothing": 1}, "guest.nothing", "There is no setting"),
        ({"quiet_s": 1}, "quiet_s", "There is no setting"),
        ({"stage.emulate": {"stage_s": 1, "rows": 1}}, "stage.emulate", "There is no setting"),
        ({"model.device": "tpu"}, "model.device", "model.device is wrong"),
        ({"model.device": {"a": None}}, "model.device", "cannot be written"),
    ],
)
def test_a_wrong_value_is_told_by_name_and_changes_nothing(file, values, param, says):
    with pytest.raises(RequestError, match=says) as caught:
        SettingsFile(file).changed({"stage.rebalance": False, **values})
    assert caught.value.param == param
    assert file.read_text() == COMMENTED


def test_the_command_line_holds_over_the_file_but_does_not_hide_its_errors(file):
    settings = SettingsFile(file, {"guest": {"quiet_s": 5.0}})
    _, changed = settings.changed({"guest.quiet_s": 90})
    assert changed.guest.quiet_s == 5.0
    with pytest.raises(RequestError, match="quiet_s"):
        settings.changed({"guest.quiet_s": -1})
    (shown,) = [one for one in settings.view().settings if one.name == "guest.quiet_s"]
    assert (shown.value, shown.default, shown.is_overridden) == (5.0, 60.0, True)


def test_a_file_that_is_no_toml_is_told_and_left_alone(file):
    file.write_text("[guest\n")
    for ask in (lambda s: s.changed({"guest.quiet_s": 1}), lambda s: s.view()):
        with pytest.raises(ConfigError, match="cannot be read"):
            ask(SettingsFile(file))
    assert file.read_text() == "[guest\n"


def test_every_setting_has_a_meaning_a_default_and_an_effect(tmp_path):
    shown = SettingsFile(tmp_path / "none.toml").view()
    assert len(shown.settings) > 40
    for one in shown.settings:
        assert one.value == one.default
        json.dumps(one.value)
    assert not [
        one.name for one in shown.settings if one.name.startswith("guest.") and not one.about
    ]
    assert effect_of("guest.quiet_s") is Effect.AT_ONCE
    assert effect_of("limits.uplink_bytes_per_s") is Effect.AT_ONCE
    assert effect_of("client.speculation") is Effect.AT_ONCE
    assert effect_of("limits.ram_bytes") is Effect.REJOIN
    assert effect_of("api.port") is Effect.RESTART


def test_changes_are_told_by_name():
    new = Config.model_validate({"guest": {"quiet_s": 5}, "stage": {"blocks": [0, 4]}})
    assert changes(Config(), new) == ("stage.blocks", "guest.quiet_s")
    assert value_of(new, "stage.blocks") == [0, 4]


async def test_whose_programs_are_installed_is_not_for_the_api_to_say(file, tmp_path):
    household = Household(Home.under(tmp_path), SettingsFile(file), None)
    for name in ("updates.url", "updates.key"):
        with pytest.raises(RequestError, match="only the settings file"):
            await household.change_settings(SettingsChange(values={name: "other"}))
    assert file.read_text() == COMMENTED
