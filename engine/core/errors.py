"""The one tree of errors.

Each error's text is one sentence for a person: what happened, why, and what to do. `code` names
the kind for programs (it goes into API errors and logs), `retryable` says whether trying again,
perhaps over another route, can help.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Anything Shoal reports to a person instead of a traceback."""

    code: ClassVar[str] = "engine_error"
    retryable: ClassVar[bool] = False


class PeerError(EngineError):
    """Another node failed us; another route may work."""

    code = "peer_error"
    retryable = True


class PeerUnreachable(PeerError):
    """No stream to the peer could be opened or kept."""

    code = "peer_unreachable"


class PeerSilent(PeerUnreachable):
    """A link over which nothing came for too long: rather dead than broken."""

    code = "peer_silent"


class PeerDropped(PeerUnreachable):
    """The peer broke the rules, so we want nothing from it for a while."""

    code = "peer_dropped"


class StageTimedOut(PeerError):
    """A stage took a session but did not answer within its limit."""

    code = "stage_timed_out"


class StageRefused(PeerError):
    """A stage said no: no room, draining, another model, or not a member."""

    code = "stage_refused"


class NoRoute(PeerError):
    """The living stages do not cover every block of the model."""

    code = "no_route"


class ProtocolError(EngineError):
    """Bytes that break the rules of the wire."""

    code = "protocol_error"


class RemoteProtocolError(ProtocolError):
    """The other side broke the rules; drop that peer."""

    code = "remote_protocol_error"


class FrameCorrupt(RemoteProtocolError):
    """A frame whose lengths, checksum or contents do not hold together."""

    code = "frame_corrupt"


class LocalProtocolError(ProtocolError):
    """We were about to send something that breaks the rules."""

    code = "local_protocol_error"


class ResourceError(EngineError):
    """Not enough of something here; wait, free some, or ask for less."""

    code = "resource_error"
    retryable = True


class CacheFull(ResourceError):
    """No KV room is left for another session."""

    code = "cache_full"


class DiskFull(ResourceError):
    """A file could not be written for lack of space."""

    code = "disk_full"


class StorageError(EngineError):
    """What Shoal keeps on this disk cannot be read or written."""

    code = "storage_error"


class DatabaseTooNew(StorageError):
    """A later version of Shoal has written the database."""

    code = "database_too_new"


class DatabaseDamaged(StorageError):
    """The database's contents do not hold together."""

    code = "database_damaged"


class EnginePaused(ResourceError):
    """The stage is paused, so it takes no work."""

    code = "paused"


class WorkerFailed(ResourceError):
    """The compute process ended unexpectedly."""

    code = "worker_failed"


class ModelError(EngineError):
    """A model that cannot be found, fetched, verified or run."""

    code = "model_error"


class ModelNotFound(ModelError):
    """The name leads to no model."""

    code = "model_not_found"


class ModelUnavailable(ModelError):
    """The place that holds the model cannot be reached now."""

    code = "model_unavailable"
    retryable = True


class ModelCorrupt(ModelError):
    """Files that do not match their hash, or weights that are missing."""

    code = "model_corrupt"


class RequestError(EngineError):
    """A request that cannot be carried out as asked; the asker must change it.

    Args:
        message: The sentence for the person.
        param: Name of the offending field, if one is to blame.
    """

    code = "invalid_request"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextTooLong(RequestError):
    """Prompt and answer together exceed the model's context."""

    code = "context_length_exceeded"


class ChatNotFound(EngineError):
    """There is no such conversation."""

    code = "chat_not_found"


class ConfigError(EngineError):
    """Settings, arguments, key files or invites that make no sense."""

    code = "config_error"


class EngineRunsAlready(ConfigError):
    """Another engine works on the same files."""

    code = "engine_runs_already"


class PlanInfeasible(EngineError):
    """No pipeline of these machines can run the model.

    Attributes:
        constraint: What binds: memory, cache, reachability …
        hint: What would help, as a sentence.
    """

    code = "plan_infeasible"

    def __init__(self, message: str, *, constraint: str, hint: str) -> None:
        super().__init__(message)
        self.constraint = constraint
        self.hint = hint


class InviteInvalid(ConfigError):
    """An invite that is cut short, altered, or from another version."""

    code = "invite_invalid"


class UpdateError(EngineError):
    """A new version of Shoal that cannot be had, or not be installed."""

    code = "update_error"


class UpdateUnavailable(UpdateError):
    """The place that has it cannot be reached now, or this computer has no room for it now."""

    code = "update_unavailable"
    retryable = True


class UpdateRefused(UpdateError):
    """It is not what the people who publish Shoal have signed, or would be a step back."""

    code = "update_refused"


def error_class(code: object, fallback: type[EngineError]) -> type[EngineError]:
    """The class that has this code, for errors that come from another process."""
    classes: list[type[EngineError]] = [EngineError]
    for candidate in classes:  # grows while it is read
        if candidate.code == code:
            return candidate
        classes.extend(candidate.__subclasses__())
    return fallback
