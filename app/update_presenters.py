"""New versions of Shoal as words and buttons for the settings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.presenters import Action
from app.words import Tr, size
from engine.localapi.schema import EngineStatus
from engine.localapi.updates import UpdateInfo, UpdateStep

LOOKS: Final = "updates.check"
"""The setting that lets the engine look once a day."""
_BUSY: Final = (UpdateStep.FETCHING, UpdateStep.INSTALLING, UpdateStep.RESTARTING)


@dataclass(frozen=True, slots=True)
class UpdateView:
    """What the settings show of new versions."""

    running: str
    """`Shoal 0.1.0`; empty while no engine answers."""
    text: str
    command: str
    """What a person has to run; empty where Shoal does it by itself."""
    problem: str
    check: Action
    install: Action
    restart: Action
    open: Action
    """Start what `command` names."""
    looks: bool | None
    """Whether the engine looks once a day; None while that is not known."""


def update_view(status: EngineStatus | None, looks: bool | None, tr: Tr) -> UpdateView:
    """The state for the settings window."""
    info = None if status is None else status.update
    if status is None or info is None:
        off = Action("", visible=False)
        return UpdateView("", "", "", "", off, off, off, off, None)
    busy, by_hand = info.step in _BUSY, info.package == "source"
    has_setup = info.package == "setup" and bool(info.command)
    return UpdateView(
        running=tr("This is Shoal {version}").format(version=status.version),
        text=" ".join(filter(None, (_failed(info, tr), _words(info, tr), _needed(info, tr)))),
        command=info.command,
        problem=info.problem,
        check=Action(
            tr("Look for a new &version"),
            visible=info.step is not UpdateStep.NOWHERE,
            enabled=not busy,
        ),
        install=Action(
            tr("I&nstall Shoal {version}").format(version=info.version),
            visible=info.step is UpdateStep.AVAILABLE and not by_hand,
        ),
        restart=Action(
            tr("&Start again now"),
            visible=info.step is UpdateStep.READY and not info.command,
        ),
        open=Action(tr("&Start the setup"), visible=has_setup),
        looks=looks,
    )


def _words(info: UpdateInfo, tr: Tr) -> str:
    match info.step:
        case UpdateStep.NOWHERE:
            return tr(
                "Shoal cannot look for new versions, because this build has no release key: get them "
                "where you got this one."
            )
        case UpdateStep.UNKNOWN:
            return tr("Nobody has looked for a new version yet.")
        case UpdateStep.LATEST:
            return tr("There is no newer version.")
        case UpdateStep.AVAILABLE:
            text = tr("Shoal {version} is there.").format(version=info.version)
            if info.package == "source":
                more = tr(
                    "This one runs from a folder of yours: bring it up to date as you made it."
                )
                return f"{text} {info.summary} {more}".replace("  ", " ")
            return f"{text} {info.summary}".strip()
        case UpdateStep.FETCHING:
            return tr("Fetching Shoal {version}: {done} of {total}.").format(
                version=info.version,
                done=size(info.done_bytes, tr),
                total=size(info.total_bytes, tr),
            )
        case UpdateStep.INSTALLING:
            return tr("Shoal {version} is put beside this version…").format(version=info.version)
        case UpdateStep.READY if info.package == "setup":
            return tr(
                "The setup of Shoal {version} is fetched and its signature is right. Start it to go "
                "over to the new version."
            ).format(version=info.version)
        case UpdateStep.READY if info.command:
            return tr(
                "Shoal {version} is fetched and its signature is right. To install it, run this in a "
                "terminal, then start Shoal again:"
            ).format(version=info.version)
        case UpdateStep.READY:
            return tr(
                "Shoal {version} is installed and runs after the next start. If it does not work, "
                "this version runs again by itself."
            ).format(version=info.version)
        case _:
            return tr("Running requests come to their end, then Shoal starts again…")


def _failed(info: UpdateInfo, tr: Tr) -> str:
    if not info.failed:
        return ""
    return tr("Shoal {version} did not start, so this version runs again.").format(
        version=info.failed
    )


def _needed(info: UpdateInfo, tr: Tr) -> str:
    if not info.is_needed:
        return ""
    return tr("Nodes of the new version do not understand this one any more.")
