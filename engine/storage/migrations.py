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


_CHATS: Final = Migration(
    "chats",
    (
        """
        CREATE TABLE chats (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            system_prompt TEXT NOT NULL,
            sampling TEXT NOT NULL,
            created_unix_s REAL NOT NULL,
            updated_unix_s REAL NOT NULL,
            deleted_unix_s REAL,
            leaf INTEGER REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED
        ) STRICT
        """,
        "CREATE INDEX chats_by_change ON chats (updated_unix_s, id)",
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            parent INTEGER REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
            speaker TEXT NOT NULL,
            text TEXT NOT NULL,
            attachments TEXT NOT NULL,
            ending TEXT,
            failure TEXT NOT NULL DEFAULT '',
            model TEXT NOT NULL DEFAULT '',
            tokens INTEGER NOT NULL DEFAULT 0,
            seconds REAL NOT NULL DEFAULT 0,
            context_tokens INTEGER NOT NULL DEFAULT 0,
            stages INTEGER NOT NULL DEFAULT 0,
            privacy TEXT,
            left_out INTEGER NOT NULL DEFAULT 0,
            created_unix_s REAL NOT NULL
        ) STRICT
        """,
        "CREATE INDEX messages_by_place ON messages (chat, parent, id)",
        "CREATE INDEX messages_by_parent ON messages (parent)",
        "CREATE INDEX chats_by_leaf ON chats (leaf)",
        "CREATE INDEX messages_unfinished ON messages (chat) WHERE ending IS NULL",
        # A message is in the index while it has ended, so that a growing one costs nothing there.
        """
        CREATE VIRTUAL TABLE message_words
        USING fts5(text, content = 'messages', content_rowid = 'id', tokenize = 'trigram')
        """,
        """
        CREATE TRIGGER message_said AFTER INSERT ON messages WHEN new.ending IS NOT NULL BEGIN
            INSERT INTO message_words (rowid, text) VALUES (new.id, new.text);
        END
        """,
        """
        CREATE TRIGGER message_ended AFTER UPDATE OF ending ON messages
        WHEN old.ending IS NULL AND new.ending IS NOT NULL BEGIN
            INSERT INTO message_words (rowid, text) VALUES (new.id, new.text);
        END
        """,
        """
        CREATE TRIGGER message_reopened AFTER UPDATE OF ending ON messages
        WHEN old.ending IS NOT NULL AND new.ending IS NULL BEGIN
            INSERT INTO message_words (message_words, rowid, text)
            VALUES ('delete', old.id, old.text);
        END
        """,
        """
        CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN old.ending IS NOT NULL BEGIN
            INSERT INTO message_words (message_words, rowid, text)
            VALUES ('delete', old.id, old.text);
        END
        """,
        """
        CREATE TABLE chat_presets (
            name TEXT PRIMARY KEY,
            system_prompt TEXT NOT NULL,
            sampling TEXT NOT NULL
        ) STRICT
        """,
    ),
)

_JOBS: Final = Migration(
    "batch jobs",
    (
        """
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY,
            public_id TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            reason TEXT NOT NULL DEFAULT '',
            name TEXT NOT NULL,
            priority INTEGER NOT NULL,
            spec TEXT NOT NULL,             -- JSON of engine.jobs.records.JobSpec
            created_unix_s REAL NOT NULL,
            started_unix_s REAL,
            ended_unix_s REAL,
            total_rows INTEGER NOT NULL DEFAULT 0,
            done_rows INTEGER NOT NULL DEFAULT 0,
            failed_rows INTEGER NOT NULL DEFAULT 0,
            prompt_tokens INTEGER NOT NULL DEFAULT 0,
            completion_tokens INTEGER NOT NULL DEFAULT 0,
            num_problems INTEGER NOT NULL DEFAULT 0,
            problems TEXT NOT NULL DEFAULT '[]'
        ) STRICT
        """,
        """
        CREATE TABLE job_rows (
            job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,        -- from 0, in input order
            line INTEGER NOT NULL,
            custom_id TEXT NOT NULL,
            url TEXT NOT NULL,
            body TEXT,                      -- JSON; NULL: it cannot be asked
            columns TEXT NOT NULL,          -- JSON object: the values of a table's row
            state TEXT NOT NULL,
            status INTEGER,                 -- HTTP status of the answer
            answer TEXT,                    -- JSON body of the answer
            error_code TEXT,
            error TEXT,
            UNIQUE (job, number)
        ) STRICT
        """,
        "CREATE INDEX job_rows_pending ON job_rows (job, number) WHERE state = 'pending'",
        "CREATE INDEX job_rows_failed ON job_rows (job, number) WHERE state = 'failed'",
        """
        CREATE TABLE files (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            purpose TEXT NOT NULL,
            size_bytes INTEGER NOT NULL,
            created_unix_s REAL NOT NULL,
            job INTEGER REFERENCES jobs (id) ON DELETE CASCADE,  -- whose results it holds
            has_failures INTEGER NOT NULL DEFAULT 0        -- its errors instead of its answers
        ) STRICT
        """,
    ),
)

_STATISTICS: Final = Migration(
    "statistics",
    (
        """
        CREATE TABLE statistics_steps (
            step_s INTEGER NOT NULL,
            unix_s INTEGER NOT NULL,
            seconds REAL NOT NULL,
            tokens_served INTEGER NOT NULL,
            tokens_used INTEGER NOT NULL,
            sent_bytes INTEGER NOT NULL,
            received_bytes INTEGER NOT NULL,
            ram_bytes REAL NOT NULL,
            gpu_memory_bytes REAL,
            gpu_busy_share REAL,
            gpu_c REAL,
            PRIMARY KEY (step_s, unix_s)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE statistics_days (
            day TEXT PRIMARY KEY,
            tokens_served INTEGER NOT NULL,
            tokens_used INTEGER NOT NULL,
            sent_bytes INTEGER NOT NULL,
            received_bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
    ),
)

_JOBS_TAKEN_BACK: Final = Migration(
    "what brings batch jobs back",
    (
        "ALTER TABLE jobs ADD COLUMN deleted_unix_s REAL",
        "ALTER TABLE jobs ADD COLUMN cancelled_from TEXT",  # the state before
    ),
)

MIGRATIONS: Final[tuple[Migration, ...]] = (_CHATS, _JOBS, _STATISTICS, _JOBS_TAKEN_BACK)
