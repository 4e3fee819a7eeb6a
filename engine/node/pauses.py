"""The person's own pause: it outlives the engine, and ends by itself only if that was asked for."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.core.errors import ConfigError
from engine.core.sentences import Sentence
from engine.core.whole_file import write_whole
from engine.localapi.schema import PauseRequest, PauseScope

_logger = logging.getLogger(__name__)

MORNING_HOUR = 6
SHORT_NIGHT = timedelta(hours=3)
"""Who says `tomorrow` at four in the morning does not mean six."""


class Pause(BaseModel):
    """What was paused, and until when."""

    model_config = ConfigDict(frozen=True)

    scope: PauseScope = "stage"
    until_unix_s: float | None = None
    """None: until the person resumes."""
    until_tomorrow: bool = False

    @classmethod
    def asked(cls, request: PauseRequest, unix_s: float) -> Pause:
        """The pause that `request` means at the time `unix_s`."""
        until_unix_s = None if request.seconds is None else unix_s + request.seconds
        if request.until_tomorrow:
            now = datetime.fromtimestamp(unix_s, tz=UTC).astimezone()
            until_unix_s = tomorrow(now.replace(tzinfo=None)).timestamp()
        return cls(
            scope=request.scope, until_unix_s=until_unix_s, until_tomorrow=request.until_tomorrow
        )

    @property
    def reason(self) -> Sentence:
        """One sentence for a person."""
        if self.scope == "everything":
            if self.until_unix_s is None:
                return Sentence("Everything is paused until you resume.")
            if self.until_tomorrow:
                return Sentence("Everything is paused until tomorrow.")
            return Sentence("Everything is paused for a while.")
        if self.until_unix_s is None:
            return Sentence("Paused until you resume.")
        if self.until_tomorrow:
            return Sentence("Paused until tomorrow.")
        return Sentence("Paused for a while.")


def tomorrow(now: datetime) -> datetime:
    """The next morning that is worth the name; both are wall-clock times without a zone."""
    morning = now.replace(hour=MORNING_HOUR, minute=0, second=0, microsecond=0)
    while morning < now + SHORT_NIGHT:
        morning += timedelta(days=1)
    return morning


def load(file: Path, unix_s: float) -> Pause | None:
    """The pause that holds now, if any; one that is unreadable holds until the person resumes."""
    try:
        pause = Pause.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        _logger.warning("%s cannot be read, so the pause in it is kept: %s", file, error)
        return Pause()
    if pause.until_unix_s is not None and pause.until_unix_s <= unix_s:
        file.unlink(missing_ok=True)
        return None
    return pause


def save(file: Path, pause: Pause | None) -> None:
    """Keep the pause, or that there is none; blocks for as long as the disk takes.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        if pause is None:
            file.unlink(missing_ok=True)
        else:
            write_whole(file, pause.model_dump_json().encode())
    except OSError as error:
        what = "The pause" if pause is not None else "The end of the pause"
        raise ConfigError(
            f"{what} cannot be kept in {file} ({error.strerror}), so a restart would forget it; make "
            "room, or correct the folder's permissions."
        ) from error
