import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.core.errors import ConfigError, NoRoute
from engine.localapi.client import ApiClient, ApiFailed, EngineUnreachable
from engine.localapi.running import Home, find_running, process_start
from engine.localapi.schema import ReadyFile
from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.api_server import TOKEN, serving_in_thread
from tests.support.fake_home import running_in

CHAT = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_a_running_engine_is_found_and_called(tokenizer, tmp_path):
    with running_in(tmp_path, ScriptedBackend(tokenizer)) as home:
        client = ApiClient.of(find_running(home))
        assert client.call("GET", "/shoal/v1/status")["state"] == "idle"
    assert find_running(home) is None


def test_proxies_are_not_for_this_machine(tokenizer, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving_in_thread(ScriptedBackend(tokenizer)) as api:
        assert ApiClient(api.url, api.token).call("GET", "/shoal/v1/status")["state"] == "idle"


def test_a_refusal_carries_the_engines_words_status_and_code(tokenizer):
    with serving_in_thread(ScriptedBackend(tokenizer)) as api:
        with pytest.raises(ApiFailed, match=r"^messages is empty") as refused:
            ApiClient(api.url, TOKEN).call("POST", "/v1/chat/completions", {"messages": []})
        assert (refused.value.status, refused.value.api_code) == (400, "invalid_request")
        with pytest.raises(ApiFailed) as refused:
            ApiClient(api.url, "wrong").call("GET", "/shoal/v1/status")
        assert refused.value.status == 401


def test_an_error_in_mid_stream_is_raised(tokenizer):
    backend = ScriptedBackend(tokenizer, fail_after=2, error=NoRoute("Every route failed."))
    with serving_in_thread(backend) as api:
        with ApiClient(api.url, TOKEN).stream("POST", "/v1/chat/completions", CHAT) as events:
            with pytest.raises(ApiFailed, match="Every route failed"):
                list(events)


def test_hanging_up_ends_an_iteration_in_another_thread(tokenizer):
    with serving_in_thread(ScriptedBackend(tokenizer, hang_after=2)) as api:
        events = ApiClient(api.url, TOKEN).stream("POST", "/v1/chat/completions", CHAT)
        seen: list[str] = []
        started = threading.Event()

        def read() -> None:
            for event in events:
                seen.append(event)
                started.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert started.wait(5)
        events.hang_up()
        reader.join(5)
        assert not reader.is_alive()
        events.close()
        assert seen


def test_nobody_there_is_a_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(EngineUnreachable, match="does not answer"):
        ApiClient(url, TOKEN).call("GET", "/shoal/v1/status")


def test_silence_is_a_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(EngineUnreachable, match="it took too long"):
            ApiClient(url, TOKEN).call("GET", "/shoal/v1/status", timeout_s=0.1)


@pytest.mark.parametrize("url", ["", "127.0.0.1", "http://127.0.0.1"])
def test_an_address_without_port_is_refused(url):
    with pytest.raises(ConfigError, match="not the address"):
        ApiClient(url, TOKEN)


def test_engine_is_not_mistaken_for_a_process_that_got_its_number(tmp_path: Path) -> None:
    home = Home.under(tmp_path)
    home.state_dir.mkdir(parents=True)
    ours = process_start(os.getpid())
    assert ours is not None
    for start, found in ((ours, True), (ours - 1, False), (None, True)):
        ready = ReadyFile(
            url="http://127.0.0.1:1", token_file="x", pid=os.getpid(), process_start=start
        )
        home.running_file.write_text(ready.model_dump_json())
        assert (find_running(home) is not None) is found


def test_engine_that_has_ended_is_not_found_before_its_parent_has_looked(tmp_path: Path) -> None:
    home = Home.under(tmp_path)
    home.state_dir.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as engine:
        ready = ReadyFile(
            url="http://127.0.0.1:1",
            token_file="x",
            pid=engine.pid,
            process_start=process_start(engine.pid),
        )
        home.running_file.write_text(ready.model_dump_json())
        assert find_running(home) == ready
        engine.kill()
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
        assert find_running(home) is None
