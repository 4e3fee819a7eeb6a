"""The window that sets the engine up, in every state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtWidgets import QWidget

from app.preparation import Phase, Preparation, offered, told
from app.preparation_presenters import preparation_view
from app.windows.engine_setup import EngineSetupWindow
from tests.support.desktop.language import tr

OFFER = (
    '{"ready": false, "folder": "/home/ada/.local/share/shoal/environment", "case": "old_driver", '
    '"driver": "580", "download_bytes": 400000000, "needed_bytes": 2000000000, '
    '"free_bytes": 84000000000, "problem": "", "torch": "cpu"}'
)
NO_NETWORK = (
    '{"problem": "Setup could not install what the engine needs, because the package index cannot be '
    "reached; check the internet connection (and the proxy, if there is one) and start it again; what "
    'was downloaded is kept (details in /home/ada/.local/share/shoal/environment/setup.log)."}'
)


def states() -> Iterator[tuple[str, Preparation]]:
    """Name, and what is known then."""
    begun = offered(Preparation(), OFFER)
    yield "looking", Preparation()
    yield "offered", begun
    working = Preparation(Phase.WORKING, begun.offer)
    yield "packages", told(working, '{"step": "packages"}')
    torch = told(working, '{"step": "torch"}')
    yield "torch", told(torch, '{"progress": "downloading torch, 191.8 MB: 37 %", "share": 0.37}')
    failed = told(working, NO_NETWORK)
    yield "failed", Preparation(Phase.FAILED, failed.offer, problem=failed.problem)


def preparation_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The window, once for each state."""
    for name, state in states():
        if wanted(f"setup-{name}"):
            window = EngineSetupWindow()
            window.show_view(preparation_view(state, tr))
            window.bring_up()
            yield f"setup-{name}", window
            window.close()
            window.deleteLater()
