"""Named ways to begin a conversation: functions over a connection."""

from __future__ import annotations

import json
import sqlite3

from engine.localapi.chats import Preset, PresetList, PresetSettings, Sampling


def presets(connection: sqlite3.Connection) -> PresetList:
    """All of them, by name."""
    rows = connection.execute("SELECT * FROM chat_presets ORDER BY name COLLATE NOCASE")
    return PresetList(
        presets=tuple(
            Preset(
                name=row["name"],
                system_prompt=row["system_prompt"],
                sampling=Sampling(**json.loads(row["sampling"])),
            )
            for row in rows
        )
    )


def put(connection: sqlite3.Connection, name: str, settings: PresetSettings) -> PresetList:
    """Keep one, in the place of another of the same name."""
    connection.execute(
        "INSERT INTO chat_presets (name, system_prompt, sampling) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET"
        " system_prompt = excluded.system_prompt, sampling = excluded.sampling",
        (name, settings.system_prompt, settings.sampling.model_dump_json(exclude_none=True)),
    )
    return presets(connection)


def remove(connection: sqlite3.Connection, name: str) -> PresetList:
    """Forget one, if it is there."""
    connection.execute("DELETE FROM chat_presets WHERE name = ?", (name,))
    return presets(connection)
