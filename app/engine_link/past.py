"""The engine's history, log and diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.engine_link.api import Api
from app.past_messages import (
    ArchiveTold,
    LogArrived,
    LogFailed,
    PastMessage,
    PreviewArrived,
    PreviewFailed,
    StatisticsArrived,
    StatisticsFailed,
)
from engine.localapi.statistics import DiagnosticsPreview, LogTail, Range, Statistics

LOG_LINES = 500


class PastLink(QObject):
    """Asks; the answers arrive as messages.

    Signals:
        message: An `app.past_messages.PastMessage` for the store.
    """

    message = Signal(object)

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api

    def statistics(self, span: Range) -> None:
        """Ask for the samples of `span`, and the totals."""
        self._get(
            f"/shoal/v1/statistics?range={span.value}",
            lambda data: StatisticsArrived(Statistics.model_validate_json(data)),
            StatisticsFailed,
        )

    def log(self) -> None:
        """Ask for the newest lines of the log."""
        self._get(
            f"/shoal/v1/log?lines={LOG_LINES}",
            lambda data: LogArrived(LogTail.model_validate_json(data).lines),
            LogFailed,
        )

    def preview(self) -> None:
        """Ask what the archive would hold."""
        self._get(
            "/shoal/v1/diagnostics",
            lambda data: PreviewArrived(DiagnosticsPreview.model_validate_json(data)),
            PreviewFailed,
        )

    def archive(self, save: Callable[[bytes], None]) -> None:
        """Fetch the archive for `save`."""
        self._api.call(
            "GET",
            "/shoal/v1/diagnostics/archive",
            None,
            save,
            lambda text: self.message.emit(ArchiveTold(text)),
        )

    def _get(
        self,
        path: str,
        arrived: Callable[[bytes], PastMessage],
        failed: Callable[[str], PastMessage],
    ) -> None:
        self._api.call(
            "GET",
            path,
            None,
            lambda data: self.message.emit(arrived(data)),
            lambda text: self.message.emit(failed(text)),
        )
