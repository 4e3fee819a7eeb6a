from __future__ import annotations

import aiohttp

from engine.config import ApiConfig
from engine.http.catalogue_routes import CatalogueRoutes, Rooms
from engine.http.server import serve
from engine.localapi.catalogue import Catalogue, Standing
from tests.support.api_backend import ScriptedBackend

TOKEN = "the-token-of-this-test"


class Computers:
    """What a node would know."""

    def __init__(self, *rooms_bytes: int, source: str = "starter", is_solo: bool = True) -> None:
        self.known = Rooms(source, is_solo, 2, rooms_bytes)

    def rooms(self) -> Rooms:
        return self.known


async def told(tokenizer, computers: Computers) -> Catalogue:
    routes = CatalogueRoutes(computers)
    server = await serve(ScriptedBackend(tokenizer), TOKEN, ApiConfig(), [routes])
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            async with session.get("/shoal/v1/models") as response:
                return Catalogue.model_validate_json(await response.text())
    finally:
        await server.close()


async def test_models_say_whether_one_computer_has_room(tokenizer):
    found = await told(tokenizer, Computers(4_000_000_000))
    standings = {model.source: model.standing for model in found.models}
    assert standings["starter"] is Standing.RUNNING
    assert standings["HuggingFaceTB/SmolLM2-1.7B-Instruct"] is Standing.POSSIBLE
    assert standings["Qwen/Qwen2.5-7B-Instruct"] is Standing.TOO_LARGE
    large = next(model for model in found.models if model.source == "Qwen/Qwen2.5-7B-Instruct")
    assert 0 < large.missing_bytes < large.needed_bytes
    assert (found.can_choose, found.computers) == (True, 1)


async def test_swarm_has_room_for_what_no_member_has(tokenizer):
    found = await told(tokenizer, Computers(*[6_000_000_000] * 4, is_solo=False))
    standings = {model.source: model.standing for model in found.models}
    assert standings["Qwen/Qwen2.5-7B-Instruct"] is Standing.POSSIBLE
    assert (found.can_choose, found.computers) == (False, 4)
