from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from engine.chats import messages
from engine.config import ApiConfig
from engine.core.clock import SystemClock
from engine.core.errors import NoRoute, ResourceError
from engine.http import chat_endings
from engine.http.chat_routes import ChatRoutes
from engine.http.server import serve
from engine.storage.database import Database
from tests.support.api_backend import ScriptedBackend
from tests.support.small_disk import small_disk

TOKEN = "the-token-of-this-test"
ANSWER = "The shoal turns when they turn."


class Chats:
    """The API of conversations, and the database behind it."""

    def __init__(self, session: aiohttp.ClientSession, database: Database) -> None:
        self.session = session
        self.database = database

    async def call(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        async with self.session.request(method, f"/shoal/v1/{path}", json=body) as response:
            assert response.status == status, await response.text()
            return await response.json()

    async def begin(self, **settings: object) -> int:
        return (await self.call("POST", "chats", settings))["id"]

    async def events(self, chat: int, body: object = None) -> AsyncIterator[dict[str, Any]]:
        method = "GET" if body is None else "POST"
        path = f"/shoal/v1/chats/{chat}/answer"
        async with self.session.request(method, path, json=body) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    async def answer(self, chat: int, body: object) -> list[dict[str, Any]]:
        return [event async for event in self.events(chat, body)]

    async def shown(self, chat: int) -> list[str]:
        page = await self.call("GET", f"chats/{chat}/messages")
        return [message["text"] for message in page["messages"]]


@asynccontextmanager
async def keeping(backend: ScriptedBackend, folder: Path) -> AsyncIterator[Chats]:
    database = await Database.open(folder / "shoal.sqlite3", SystemClock())
    routes = ChatRoutes(backend, database, SystemClock())
    await routes.clean_up()
    server = await serve(backend, TOKEN, ApiConfig(), [routes])
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            yield Chats(session, database)
            await server.close()
    finally:
        await database.close()


def say(text: str, parent: int | None = None, **more: object) -> dict[str, object]:
    return {"say": {"parent": parent, "text": text, **more}}


async def test_answer_streams_and_is_kept_with_its_question(tokenizer, tmp_path):
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        chat = await chats.begin()
        events = await chats.answer(chat, say("Why?"))
        begun, *texts, ended = events
        assert (begun["kind"], begun["question"]["text"], begun["answer"]["text"]) == (
            "begun", "Why?", "",
        )  # fmt: skip
        assert "".join(event["text"] for event in texts if "text" in event) == ANSWER
        assert ended["answer"]["ending"] == "complete"
        assert ended["answer"]["tokens"] == texts[-1]["tokens"]
        assert ended["answer"]["privacy"] == "local"
        assert ended["answer"]["context_tokens"] > ended["answer"]["tokens"]
        assert await chats.shown(chat) == ["Why?", ANSWER]
        assert (await chats.call("GET", f"chats/{chat}"))["title"] == "Why?"


async def test_model_is_shown_prompt_branch_and_sampling_of_the_conversation(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin(
            system_prompt="Be brief.", sampling={"temperature": 0.5, "max_tokens": 40, "seed": 7}
        )
        first = (await chats.answer(chat, say("one")))[-1]["answer"]["id"]
        await chats.answer(chat, say("two", first))
        await chats.answer(chat, say("TWO", first))
        prompt, params = backend.seen[-1]
        assert (params.temperature, params.max_new_tokens, params.seed) == (0.5, 40, 7)
        wanted = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": "TWO"},
        ]
        assert list(prompt) == tokenizer.encode_chat(wanted)


async def test_stopped_answer_keeps_what_it_has_and_can_be_continued(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, hang_after=3)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        following = asyncio.create_task(chats.answer(chat, say("Why?")))
        await asyncio.wait_for(backend.hanging.wait(), 5)
        await chats.call("POST", f"chats/{chat}/stop")
        ended = (await following)[-1]["answer"]
        assert ended["ending"] == "stopped"
        assert ended["text"]
        assert ANSWER.startswith(ended["text"])
        backend.hang_after = None
        backend.answer = " And so on."
        more = await chats.answer(chat, {"go_on": ended["id"]})
        assert more[0]["answer"]["text"] == ended["text"]
        assert more[-1]["answer"]["id"] == ended["id"]
        assert more[-1]["answer"]["text"] == ended["text"] + " And so on."
        prompt, _ = backend.seen[-1]
        assert tokenizer.decode(prompt).endswith(ended["text"])


async def test_answer_goes_on_when_nobody_follows_and_can_be_followed_again(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, step_s=0.03)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        async for event in chats.events(chat, say("Why?")):
            if event["kind"] == "text":
                break
        assert (await chats.call("GET", "chats"))["chats"][0]["answering"]
        events = [event async for event in chats.events(chat)]
        text = events[0]["answer"]["text"] + "".join(e.get("text", "") for e in events[1:-1])
        assert text == ANSWER
        assert events[-1]["answer"]["ending"] == "complete"
        assert await chats.shown(chat) == ["Why?", ANSWER]


async def test_answer_is_kept_while_it_grows(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, hang_after=4)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        following = asyncio.create_task(chats.answer(chat, say("Why?")))
        await asyncio.wait_for(backend.hanging.wait(), 5)
        async with asyncio.timeout(5):
            while not (kept := (await chats.shown(chat))[1]):
                await asyncio.sleep(0.02)
        assert ANSWER.startswith(kept)
        await chats.call("POST", f"chats/{chat}/stop")
        await following


async def test_engine_that_ends_keeps_the_answer_and_says_interrupted(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, hang_after=4)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        following = asyncio.create_task(chats.answer(chat, say("Why?")))
        await asyncio.wait_for(backend.hanging.wait(), 5)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        page = await chats.call("GET", f"chats/{chat}/messages")
        assert page["messages"][1]["ending"] == "interrupted"
        assert page["messages"][1]["text"]


async def test_end_of_an_answer_waits_for_a_full_disk_and_nothing_seems_to_go_on_meanwhile(
    tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr(chat_endings, "RETRY_S", 0.05)
    backend = ScriptedBackend(tokenizer, hang_after=3)
    with small_disk(tmp_path / "disk", "4m") as disk:
        async with keeping(backend, disk.folder) as chats:
            chat = await chats.begin()
            following = asyncio.create_task(chats.answer(chat, say("Why?")))
            await asyncio.wait_for(backend.hanging.wait(), 5)
            disk.fill()
            await chats.call("POST", f"chats/{chat}/stop")
            ended = (await following)[-1]["answer"]
            assert ended["ending"] == "failed"
            assert ended["failure"].startswith("The answer is not kept yet")
            assert not (await chats.call("GET", "chats"))["chats"][0]["answering"]
            assert not (await chats.call("GET", f"chats/{chat}"))["answering"]
            shown = (await chats.call("GET", f"chats/{chat}/messages"))["messages"][1]
            assert (shown["ending"], shown["text"]) == ("failed", ended["text"])
            exported = await chats.call("GET", f"chats/{chat}/export?format=json")
            assert exported["messages"][1]["text"] == ended["text"] != ""
            error = await chats.call("POST", f"chats/{chat}/answer", say("And?"), status=507)
            assert "is full" in error["error"]["message"]
            disk.free()
            async with asyncio.timeout(5):
                while shown["ending"] == "failed":
                    await asyncio.sleep(0.02)
                    page = await chats.call("GET", f"chats/{chat}/messages")
                    shown = page["messages"][1]
            assert (shown["ending"], shown["failure"], shown["text"]) == (
                "stopped", "", ended["text"],
            )  # fmt: skip
            backend.hang_after = None
            more = await chats.answer(chat, {"go_on": ended["id"]})
            assert more[-1]["answer"]["ending"] == "complete"


async def test_end_of_an_answer_is_kept_when_the_engine_ends_though_the_disk_was_full(
    tokenizer, tmp_path
):
    backend = ScriptedBackend(tokenizer, hang_after=3)
    with small_disk(tmp_path / "disk", "4m") as disk:
        async with keeping(backend, disk.folder) as chats:
            chat = await chats.begin()
            following = asyncio.create_task(chats.answer(chat, say("Why?")))
            await asyncio.wait_for(backend.hanging.wait(), 5)
            disk.fill()
            await chats.call("POST", f"chats/{chat}/stop")
            ended = (await following)[-1]["answer"]
            disk.free()
        async with keeping(ScriptedBackend(tokenizer), disk.folder) as chats:
            shown = (await chats.call("GET", f"chats/{chat}/messages"))["messages"][1]
            assert (shown["ending"], shown["text"]) == ("stopped", ended["text"])


async def test_failed_answer_says_why_and_can_be_asked_for_again(tokenizer, tmp_path):
    error = NoRoute("Nobody holds blocks 2–3; wait for somebody to join.")
    backend = ScriptedBackend(tokenizer, fail_after=2, error=error)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        failed = (await chats.answer(chat, say("Why?")))[-1]["answer"]
        assert (failed["ending"], failed["failure"]) == ("failed", str(error))
        backend.error = None
        events = await chats.answer(chat, {"again": failed["parent"]})
        assert events[-1]["answer"]["siblings"] == [failed["id"], events[-1]["answer"]["id"]]
        assert await chats.shown(chat) == ["Why?", ANSWER]
        await chats.call("PATCH", f"chats/{chat}", {"show": failed["id"]})
        assert (await chats.shown(chat))[1] == failed["text"]


async def test_nothing_is_said_while_the_model_is_not_ready(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer)
    backend.not_ready = ResourceError("Shoal is not ready (starting).")
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        error = await chats.call("POST", f"chats/{chat}/answer", say("Why?"), status=503)
        assert error["error"]["message"] == "Shoal is not ready (starting)."
        assert await chats.shown(chat) == []


async def test_one_conversation_has_one_answer_at_a_time(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, hang_after=1)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        following = asyncio.create_task(chats.answer(chat, say("Why?")))
        await asyncio.wait_for(backend.hanging.wait(), 5)
        error = await chats.call("POST", f"chats/{chat}/answer", say("And?"), status=400)
        assert "being answered already" in error["error"]["message"]
        await chats.call("DELETE", f"chats/{chat}")
        assert (await following)[-1]["answer"]["ending"] == "stopped"


async def test_long_history_is_cut_to_the_context_and_the_answer_says_so(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer, answer="Yes.")
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin(sampling={"max_tokens": 20})
        parent = None
        for number in range(12):
            ended = (await chats.answer(chat, say(f"{number} " + "fish " * 12, parent)))[-1][
                "answer"
            ]
            parent = ended["id"]
        assert ended["left_out"] > 0
        assert ended["left_out"] % 2 == 0
        assert len(backend.seen[-1][0]) <= 512 - 20
        too_long = (await chats.answer(chat, say("fish " * 600, parent)))[-1]["answer"]
        assert "does not fit" in too_long["failure"]


async def test_attached_files_are_counted_and_shown_to_the_model(tokenizer, tmp_path):
    backend = ScriptedBackend(tokenizer)
    async with keeping(backend, tmp_path) as chats:
        chat = await chats.begin()
        files = [{"name": "eel.txt", "text": "Eels migrate."}]
        events = await chats.answer(chat, say("Explain.", attachments=files))
        assert events[0]["question"]["attachments"] == [{"name": "eel.txt", "chars": 13}]
        assert "Eels migrate." in tokenizer.decode(backend.seen[-1][0])
        count = await chats.call("POST", "tokens", {"texts": ["Eels migrate.", ""]})
        assert count["counts"] == [len(tokenizer.encode_more("Eels migrate.")), 0]
        assert count["context_tokens"] == 512


async def test_conversations_are_renamed_deleted_restored_and_exported(tokenizer, tmp_path):
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        chat = await chats.begin()
        await chats.answer(chat, say("Why?"))
        await chats.call("PATCH", f"chats/{chat}", {"title": "Shoals"})
        async with chats.session.get(f"/shoal/v1/chats/{chat}/export?format=markdown") as response:
            assert (await response.text()).startswith("# Shoals\n\n## You\n\nWhy?\n")
        document = await chats.call("GET", f"chats/{chat}/export?format=json")
        assert len(document["messages"]) == 2
        await chats.call("DELETE", f"chats/{chat}")
        assert (await chats.call("GET", "chats"))["chats"] == []
        await chats.call("POST", f"chats/{chat}/restore")
        found = await chats.call("GET", "chats?query=turns+when")
        assert [summary["title"] for summary in found["chats"]] == ["Shoals"]


async def test_presets_are_kept_by_name(tokenizer, tmp_path):
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        body = {"system_prompt": "Be brief.", "sampling": {"temperature": 0.2}}
        await chats.call("PUT", "presets/Brief%20one", body)
        await chats.call("PUT", "presets/Brief%20one", body | {"system_prompt": "Be terse."})
        kept = await chats.call("GET", "presets")
        assert [(p["name"], p["system_prompt"]) for p in kept["presets"]] == [
            ("Brief one", "Be terse.")
        ]
        assert (await chats.call("DELETE", "presets/Brief%20one"))["presets"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "chats/999", None, 404, "no conversation 999"),
        ("GET", "chats/999/messages", None, 404, "no conversation 999"),
        ("POST", "chats/999/answer", say("x"), 404, "no conversation 999"),
        ("GET", "chats/1/messages?before=7", None, 400, "no message 7"),
        ("GET", "chats/1/answer", None, 400, "not being answered"),
        ("POST", "chats/1/answer", {}, 400, "exactly one"),
        ("POST", "chats/1/answer", say("x") | {"again": 1}, 400, "exactly one"),
        ("POST", "chats/1/answer", say(" "), 400, "empty"),
        ("POST", "chats/1/answer", {"again": 5}, 400, "no message 5"),
        ("PATCH", "chats/1", {"show": 9}, 400, "no message 9"),
        ("PATCH", "chats/1", {"nonsense": 9}, 400, "nonsense"),
        ("POST", "chats", {"sampling": {"temperature": 9}}, 400, "temperature"),
        ("GET", "chats?limit=x", None, 400, "limit must be a number"),
        ("GET", "chats/1/export?format=pdf", None, 400, "markdown or json"),
        ("PUT", "presets/" + "x" * 101, {}, 400, "at most 100"),
    ],
)
async def test_requests_that_make_no_sense_are_refused_in_one_sentence(
    tokenizer, tmp_path, method, path, body, status, words
):
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        assert await chats.begin() == 1
        error = (await chats.call(method, path, body, status=status))["error"]
        assert words in error["message"]


async def test_unfinished_answers_of_a_killed_engine_end_at_the_next_start(tokenizer, tmp_path):
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        chat = await chats.begin()
        await chats.answer(chat, say("Why?"))

        def unfinish(connection: messages.Connection) -> None:
            connection.execute("UPDATE messages SET ending = NULL WHERE speaker = 'assistant'")

        await chats.database.write(unfinish)
    async with keeping(ScriptedBackend(tokenizer), tmp_path) as chats:
        page = await chats.call("GET", f"chats/{chat}/messages")
        assert page["messages"][1]["ending"] == "interrupted"
