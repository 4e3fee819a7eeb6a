"""The app as a new version that is tried, or as the old one that runs again.

It says that it works; as a new one that doesn't, it ends, so that the old one runs.
"""

from __future__ import annotations

import logging

from PySide6.QtCore import QCoreApplication, QObject, QTimer

from engine.localapi.installation import Installation

_logger = logging.getLogger(__name__)

HEALTHY_AFTER_MS = 3000
FAILED_EXIT = 1


class Trial(QObject):
    """Watches the first moments; does nothing for a version that has nothing to show."""

    def __init__(self, installation: Installation, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._installation = installation
        self._is_over = not (installation.trial or installation.rolled_back_from)
        self._later = QTimer(self, singleShot=True, interval=HEALTHY_AFTER_MS)
        self._later.timeout.connect(self._say)

    def works(self) -> None:
        """An engine answers us."""
        if not self._is_over and not self._later.isActive():
            self._later.start()

    def fails(self) -> None:
        """Our engine has crashed: not worth five attempts, there is a version that works."""
        if not self._is_over and self._installation.trial:
            self._is_over = True
            QCoreApplication.exit(FAILED_EXIT)

    def _say(self) -> None:
        self._is_over = True
        try:
            self._installation.mark_healthy()
        except OSError as error:
            _logger.warning("it cannot be written down that this version works: %s", error.strerror)
