"""The settings file as the person changes it while the engine runs, comments kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import tomlkit
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from engine import config
from engine.config import Config, Overrides, SettingInvalid
from engine.core.errors import ConfigError, DiskFull, RequestError
from engine.core.whole_file import write_whole
from engine.localapi.settings import Effect, Setting, Settings

_HIDDEN: Final = frozenset({"client.draft_place_s", "stage.emulate", "swarm.shape", "swarm.faults"})
"""For benchmarks alone."""
_AT_ONCE: Final = (
    *("guest.", "limits.uplink_", "limits.downlink_", "limits.models_", "limits.disk_"),
    *("client.speculation", "client.draft_tokens"),
    "updates.",
)
_RESTART: Final = ("api.",)
FILE_ONLY: Final = frozenset({"updates.url", "updates.key"})
"""Whom programs are taken from: whoever has no more than the API's token does not decide that."""


class SettingsFile:
    """One settings file, and what the command line lays over it.

    Args:
        file: The file; it need not exist.
        overrides: Branch → field → value.
    """

    def __init__(self, file: Path, overrides: Overrides | None = None) -> None:
        self._file = file
        self._overrides = overrides or {}

    def read(self) -> Config:
        """The settings now.

        Raises:
            ConfigError: The file makes no sense.
        """
        return config.load(self._file, self._overrides)

    def changed(self, values: Mapping[str, Any]) -> tuple[str, Config]:
        """The file's text with other values, and what it means; None takes a value out.

        Raises:
            RequestError: A setting does not exist or is out of range; `param` names it.
            ConfigError: The file makes no sense.
        """
        text = self._changed(values)
        try:
            # Checked without the command line first, which might hide what is wrong.
            config.parse(text, self._file)
            return text, config.parse(text, self._file, self._overrides)
        except SettingInvalid as error:
            raise RequestError(str(error), param=error.field) from error

    def write(self, text: str) -> None:
        """Replace the file.

        Raises:
            DiskFull: There is no space; the old settings hold.
            ConfigError: It cannot be written.
        """
        try:
            write_whole(self._file.resolve(), text.encode(), 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(
                    f"The disk that holds {self._file} is full, so the settings stay as they were; "
                    "free some space."
                ) from error
            raise ConfigError(
                f"The settings in {self._file} cannot be written ({error.strerror}); correct the "
                "permissions of the file and its folder."
            ) from error

    def view(self, needs_restart: tuple[str, ...] = ()) -> Settings:
        """Everything with its default, meaning and effect.

        Raises:
            ConfigError: The file makes no sense.
        """
        now = self.read()
        return Settings(
            file=str(self._file),
            settings=tuple(self._setting(name, field, now) for name, field in _fields()),
            needs_restart=needs_restart,
        )

    def _setting(self, name: str, field: FieldInfo, now: Config) -> Setting:
        branch, key = name.split(".")
        return Setting(
            name=name,
            value=value_of(now, name),
            default=value_of(Config(), name),
            about=" ".join((field.description or "").split()),
            effect=effect_of(name),
            is_overridden=key in self._overrides.get(branch, {}),
        )

    def _changed(self, values: Mapping[str, Any]) -> str:
        known = {name for name, _ in _fields()}
        try:
            text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
            document = tomlkit.parse(text)
        except (OSError, UnicodeDecodeError, TOMLKitError) as error:
            raise ConfigError(
                f"The settings in {self._file} cannot be read: {error}. Correct or remove the file."
            ) from error
        for name, value in values.items():
            if name not in known:
                raise RequestError(f"There is no setting {name[:100]!r}.", param=name[:100])
            branch, key = name.split(".")
            table = document.setdefault(branch, tomlkit.table())
            if not isinstance(table, Table):
                raise ConfigError(f"{branch} in {self._file} is no table; correct the file.")
            try:
                if value is None:
                    table.pop(key, None)
                else:
                    table[key] = value
            except (ValueError, TypeError) as error:  # such as a null within a list
                raise RequestError(
                    f"The value of {name} cannot be written: {error}.", param=name
                ) from error
        return tomlkit.dumps(document)


def effect_of(name: str) -> Effect:
    """What a change of this setting takes."""
    if name.startswith(_AT_ONCE):
        return Effect.AT_ONCE
    return Effect.RESTART if name.startswith(_RESTART) else Effect.REJOIN


def changes(old: Config, new: Config) -> tuple[str, ...]:
    """The settings that differ."""
    return tuple(
        name for name, _ in _fields(with_hidden=True) if value_of(old, name) != value_of(new, name)
    )


def value_of(settings: Config, name: str) -> Any:
    """The value of `branch.field`, as JSON has it."""
    branch, key = name.split(".")
    value = getattr(getattr(settings, branch), key)
    return list(value) if isinstance(value, tuple) else value


def _fields(*, with_hidden: bool = False) -> Iterator[tuple[str, FieldInfo]]:
    for branch, annotation in Config.model_fields.items():
        model = annotation.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        for key, field in model.model_fields.items():
            name = f"{branch}.{key}"
            if with_hidden or name not in _HIDDEN:
                yield name, field
