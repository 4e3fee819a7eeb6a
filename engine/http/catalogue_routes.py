"""`GET /shoal/v1/models`: which models this computer and its swarm could run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from engine.http.bodies import json_response
from engine.localapi.catalogue import Catalogue, CatalogueModel, Standing
from engine.models.catalogue import Entry, catalogue
from engine.planner.catalogue import missing_bytes


@dataclass(frozen=True, slots=True)
class Rooms:
    """What is known of the computers."""

    source: str
    """The model that is wanted now."""
    is_solo: bool
    element_bytes: int
    """Of weights, as this computer keeps them."""
    rooms_bytes: Sequence[int]
    """Room for blocks on each computer, this one first."""


class CatalogueBackend(Protocol):
    """What the route needs; `engine.node.node.Node` is it."""

    def rooms(self) -> Rooms:
        """What is known of the computers now."""
        ...


class CatalogueRoutes:
    """Handler of the list of models."""

    def __init__(self, backend: CatalogueBackend) -> None:
        self._backend = backend

    def table(self) -> list[web.RouteDef]:
        """The route."""
        return [web.get("/shoal/v1/models", self.models)]

    async def end_streams(self, app: web.Application) -> None:
        """There are none."""

    async def models(self, request: web.Request) -> web.Response:
        """All models, with what is missing for those that do not fit."""
        rooms = self._backend.rooms()
        return json_response(
            Catalogue(
                models=tuple(standing(entry, rooms) for entry in catalogue().values()),
                can_choose=rooms.is_solo,
                computers=len(rooms.rooms_bytes),
            )
        )


def standing(entry: Entry, rooms: Rooms) -> CatalogueModel:
    """A model as it stands to the computers that are known."""
    block_bytes, ends_bytes = entry.bytes_at(rooms.element_bytes)
    missing = missing_bytes(rooms.rooms_bytes, entry.blocks, block_bytes, ends_bytes)
    runs = entry.source == rooms.source
    fits = Standing.POSSIBLE if missing == 0 else Standing.TOO_LARGE
    return CatalogueModel(
        **entry.model_dump(include={"source", "name", "about", "licence", "blocks"}),
        **entry.model_dump(include={"context_tokens", "draft", "minimum_swarm"}),
        standing=Standing.RUNNING if runs else fits,
        needed_bytes=entry.blocks * block_bytes + ends_bytes,
        missing_bytes=0 if runs else missing,
    )
