"""What a person arranges about the node: settings, models on disk, its identity."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from engine.core.errors import EngineError, RequestError
from engine.localapi.running import Home
from engine.localapi.settings import (
    BackupRequest,
    Effect,
    IdentityBackup,
    KeptModelInfo,
    KeptModels,
    RestoreRequest,
    Settings,
    SettingsChange,
)
from engine.models import kept
from engine.node import compute
from engine.node.node import Node
from engine.node.settings import FILE_ONLY, SettingsFile, changes, effect_of
from engine.swarm import identity_backup


class Household:
    """See `engine.http.household_routes.HouseholdBackend`."""

    def __init__(self, home: Home, file: SettingsFile, node: Node) -> None:
        self._home = home
        self._file = file
        self._node = node
        self._needs_restart: set[str] = set()
        self._changing = asyncio.Lock()

    async def settings(self) -> Settings:
        """All settings."""
        return await asyncio.to_thread(self._file.view, tuple(sorted(self._needs_restart)))

    async def change_settings(self, change: SettingsChange) -> Settings:
        """Write settings and let the engine follow the file, as far as it can."""
        for name in sorted(FILE_ONLY & change.values.keys()):
            raise RequestError(
                f"{name} decides whose programs are installed, so only the settings file and "
                "`shoal settings set` can change it.",
                param=name,
            )
        async with self._changing:
            text, wanted = await asyncio.to_thread(self._file.changed, change.values)
            before = self._node.config
            changed = changes(before, wanted)
            effects = {name: effect_of(name) for name in changed}
            limits, old = wanted.limits, before.limits
            begins_again = (
                Effect.REJOIN in effects.values()
                # Whether we relay for others hangs on it.
                or _is_capped(limits.uplink_bytes_per_s, limits.downlink_bytes_per_s)
                is not _is_capped(old.uplink_bytes_per_s, old.downlink_bytes_per_s)
            )
            if begins_again and not self._node.is_spread:
                machine = await asyncio.to_thread(compute.choose, wanted.model, limits)
                await asyncio.to_thread(self._file.write, text)
                await self._node.begin_again(wanted, machine)
            else:
                await asyncio.to_thread(self._file.write, text)
                if not self._node.is_spread:
                    self._node.follow(wanted)
            self._needs_restart |= {
                name
                for name, effect in effects.items()
                if effect is Effect.RESTART or self._node.is_spread
            }
        return await self.settings()

    async def kept_models(self) -> KeptModels:
        """The models on disk."""
        return await asyncio.to_thread(self._kept_models)

    async def delete_model(self, name: str) -> KeptModels:
        """Remove one that does not run."""
        await asyncio.to_thread(kept.delete, self._models_dir, name, self._node.model_folder)
        return await self.kept_models()

    async def back_up_identity(self, request: BackupRequest) -> IdentityBackup:
        """The identity under a passphrase."""
        peer_id, text = await asyncio.to_thread(
            identity_backup.back_up, self._home.identity_file, request.passphrase
        )
        return IdentityBackup(peer_id=peer_id, backup=text)

    async def restore_identity(self, request: RestoreRequest) -> None:
        """Become who the backup was."""
        if self._node.is_spread:
            raise EngineError(
                "This engine was started with --stages; start it without to restore an identity."
            )
        async with self._changing:
            await asyncio.to_thread(
                identity_backup.restore,
                self._home.identity_file,
                request.backup,
                request.passphrase,
            )
            now = self._node.config
            machine = await asyncio.to_thread(compute.choose, now.model, now.limits)
            await self._node.begin_again(now, machine)

    @property
    def _models_dir(self) -> Path:
        return self._home.models_dir_in(self._node.config.model.folder)

    def _kept_models(self) -> KeptModels:
        folder, running = self._models_dir, self._node.model_folder
        there = next(path for path in (folder, *folder.parents) if path.exists())
        return KeptModels(
            folder=str(folder),
            free_bytes=shutil.disk_usage(there).free,
            models=tuple(
                KeptModelInfo(
                    name=model.name,
                    num_bytes=model.num_bytes,
                    in_use=running is not None and running.is_relative_to(model.folder),
                )
                for model in kept.kept(folder)
            ),
        )


def _is_capped(*rates_bytes_per_s: float) -> bool:
    return any(rates_bytes_per_s)
