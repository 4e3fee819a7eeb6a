"""New versions of Shoal: looking for them, fetching and installing them, and starting anew."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin

from engine import __version__
from engine.core.clock import Clock
from engine.core.errors import EngineError, UpdateError, UpdateRefused
from engine.core.protocol_window import OURS
from engine.core.whole_file import write_whole
from engine.localapi import versions
from engine.localapi.installation import Installation
from engine.localapi.running import Home
from engine.localapi.schema import Progress
from engine.localapi.updates import UpdateInfo, UpdateStep
from engine.models.storage import FetchLimits
from engine.models.way_out import environment
from engine.node.fetching import fetch_limits
from engine.node.node import Node
from engine.probes.metered import Metered
from engine.updates.beside import put_beside
from engine.updates.channel import Channel, channel
from engine.updates.fetch import fetch_list, fetch_package
from engine.updates.manifest import Manifest, PackageFile, check, numbers, opened

_logger = logging.getLogger(__name__)

CHECK_EVERY_S: Final = 86400.0
_FIRST_LOOK_S: Final = 60.0
"""The engine has better things to do when it starts."""
_LOOK_EVERY_S: Final = 3600.0
_BUSY: Final = (UpdateStep.FETCHING, UpdateStep.INSTALLING, UpdateStep.RESTARTING)


@dataclass(frozen=True, slots=True)
class _Known:
    """What outlasts the engine."""

    checked_unix_s: float | None = None
    seen_unix_s: Mapping[str, float] = field(default_factory=dict)
    """Public key → when the newest list that we have seen under it was signed."""
    text: str = ""
    """That list, as it came."""


class Updating:
    """See `engine.http.update_routes.UpdateBackend`.

    Args:
        home: Keeps what is known of new versions, and packages on their way.
        node: Says what the settings are, shares its line, and ends.
        installation: How this version came here.
        clock: The time.
    """

    def __init__(self, home: Home, node: Node, installation: Installation, clock: Clock) -> None:
        self._home = home
        self._node = node
        self._installation = installation
        self._clock = clock
        self._known = _Known()
        self._manifest: Manifest | None = None
        self._info = UpdateInfo(
            step=UpdateStep.UNKNOWN,
            package=installation.package,
            failed=installation.rolled_back_from,
        )
        self._changing = asyncio.Lock()
        self._working: asyncio.Task[None] | None = None

    @property
    def info(self) -> UpdateInfo:
        """How far it is."""
        if self._info.step is UpdateStep.UNKNOWN and self._channel() is None:
            return self._info.model_copy(update={"step": UpdateStep.NOWHERE})
        return self._info

    async def run(self) -> None:
        """Look once a day, as long as the settings allow it."""
        await asyncio.to_thread(self._recall)
        self._node.tell()
        await asyncio.sleep(_FIRST_LOOK_S)
        while True:
            if await self._is_due():
                try:
                    await self._check()
                except UpdateRefused as error:
                    self._say(problem=str(error))
                    _logger.warning("%s", error)
                except EngineError as error:
                    _logger.info("no news of new versions: %s", error)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def close(self) -> None:
        """Install nothing any more."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait({self._working})

    async def check(self) -> UpdateInfo:
        """Look now.

        Raises:
            UpdateError: Nowhere to look, nothing to be had there, or nothing to be believed.
        """
        if self._info.step in _BUSY:
            return self._info
        try:
            await self._check()
        except EngineError as error:
            self._say(problem=str(error))
            raise
        return self.info

    async def install(self) -> UpdateInfo:
        """Fetch the newest version and put it beside this one, in the background.

        Raises:
            UpdateError: There is none, or none for this installation.
        """
        if self._info.step in (*_BUSY, UpdateStep.READY):
            return self._info
        if self._info.step is not UpdateStep.AVAILABLE:
            found = await self.check()
            if found.step in (*_BUSY, UpdateStep.READY):  # somebody else was faster
                return found
        manifest = self._manifest
        if manifest is None or numbers(manifest.version) <= numbers(__version__):
            raise UpdateError(f"Shoal {__version__} is the newest version there is.")
        file, settings = self._file(manifest), self._channel()
        assert settings is not None, "the list came from somewhere"
        work = self._install(manifest, file, urljoin(settings.url, file.url))
        self._begin(work, if_it_fails=UpdateStep.AVAILABLE)
        self._say(
            step=UpdateStep.FETCHING,
            problem="",
            command="",
            sha256="",
            done_bytes=0,
            total_bytes=file.size_bytes,
        )
        return self._info

    async def restart(self) -> UpdateInfo:
        """Let running requests end or go elsewhere, then end to be started anew.

        Raises:
            UpdateError: There is nothing to switch to, or somebody else has to do it.
        """
        if self._info.step is UpdateStep.RESTARTING:
            return self._info
        if self._info.step is not UpdateStep.READY:
            raise UpdateError(
                "There is no new version to switch to; `shoal update install` gets it."
            )
        if self._info.command:
            raise UpdateError(f"To install it, run `{self._info.command}`, then start Shoal again.")
        self._begin(self._node.restart(), if_it_fails=UpdateStep.READY)
        self._say(step=UpdateStep.RESTARTING, problem="")
        return self._info

    def _begin(self, work: Coroutine[Any, Any, None], *, if_it_fails: UpdateStep) -> None:
        if self._working is not None and not self._working.done():
            work.close()
            raise UpdateError("Shoal is busy with an update; try again when that has ended.")
        self._working = asyncio.create_task(self._to_its_end(work, if_it_fails), name="update")

    async def _to_its_end(self, work: Coroutine[Any, Any, None], if_it_fails: UpdateStep) -> None:
        try:
            await work
        except EngineError as error:
            _logger.warning("%s", error)
            self._fall_back(if_it_fails, str(error))
        except Exception as error:
            _logger.exception("the update failed")
            text = f"Something unexpected went wrong ({type(error).__name__}); see the log."
            self._fall_back(if_it_fails, text)

    def _fall_back(self, step: UpdateStep, problem: str) -> None:
        self._say(step=step)
        if self._manifest is not None:  # perhaps a newer one than we were busy with
            self._learn(self._manifest)
        self._say(problem=problem)

    # Looking --------------------------------------------------------------------------------

    def _channel(self) -> Channel | None:
        return channel(self._node.config.updates)

    async def _is_due(self) -> bool:
        settings = self._node.config
        if not settings.updates.check or self._channel() is None or self._node.is_silent:
            return False
        checked_s = self._known.checked_unix_s
        if checked_s is not None and 0 <= self._clock.unix_s() - checked_s < CHECK_EVERY_S:
            return False
        return (
            self._info.step not in _BUSY
            and not await Metered(settings.swarm.metered, self._clock).ask()
        )

    async def _check(self) -> None:
        place = self._channel()
        if place is None:
            raise UpdateError(
                "Shoal cannot look for new versions, because this build has no release key; get them "
                "where you got this one, or let updates.url and updates.key in the settings name a list."
            )
        async with self._changing:
            limits = await self._limits()
            folder, take = self._home.updates_dir, self._node.line.download
            data = await fetch_list(place.url, folder, limits, take)
            now_s = self._clock.unix_s()
            manifest = opened(data, place.keys, place.url)
            check(
                manifest,
                running=__version__,
                seen_unix_s=max(self._known.seen_unix_s.get(key, 0.0) for key in place.keys),
                now_unix_s=now_s,
                place=place.url,
            )
            # For all keys of the channel: the list of one that is being replaced is as old.
            seen = dict.fromkeys(place.keys, manifest.signed_unix_s)
            self._known = _Known(now_s, {**self._known.seen_unix_s, **seen}, data.decode())
            await asyncio.to_thread(self._keep)
            self._learn(manifest)

    def _learn(self, manifest: Manifest) -> None:
        self._manifest = manifest
        if self._info.step in _BUSY:  # with a version that somebody has asked for
            self._say(checked_unix_s=self._known.checked_unix_s)
            return
        is_newer = numbers(manifest.version) > numbers(__version__)
        # What has been fetched stays ready, unless there is something newer.
        is_ready = self._info.step is UpdateStep.READY and self._info.version == manifest.version
        step = UpdateStep.AVAILABLE if is_newer else UpdateStep.LATEST
        self._say(
            step=UpdateStep.READY if is_ready else step,
            version=manifest.version if is_newer else "",
            summary=manifest.summary if is_newer else "",
            page=manifest.page if is_newer else "",
            command=self._info.command if is_ready else "",
            sha256=self._info.sha256 if is_ready else "",
            is_needed=is_newer and OURS.newest < manifest.oldest_protocol,
            checked_unix_s=self._known.checked_unix_s,
            problem="",
        )

    def _recall(self) -> None:
        """What an earlier engine has found and done."""
        place = self._channel()
        try:
            kept = json.loads(self._home.updates_file.read_bytes())
            seen = {str(key): float(at_s) for key, at_s in dict(kept["seen_unix_s"]).items()}
            self._known = _Known(float(kept["checked_unix_s"]), seen, str(kept["text"]))
            if place is not None:
                self._learn(opened(self._known.text.encode(), place.keys, place.url))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # nothing is known; the next look begins anew
        except EngineError as error:  # another key by now
            _logger.info("%s", error)
        root = self._installation.root
        if root is not None and (staged := versions.read(root).staged) not in ("", __version__):
            self._say(step=UpdateStep.READY, version=staged)

    def _keep(self) -> None:
        text = json.dumps(
            {
                "checked_unix_s": self._known.checked_unix_s,
                "seen_unix_s": dict(self._known.seen_unix_s),
                "text": self._known.text,
            }
        )
        try:
            write_whole(self._home.updates_file, text.encode())
        except OSError as error:  # then the next engine looks again
            _logger.warning("%s cannot be written: %s", self._home.updates_file, error.strerror)

    # Installing -----------------------------------------------------------------------------

    def _file(self, manifest: Manifest) -> PackageFile:
        package, machine = self._installation.package, platform.machine().lower()
        if package == "source":
            raise UpdateError(
                f"Shoal {manifest.version} is there, but this one runs from a folder of yours: bring "
                "that up to date as you made it, such as with `git pull` or pip."
            )
        file = manifest.file_for(package, machine)
        if file is None:
            raise UpdateError(
                f"There is no package of Shoal {manifest.version} for this computer "
                f"({package}, {machine}); {manifest.page or 'see where you got this one'}."
            )
        return file

    async def _install(self, manifest: Manifest, file: PackageFile, url: str) -> None:
        root = self._installation.root
        path = self._home.updates_dir / _file_name(manifest.version, file)
        limits = await self._limits()
        await fetch_package(url, path, file, limits, self._show, self._node.line.download)
        if root is None:
            command = self._installation.command(path)
            self._say(step=UpdateStep.READY, command=command, sha256=file.sha256)
            return
        self._say(step=UpdateStep.INSTALLING)
        # Who has come this far works, and must not be taken for a leftover.
        await asyncio.to_thread(self._installation.mark_healthy)
        way_out = await asyncio.to_thread(environment, limits.proxy, limits.ca_file, path.parent)
        await put_beside(path, root, manifest.version, way_out)
        await asyncio.to_thread(path.unlink, missing_ok=True)
        self._say(step=UpdateStep.READY)

    async def _limits(self) -> FetchLimits:
        return await asyncio.to_thread(fetch_limits, self._node.config)

    def _show(self, progress: Progress) -> None:
        self._say(done_bytes=int(progress.done))

    def _say(self, **changed: object) -> None:
        self._info = self._info.model_copy(update=changed)
        self._node.tell()


def _file_name(version: str, file: PackageFile) -> str:
    if file.kind == "deb":
        architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(file.machine, file.machine)
        return f"shoal_{version}_{architecture}.deb"
    if file.kind == "setup":
        return f"shoal-{version}-setup.exe"
    return f"shoal-{version}-{file.machine}.run"
