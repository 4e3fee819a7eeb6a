"""Desktop entries as freedesktop.org describes them: how a desktop learns to start Shoal."""

from __future__ import annotations

import re

from app.installed import own_command

_RESERVED = re.compile(r"[\s\"'\\><~|&;$*?#()`]")


def entry_text(comment: str, *lines: str, argument: str = "") -> str:
    """The entry that starts this Shoal.

    Args:
        comment: What it does, in one sentence.
        lines: More keys with their values.
        argument: What is handed over, such as `%u` for a link.
    """
    command = " ".join([*map(_word, own_command()), *filter(None, [argument])])
    return "\n".join(
        (
            "[Desktop Entry]",
            "Type=Application",
            "Name=Shoal",
            f"Comment={comment}",
            # Where that program has been removed, desktops ignore what was left of it.
            f"TryExec={_escaped(own_command()[0])}",
            f"Exec={command}",
            "Icon=shoal",
            "Terminal=false",
            *lines,
            "",
        )
    )


def _word(text: str) -> str:
    """One word of `Exec`: quoted where the standard reserves a character, then escaped as a value."""
    text = text.replace("%", "%%")
    if _RESERVED.search(text):
        text = '"' + re.sub(r'(["`$\\])', r"\\\1", text) + '"'
    return _escaped(text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")
