"""Every page of the first steps and of the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from app.messages import EngineStarting, StatusArrived
from app.presenters import overview
from app.settings import Language, Theme
from app.settings_presenters import settings_view
from app.setup_messages import (
    ChangeFailed,
    KeptModelsArrived,
    MeasuringBegan,
    PlanArrived,
    SettingsArrived,
    SwarmArrived,
)
from app.setup_presenters import first_run_view
from app.windows.first_run import BEGIN, MACHINE, READY, WELCOME, FirstRunWindow
from app.windows.settings import SettingsWindow
from engine.localapi.schema import Progress, SwarmInfo
from engine.localapi.settings import KeptModelInfo, KeptModels
from engine.localapi.setup import PlanPreview
from engine.localapi.updates import UpdateInfo, UpdateStep
from tests.support.app_states import NOW, after, engine_settings, status
from tests.support.desktop.language import tr

KEPT = KeptModels(
    folder="/home/ada/.cache/shoal/models",
    free_bytes=84_000_000_000,
    models=(
        KeptModelInfo(name="Qwen/Qwen3-4B", num_bytes=8_100_000_000, in_use=True),
        KeptModelInfo(name="starter-float32", num_bytes=815_000_000, in_use=False),
    ),
)
_NEW: Any = {
    "version": "0.2.0",
    "summary": "Drafts of a model make answers on slow lines twice as fast.",
}
UPDATES = {
    "there": UpdateInfo(step=UpdateStep.AVAILABLE, package="run", is_needed=True, **_NEW),
    "fetched": UpdateInfo(
        step=UpdateStep.FETCHING, package="run", done_bytes=31_000_000, total_bytes=84_000_000, **_NEW
    ),
    "ready": UpdateInfo(step=UpdateStep.READY, package="run", **_NEW),
    "by-hand": UpdateInfo(
        step=UpdateStep.READY,
        package="deb",
        command="sudo apt install /home/ada/.cache/shoal/updates/shoal_0.2.0_amd64.deb",
        **_NEW,
    ),
    "setup": UpdateInfo(
        step=UpdateStep.READY,
        package="setup",
        command=r"\\wsl.localhost\Shoal\home\shoal\.cache\shoal\updates\shoal-0.2.0-setup.exe",
        **_NEW,
    ),
    "failed": UpdateInfo(
        step=UpdateStep.AVAILABLE,
        package="run",
        failed="0.2.0",
        problem="The package at https://shoal.example/shoal-0.2.0-x86_64.run is not the one that was "
        "signed, so it was deleted; try again later, and if it stays so, tell those who publish Shoal.",
        **_NEW,
    ),
    "of-a-folder": UpdateInfo(step=UpdateStep.AVAILABLE, package="source", **_NEW),
}  # fmt: skip
"""New versions, in the states that look different."""
LATEST = UpdateInfo(step=UpdateStep.LATEST, package="run")

PAGES = ("limits", "rules", "models", "swarm", "app", "api", "identity")


def preview(**fields: object) -> PlanPreview:
    """A machine with room for a part of a model."""
    known = {
        "model": "Qwen3-4B", "num_blocks": 36, "span": (12, 22),
        "reason": "Blocks 12–21 are the slowest of the swarm, and ours would double their speed.",
        "is_certain": True, "on_gpu": True, "device": "NVIDIA GeForce RTX 3060",
        "memory_bytes": 5_800_000_000, "memory_free_bytes": 11_200_000_000,
        "memory_total_bytes": 12_000_000_000, "token_bytes": 5120, "tokens_per_s": None,
    }  # fmt: skip
    return PlanPreview.model_validate(known | fields)


def first_run_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """Every page of the first steps."""
    waits = status(
        state="starting", awaits_setup=True, span=None, swarm=None, can_chat=False,
        progress=Progress(what="Measuring blocks", done=0.4, total=1.0),
    )  # fmt: skip
    founded = SwarmInfo(name="reef", private=True, invite="shoal://" + "Zmlyc3Q" * 24)
    fails = ChangeFailed("This invite is cut short; ask for it once more.")
    steps = {
        "welcome": (WELCOME, (StatusArrived(waits),)),
        "machine": (
            MACHINE, (StatusArrived(waits), MeasuringBegan(), PlanArrived(preview())),
        ),
        "nothing": (
            MACHINE,
            (
                StatusArrived(waits.model_copy(update={"progress": None})),
                PlanArrived(
                    preview(
                        span=None,
                        reason="A block of Qwen3-4B takes 202 MB, but the limits leave 0 MB for "
                        "blocks; allow more memory, or choose a smaller model.",
                    )
                ),
            ),
        ),
        "begin": (BEGIN, (StatusArrived(waits), KeptModelsArrived(KEPT), fails)),
        "ready": (READY, (StatusArrived(status()), SwarmArrived(founded))),
    }  # fmt: skip
    for name, (step, messages) in steps.items():
        if not wanted(f"first-{name}"):
            continue
        state = after(EngineStarting(), *messages)
        window = FirstRunWindow()
        window.swarm.take_invite("shoal://abc")
        window._go_to(step)
        headline = overview(state, NOW, tr).headline
        window.show_view(first_run_view(state.setup, state.status, window.caps, headline, tr))
        window.bring_up()
        yield f"first-{name}", window
        window.deleteLater()


def settings_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """Every page of the settings."""
    state = after(
        StatusArrived(status(peer_id="12D3KooWExample", update=LATEST)),
        SettingsArrived(engine_settings(limits__uplink_bytes_per_s=1_000_000.0)),
        PlanArrived(preview()),
        KeptModelsArrived(KEPT),
        SwarmArrived(SwarmInfo(name="reef", private=True, invite="shoal://abc")),
    )
    window = SettingsWindow(settings_view(state.setup, state.status, tr))
    window.api.show_token_file(Path("/home/ada/.local/share/shoal/api-token"))
    window.api.show_view(settings_view(state.setup, state.status, tr))
    window.app.show_choices(
        autostart=False, invites=True, stays=True, theme=Theme.SYSTEM, language=Language.SYSTEM
    )
    window.bring_up()
    for page, name in enumerate(PAGES):
        if wanted(f"settings-{name}"):
            window.open_page(page)
            yield f"settings-{name}", window
    window.open_page(PAGES.index("app"))
    for name, info in UPDATES.items():
        if wanted(f"settings-update-{name}"):
            seen = after(StatusArrived(status(update=info)), start=state)
            window.show_view(settings_view(seen.setup, seen.status, tr))
            yield f"settings-update-{name}", window
    window.deleteLater()
