"""`shoal engine`: from options to a running agent, and the orderly end of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Final

from engine import __version__
from engine.config import Config
from engine.core.clock import SystemClock
from engine.core.errors import ConfigError, WorkerFailed
from engine.core.lifetime import die_with_parent
from engine.core.plans import Span
from engine.core.whole_file import write_whole
from engine.http.answering import Answering
from engine.http.batch_routes import BatchRoutes
from engine.http.catalogue_routes import CatalogueRoutes
from engine.http.chat_routes import ChatRoutes
from engine.http.household_routes import HouseholdRoutes
from engine.http.job_answerer import JobAnswerer
from engine.http.job_routes import JobRoutes
from engine.http.past_routes import PastRoutes
from engine.http.server import ApiServer, Resource, serve
from engine.http.setup_routes import SetupRoutes
from engine.http.update_routes import UpdateRoutes
from engine.jobs.files import Files
from engine.jobs.jobs import Jobs
from engine.jobs.store import JobStore
from engine.localapi.installation import Installation
from engine.localapi.lock import engine_lock
from engine.localapi.running import Home, process_start, read_token
from engine.localapi.schema import ReadyFile
from engine.localapi.token import ensure_token
from engine.localapi.versions import RESTART_EXIT
from engine.models.prepare import prepare
from engine.node import compute, founding
from engine.node.compute import Compute
from engine.node.fetching import fetch_limits
from engine.node.household import Household
from engine.node.local_stages import LocalStages
from engine.node.logs import log_stray_error, log_to_file
from engine.node.meter import Meter
from engine.node.node import Node
from engine.node.options import EngineOptions
from engine.node.past import Past
from engine.node.setting_up import SettingUp
from engine.node.settings import SettingsFile
from engine.node.updating import Updating
from engine.planner.placement import even_spans
from engine.storage.database import Database
from engine.swarm import invites
from engine.swarm.invites import Invite

logger = logging.getLogger(__name__)

_HEALTHY_AFTER_S: Final = 3.0
_TERMINATED_LIMIT_S: Final = 20.0
"""What a service manager's stop leaves to running requests; `shoal-engine.service` allows more."""


async def run(options: EngineOptions) -> int:
    """Run an engine until it is asked to end.

    Returns:
        The exit code: 0, or `RESTART_EXIT` when it wants to be started anew.

    Raises:
        EngineError: It could not start (settings, port, lock, key, model), or something that it
            cannot do without has ended.
    """
    if options.parent_pid is not None:
        die_with_parent(options.parent_pid)
    home = options.home
    with engine_lock(home):
        log_to_file(home, debug=options.debug)
        database = await Database.open(
            home.database_file,
            SystemClock(),
            rolled_back=bool(options.installation.rolled_back_from),
        )
        try:
            restarts = await _run(options, database)
        finally:
            await database.close()
    return RESTART_EXIT if restarts else 0


async def _run(options: EngineOptions, database: Database) -> bool:
    """Run until the end; whether the engine wants to be started anew."""
    home = options.home
    token = ensure_token(home.token_file)
    machine = await asyncio.to_thread(compute.choose, options.config.model, options.config.limits)
    invite = _invite(options)
    node = Node(
        home,
        options.config,
        machine,
        invite,
        SystemClock(),
        leased=options.leased,
        # Whoever has begun once has an identity.
        awaits_setup=options.awaits_setup and invite is None and not home.identity_file.exists(),
    )
    node.notices = lambda: _notices(database, options.installation)
    updating = Updating(home, node, options.installation, SystemClock())
    node.update = lambda: updating.info
    stages = LocalStages(home)
    chats = ChatRoutes(node, database, SystemClock())
    await chats.clean_up()
    settings = SettingsFile(home.settings_file, options.overrides)
    household = HouseholdRoutes(Household(home, settings, node))
    setup = SetupRoutes(SettingUp(home, node))
    meter = Meter(node, database, SystemClock())
    past = PastRoutes(Past(home, node, meter))
    jobs = _jobs(home, database, node)
    resources: list[Resource] = [
        JobRoutes(jobs, ping_every_s=options.config.api.ping_every_s),
        BatchRoutes(jobs),
        chats,
        household,
        setup,
        past,
        CatalogueRoutes(node),
        UpdateRoutes(updating),
    ]
    server = await serve(node, token, options.config.api, resources)
    working = asyncio.create_task(jobs.run(), name="jobs")
    metering = asyncio.create_task(meter.run(), name="meter")
    looking = asyncio.create_task(updating.run(), name="updates")
    proving = asyncio.create_task(_prove(options.installation), name="healthy")
    try:
        node.api_url = server.url
        _say_ready(options, server)
        begun = asyncio.create_task(_begin(options, machine, node, stages))
        ended = asyncio.create_task(_until_ended(options, node, stages))
        try:
            await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
            if begun.done():
                begun.result()
            await ended
        finally:
            begun.cancel()
            ended.cancel()
    finally:
        home.running_file.unlink(missing_ok=True)
        node.quit()  # ends the event streams, which the server would wait for
        for task in (working, looking, proving):
            task.cancel()
        await asyncio.gather(working, looking, proving, return_exceptions=True)
        await updating.close()
        await server.close()
        metering.cancel()
        await asyncio.wait({metering})
        await meter.close()
        await asyncio.gather(node.stop(), stages.stop())
    return node.restarts


async def _prove(installation: Installation) -> None:
    """Say that this version works, if it is tried: its API answers, and goes on doing so."""
    await asyncio.sleep(_HEALTHY_AFTER_S)
    try:
        await asyncio.to_thread(installation.mark_healthy)
    except OSError as error:
        logger.warning("it cannot be written down that this version works: %s", error.strerror)


def _jobs(home: Home, database: Database, node: Node) -> Jobs:
    clock = SystemClock()
    store = JobStore(database, clock)
    answerer = JobAnswerer(node, Answering(node, clock))
    files = Files(
        home.files_dir,
        database,
        store,
        clock,
        disk_free_bytes=lambda: node.config.limits.disk_free_bytes,
    )
    return Jobs(store, files, answerer, clock)


def _notices(database: Database, installation: Installation) -> tuple[str, ...]:
    """What a person should know: how the database began, whether it keeps anything, a failed update."""
    damaged = rolled_back = ""
    if database.aside.damaged is not None:
        damaged = (
            f"The database with chats and batch jobs was damaged, so Shoal began a new one; the "
            f"old file is kept as {database.aside.damaged}."
        )
    if failed := installation.rolled_back_from:
        rolled_back = f"Shoal {failed} did not start, so {__version__} runs again."
    if failed and database.aside.newer is not None:
        rolled_back += (
            f" Chats and batch jobs are those of before; {failed} left its own as "
            f"{database.aside.newer}."
        )
    return tuple(filter(None, (damaged, rolled_back, database.trouble)))


async def _until_ended(options: EngineOptions, node: Node, stages: LocalStages) -> None:
    """Wait for a signal, a quit request, or the last lease.

    Ctrl-C ends at once. SIGTERM lets running requests end or go elsewhere first, unless another program
    has started us, which waits for our end; a second one ends at once, too.

    Raises:
        WorkerFailed: One of the local stages has ended, and with it the model's middle or end.
    """
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_stray_error)
    finishing: list[asyncio.Task[None]] = []

    def finish() -> None:
        if finishing or options.leased or options.parent_pid is not None:
            node.quit()
        else:
            finishing.append(asyncio.create_task(node.finish(_TERMINATED_LIMIT_S), name="finish"))

    loop.add_signal_handler(signal.SIGINT, node.quit)
    loop.add_signal_handler(signal.SIGTERM, finish)
    ended = asyncio.create_task(node.ended.wait())
    broken = asyncio.create_task(stages.wait_broken())
    try:
        await asyncio.wait({ended, broken}, return_when=asyncio.FIRST_COMPLETED)
        if broken.done() and not ended.done():
            raise WorkerFailed(
                f"One of the local stages has ended; see its log under {stages.logs_dir}, then "
                "start again."
            )
    finally:
        for task in (ended, broken, *finishing):
            task.cancel()


async def _begin(options: EngineOptions, machine: Compute, node: Node, stages: LocalStages) -> None:
    """Start the node and, with `--stages`, the further engines."""
    if options.stages == 1:
        node.start()
        return
    config, invite, further = await _cut(options, machine, node)
    node.adopt(config, invite)
    node.start()
    await stages.start(invite.text(), further, _same_compute(config))


async def _cut(
    options: EngineOptions, machine: Compute, node: Node
) -> tuple[Config, Invite, list[Span]]:
    """Split the model over local stages: our settings, their invite, their spans."""
    source = options.config.model.source
    if options.invite is not None:
        raise ConfigError("--stages makes a swarm of its own; it cannot be used with --invite.")
    files = await prepare(
        source,
        options.home.models_dir_in(options.config.model.folder),
        machine.dtype_name,
        None,
        node.show_progress,
        limits=await asyncio.to_thread(fetch_limits, options.config),
        take=node.line.download,
    )
    try:
        spans = even_spans(files.spec.num_hidden_layers, options.stages)
    except ValueError as error:
        raise ConfigError(
            f"{files.spec.name} has {files.spec.num_hidden_layers} blocks, so it cannot be spread "
            f"over {options.stages} stages; choose fewer."
        ) from error
    stage = options.config.stage.model_copy(update={"blocks": (spans[0].start, spans[0].end)})
    invite = founding.found_on_loopback(options.home, source=source, model_id=files.spec.model_id)
    return options.config.model_copy(update={"stage": stage}), invite, spans[1:]


def _same_compute(config: Config) -> list[str]:
    """Arguments that make the other local stages compute as we do."""
    words = ["--dtype", config.model.dtype, "--device", config.model.device]
    if config.stage.threads:
        words += ["--threads", str(config.stage.threads)]
    return [*words, "--kv-budget", str(config.stage.kv_budget_bytes)]


def _invite(options: EngineOptions) -> Invite | None:
    if options.invite is not None:
        return invites.parse(options.invite)
    return invites.load(options.home.swarm_file)


def _say_ready(options: EngineOptions, server: ApiServer) -> None:
    ready = ReadyFile(
        url=server.url,
        token_file=str(options.home.token_file),
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
    )
    line = ready.model_dump_json(exclude_none=True) + "\n"
    for path in (options.home.running_file, options.ready_file):
        if path is not None:
            try:
                write_whole(path, line.encode())
            except OSError as error:
                raise ConfigError(
                    f"Shoal cannot write {path} ({error.strerror}), by which others find it; make "
                    "room, or correct the folder's permissions."
                ) from error
    if options.ready_fd is not None:
        with_token = ready.model_copy(update={"token": read_token(options.home.token_file)})
        with os.fdopen(options.ready_fd, "w", encoding="utf-8") as file:
            file.write(with_token.model_dump_json() + "\n")
