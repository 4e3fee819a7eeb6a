import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from engine.config import ApiConfig
from engine.core.errors import (
    CacheFull,
    ConfigError,
    EnginePaused,
    InviteInvalid,
    ModelCorrupt,
    NoRoute,
    PeerUnreachable,
)
from engine.core.generation import DraftMode, SpeculationWish
from engine.http.server import ApiServer, serve
from engine.localapi.running import Home
from engine.localapi.schema import MeasureRequest
from engine.node.logs import log_to_file
from tests.support.api_backend import ScriptedBackend

TOKEN = "the-token-of-this-test"
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


@asynccontextmanager
async def serving(
    backend: ScriptedBackend, config: ApiConfig | None = None
) -> AsyncIterator[tuple[ApiServer, aiohttp.ClientSession]]:
    server = await serve(backend, TOKEN, config or ApiConfig())
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        try:
            yield server, session
        finally:
            await server.close()


async def error_of(response: aiohttp.ClientResponse) -> dict[str, object]:
    """The error object, which must be OpenAI's and one sentence."""
    body = json.loads(await response.text())
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert "\n" not in body["error"]["message"]
    assert "Traceback" not in body["error"]["message"]
    return body["error"]


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_server_listens_on_loopback_only(tokenizer):
    async with serving(ScriptedBackend(tokenizer)) as (server, _):
        assert server.url == f"http://127.0.0.1:{server.port}"
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.2", server.port)


async def test_a_taken_port_is_a_clear_error(tokenizer):
    async with serving(ScriptedBackend(tokenizer)) as (server, _):
        with pytest.raises(ConfigError, match=rf"Port {server.port} is taken by another program"):
            await serve(ScriptedBackend(tokenizer), TOKEN, ApiConfig(port=server.port))


@pytest.mark.parametrize("path", ["/v1/models", "/shoal/v1/status", "/nowhere"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {TOKEN}"])
async def test_no_path_answers_without_the_token(tokenizer, path, header):
    async with serving(ScriptedBackend(tokenizer)) as (server, _):
        headers = {"Authorization": header} if header else {}
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            response = await session.get(path)
            assert response.status == 401
            assert (await error_of(response))["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("Host", "shoal.example.org", "forbidden_host"),
        ("Host", "127.0.0.1:1", "forbidden_host"),
        ("Origin", "https://example.org", "forbidden_origin"),
        ("Origin", "null", "forbidden_origin"),
    ],
)
async def test_web_pages_are_kept_out_even_with_the_token(tokenizer, name, value, code):
    async with serving(ScriptedBackend(tokenizer)) as (_, session):
        response = await session.get("/v1/models", headers={name: value})
        assert response.status == 403
        assert (await error_of(response))["code"] == code


async def test_a_page_of_this_machine_with_the_token_is_let_in(tokenizer):
    async with serving(ScriptedBackend(tokenizer)) as (server, session):
        for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}"):
            headers = {"Host": host, "Origin": "http://localhost:3000"}
            assert (await session.get("/v1/models", headers=headers)).status == 200


async def test_unknown_paths_and_methods_get_openai_errors(tokenizer):
    async with serving(ScriptedBackend(tokenizer)) as (_, session):
        response = await session.get("/v1/embeddings")
        assert response.status == 404
        assert "/v1/embeddings" in (await error_of(response))["message"]
        response = await session.get("/v1/chat/completions")
        assert response.status == 405
        await error_of(response)


async def test_a_body_beyond_the_limit_is_refused(tokenizer):
    async with serving(ScriptedBackend(tokenizer), ApiConfig(max_body_bytes=2048)) as (_, session):
        response = await session.post("/v1/completions", json={"prompt": "x" * 4096})
        assert response.status == 413
        assert (await error_of(response))["code"] == "body_too_large"


async def test_bad_json_says_where_it_breaks(tokenizer):
    async with serving(ScriptedBackend(tokenizer)) as (_, session):
        response = await session.post("/v1/chat/completions", data=b'{"messages": [}')
        assert response.status == 400
        assert "line 1 column 15" in (await error_of(response))["message"]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (NoRoute("No stage holds block 3; wait for one."), 503, "server_error"),
        (EnginePaused("You paused the stage; resume it."), 503, "server_error"),
        (CacheFull("No room is left; try again later."), 429, "rate_limit_error"),
        (PeerUnreachable("The peer is gone; try again."), 502, "server_error"),
        (ModelCorrupt("A weight is missing; fetch the model again."), 500, "server_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_engine_error_before_the_first_token_has_its_status(
    tokenizer, error, status, kind, stream
):
    backend = ScriptedBackend(tokenizer, fail_after=0, error=error)
    async with serving(backend) as (_, session):
        response = await session.post("/v1/chat/completions", json=HELLO | {"stream": stream})
        assert response.status == status
        told = await error_of(response)
        assert told == {"message": str(error), "type": kind, "param": None, "code": error.code}


async def test_a_model_that_is_not_ready_says_what_is_going_on(tokenizer):
    waiting = EnginePaused("The model is being converted: 40 of 272 tensors.")
    async with serving(ScriptedBackend(tokenizer, not_ready=waiting)) as (_, session):
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
            response = await session.request(method, path, json=HELLO)
            assert response.status == 503
            assert "40 of 272" in (await error_of(response))["message"]


async def test_an_unexpected_error_shows_no_traceback_and_logs_no_request(tokenizer, tmp_path):
    class Broken(ScriptedBackend):
        def script(self, params):
            raise ZeroDivisionError(self.tokenizer.decode(self.seen[0][0]))

    home = Home.under(tmp_path)
    handler = log_to_file(home, debug=True)
    try:
        async with serving(Broken(tokenizer)) as (_, session):
            response = await session.post("/v1/chat/completions", json=HELLO)
            assert response.status == 500
            assert (await error_of(response))["code"] == "internal_error"
    finally:
        logging.getLogger("engine").removeHandler(handler)
        handler.close()
    log = home.log_file.read_text()
    assert "ZeroDivisionError" in log
    assert "test_server.py" in log
    assert "Hello" not in log


async def test_an_error_in_mid_stream_is_an_event(tokenizer):
    backend = ScriptedBackend(tokenizer, fail_after=2, error=NoRoute("Every route failed."))
    async with serving(backend) as (_, session):
        response = await session.post("/v1/chat/completions", json=HELLO | {"stream": True})
        assert response.status == 200
        events = (await response.text()).strip().split("\n\n")
        last = json.loads(events[-1].removeprefix("data: "))
        assert last["error"]["message"] == "Every route failed."
        assert last["error"]["code"] == "no_route"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stop", [None, ["never"]])
async def test_a_client_that_hangs_up_frees_its_sessions_at_once(tokenizer, stream, stop):
    backend = ScriptedBackend(tokenizer, hang_after=3)
    async with serving(backend) as (_, session):
        body = HELLO | {"stream": stream, "stop": stop, "n": 2}
        request = asyncio.create_task(session.post("/v1/chat/completions", json=body))
        await backend.hanging.wait()
        assert backend.running == 2
        if stream:
            (await request).close()
        else:
            request.cancel()
        await until(lambda: backend.running == 0)


async def test_more_requests_than_allowed_are_told_to_wait(tokenizer):
    backend = ScriptedBackend(tokenizer, hang_after=0)
    async with serving(backend, ApiConfig(max_concurrent=1)) as (_, session):
        first = asyncio.create_task(session.post("/v1/chat/completions", json=HELLO))
        await backend.hanging.wait()
        response = await session.post("/v1/chat/completions", json=HELLO)
        assert response.status == 429
        assert (await error_of(response))["code"] == "too_many_requests"
        first.cancel()
        await until(lambda: backend.running == 0)
        backend.hang_after = None
        assert (await session.post("/v1/chat/completions", json=HELLO)).status == 200


async def test_the_server_closes_quickly_under_running_requests(tokenizer):
    backend = ScriptedBackend(tokenizer, hang_after=0)
    async with serving(backend) as (server, session):
        events = await session.get("/shoal/v1/events")
        request = asyncio.create_task(session.post("/v1/chat/completions", json=HELLO))
        await backend.hanging.wait()
        async with asyncio.timeout(3):
            await server.close()
        assert backend.running == 0
        with pytest.raises(aiohttp.ClientError):
            await request
        events.close()


async def test_status_pause_and_resume(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        assert (await (await session.get("/shoal/v1/status")).json())["state"] == "idle"
        body = {"finish_first": True, "seconds": 60}
        paused = await (await session.post("/shoal/v1/pause", json=body)).json()
        assert paused["state"] == "paused"
        assert backend.paused.finish_first
        assert backend.paused.seconds == 60
        assert (await (await session.post("/shoal/v1/resume")).json())["state"] == "idle"
        assert (await session.post("/shoal/v1/pause")).status == 200


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("pause", {"seconds": -1}, "seconds"),
        ("pause", {"forever": True}, "forever"),
        ("swarm/create", {}, "name"),
        ("swarm/join", {"invite": ""}, "invite"),
        ("events?lease=yes", None, "lease"),
    ],
)
async def test_wrong_bodies_are_refused_by_name(tokenizer, path, body, param):
    async with serving(ScriptedBackend(tokenizer)) as (_, session):
        method = "GET" if body is None else "POST"
        response = await session.request(method, f"/shoal/v1/{path}", json=body)
        assert response.status == 400
        assert (await error_of(response))["param"] == param


async def test_swarm_create_join_leave(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        created = await (await session.post("/shoal/v1/swarm/create", json={"name": "reef"})).json()
        assert created["invite"] == "shoal://reef"
        body = {"invite": "shoal://pier"}
        assert (await (await session.post("/shoal/v1/swarm/join", json=body)).json())[
            "name"
        ] == "pier"
        assert (await (await session.post("/shoal/v1/swarm/leave")).json())["name"] is None
        assert (await (await session.get("/shoal/v1/swarm")).json())["name"] is None


async def test_lines_are_measured_as_asked_and_ended_when_the_asker_hangs_up(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        assert (await (await session.get("/shoal/v1/measurements")).json()) == {"profile": None}
        body = {"quick": True, "on_metered": True}
        answer = await (await session.post("/shoal/v1/measurements", json=body)).json()
        assert answer["note"] == "Nobody is there."
        assert backend.measured == MeasureRequest(quick=True, on_metered=True)
        wrong = await session.post("/shoal/v1/measurements", json={"quick": "yes"})
        assert (await error_of(wrong))["param"] == "quick"

        ended = asyncio.Event()

        async def measure(request):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        backend.measure_network = measure
        asking = asyncio.create_task(session.post("/shoal/v1/measurements", json={}))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.wait_for(ended.wait(), 5)


async def test_an_unusable_invite_is_the_callers_fault(tokenizer):
    class Refusing(ScriptedBackend):
        async def swarm_join(self, request):
            raise InviteInvalid("The invite is cut short; copy all of it.")

    async with serving(Refusing(tokenizer)) as (_, session):
        response = await session.post("/shoal/v1/swarm/join", json={"invite": "shoal://x"})
        assert response.status == 400
        assert (await error_of(response))["code"] == "invite_invalid"


async def test_a_change_goes_on_when_its_caller_hangs_up(tokenizer):
    begun, finished = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedBackend):
        async def pause(self, request):
            begun.set()
            await asyncio.sleep(0.2)
            finished.set()

    async with serving(Slow(tokenizer)) as (_, session):
        call = asyncio.create_task(session.post("/shoal/v1/pause"))
        await begun.wait()
        call.cancel()
        async with asyncio.timeout(2):
            await finished.wait()


async def next_event(response: aiohttp.ClientResponse) -> dict[str, object]:
    async with asyncio.timeout(5):
        line = await response.content.readline()
        assert await response.content.readline() == b"\n"
    return json.loads(line.removeprefix(b"data: "))


async def test_events_tell_the_present_state_then_each_change(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        async with session.get("/shoal/v1/events") as events:
            assert events.content_type == "text/event-stream"
            first = await next_event(events)
            assert (first["kind"], first["status"]["state"]) == ("status", "idle")
            await session.post("/shoal/v1/pause")
            assert (await next_event(events))["status"]["state"] == "paused"
        assert backend.leases == 0


async def test_a_lease_is_held_while_its_stream_is_open(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        first = await session.get("/shoal/v1/events?lease=1")
        second = await session.get("/shoal/v1/events?lease=1")
        await next_event(first)
        await next_event(second)
        assert backend.leases == 2
        first.close()
        await until(lambda: backend.leases == 1)
        second.close()
        await until(lambda: backend.leases == 0)


async def test_quiet_event_streams_are_pinged(tokenizer):
    config = ApiConfig(ping_every_s=0.05)
    async with serving(ScriptedBackend(tokenizer), config) as (_, session):
        async with session.get("/shoal/v1/events") as events:
            await next_event(events)
            assert await next_event(events) == {"kind": "ping"}
            assert await next_event(events) == {"kind": "ping"}


async def test_quit_ends_the_engine(tokenizer):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        assert await (await session.post("/shoal/v1/quit")).json() == {}
    assert backend.quitting


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_usage_tells_how_much_of_the_prompt_was_cached(tokenizer, path):
    backend = ScriptedBackend(tokenizer)
    backend.reused_tokens = 32
    body = {"prompt": "Hello", "messages": [{"role": "user", "content": "Hello"}], "n": 2}
    async with serving(backend) as (_, session):
        usage = (await (await session.post(path, json=body)).json())["usage"]
        assert usage["prompt_tokens_details"] == {"cached_tokens": 32}  # once, as the prompt


@pytest.mark.parametrize(
    ("field", "use"),
    [({}, None), ({"share_prefixes": True}, "shared"), ({"share_prefixes": False}, "own")],
)
async def test_a_request_may_share_what_it_computes(tokenizer, field, use):
    backend = ScriptedBackend(tokenizer)
    async with serving(backend) as (_, session):
        assert (await session.post("/v1/completions", json={"prompt": "x", **field})).status == 200
        assert backend.prefixes == use
        response = await session.post("/v1/completions", json={"prompt": "x", "share_prefixes": 1})
        assert (await error_of(response))["param"] == "share_prefixes"


@pytest.mark.parametrize("stop", [None, ["x!x"]])
async def test_allowed_rounding_and_drafts_reach_the_engine(tokenizer, stop):
    backend = ScriptedBackend(tokenizer)
    body = {"prompt": "Hello", "stop": stop, "n": 2, "max_tokens": 3, "lossy": "rows8"}
    async with serving(backend) as (_, session):
        asked = body | {"draft": "model", "draft_tokens": 5, "draft_mode": "disco"}
        assert (await session.post("/v1/completions", json=asked)).status == 200
    assert backend.lossy == "rows8"
    assert backend.speculation == SpeculationWish("model", 5, mode=DraftMode.DISCO)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
async def test_usage_counts_what_was_drafted_and_what_of_it_was_right(tokenizer, path):
    backend = ScriptedBackend(tokenizer)
    script = backend.script

    def with_drafts(param):
        drafted = {"drafted_tokens": 4, "accepted_tokens": 1, "mode": DraftMode.DSSD}
        return [replace(event, **drafted) for event in script(param)]

    backend.script = with_drafts
    body = {"prompt": "Hello", "n": 2, **HELLO}
    async with serving(backend) as (_, session):
        usage = (await (await session.post(path, json=body)).json())["usage"]
    assert usage["drafted_tokens"] == 4 * usage["completion_tokens"]
    assert usage["accepted_tokens"] == usage["completion_tokens"]
    assert usage["draft_rounds"] == {"dssd": usage["completion_tokens"]}
