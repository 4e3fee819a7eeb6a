"""How the database came to its present shape: one list, in order, for all features.

The file's `user_version` is the number of migrations that it has seen. What has been released is
never changed; a feature that needs other tables appends a migration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a version to the next."""

    what: str
    """For the log: `batch jobs`."""
    statements: tuple[str, ...]
    """SQL, one statement each, run in one transaction with foreign keys unchecked until its end."""


MIGRATIONS: Final[tuple[Migration, ...]] = ()
