"""The clients people really use, against the API. Nothing here knows what the model says, so that
the same tests hold for any engine behind the fixture `api`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.api_server import Api, serving_in_thread
from tests.support.real_engine import real_engine
from tests.support.tiny_models import save_tiny

HELLO = [{"role": "user", "content": "Hello, how are you today?"}]
FIXED = {"temperature": 0, "seed": 7}


@pytest.fixture(
    scope="module", params=["scripted", pytest.param("real", marks=pytest.mark.end2end)]
)
def api(request, tmp_path_factory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("engine")
    if request.param == "scripted":
        with serving_in_thread(ScriptedBackend(tiny_tokenizer(folder))) as serving:
            yield serving
        return
    model = str(save_tiny("llama", folder / "model"))
    with real_engine(folder / "home", "--model", model) as engine:
        engine.wait(lambda status: status["can_chat"])
        yield Api(engine.url, engine.token)


@pytest.fixture
def client(api: Api, monkeypatch) -> Iterator[OpenAI]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAI(base_url=f"{api.url}/v1", api_key=api.token, max_retries=0) as client:
        yield client


@pytest.fixture
def model(client: OpenAI) -> str:
    return client.models.list().data[0].id


def test_models_are_listed_and_described_under_all_their_names(client, model):
    (listed,) = client.models.list().data
    assert listed.owned_by == "shoal"
    for name in (model, model.partition("@")[0], "default"):
        assert client.models.retrieve(name) == listed


def test_a_chat_answer_is_complete(client, model):
    answer = client.chat.completions.create(model=model, messages=HELLO, max_tokens=12, **FIXED)
    (choice,) = answer.choices
    assert answer.object == "chat.completion"
    assert answer.model == model
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert 1 <= answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_answer_is_the_same_text_in_pieces(client, model):
    wanted = {"model": model, "messages": HELLO, "max_tokens": 12, **FIXED}
    whole = client.chat.completions.create(**wanted)
    chunks = list(
        client.chat.completions.create(
            **wanted, stream=True, stream_options={"include_usage": True}
        )
    )
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0] for chunk in chunks[:-1]]
    assert (
        "".join(delta.delta.content or "" for delta in deltas) == whole.choices[0].message.content
    )
    assert len([delta for delta in deltas if delta.delta.content]) > 1
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == [
        whole.choices[0].finish_reason
    ]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_usage_counts_what_was_drafted_and_what_of_it_was_right(client, model, stream):
    monotone = {"100": 100}  # what a look-up foresees
    wanted = {"model": model, "messages": HELLO, "max_tokens": 32, "logit_bias": monotone, **FIXED}
    plain = client.chat.completions.create(**wanted, extra_body={"draft": "off"})
    drafting = {"draft": "ngram", "draft_tokens": 2}
    if stream:
        more = {"stream": True, "stream_options": {"include_usage": True}}
        *chunks, last = client.chat.completions.create(**wanted, **more, extra_body=drafting)
        text, usage = "".join(c.choices[0].delta.content or "" for c in chunks), last.usage
    else:
        answer = client.chat.completions.create(**wanted, extra_body=drafting)
        text, usage = answer.choices[0].message.content, answer.usage
    assert text == plain.choices[0].message.content
    assert usage.completion_tokens == plain.usage.completion_tokens
    assert 0 < usage.accepted_tokens <= usage.drafted_tokens
    assert set(usage.draft_rounds) == {"shared_noise"}
    assert usage.drafted_tokens <= 2 * usage.draft_rounds["shared_noise"]
    assert (plain.usage.drafted_tokens, plain.usage.accepted_tokens) == (0, 0)


def test_max_tokens_cuts_the_answer_and_is_counted_exactly(client, model):
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_completion_tokens=3, **FIXED
    )
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


def test_n_choices_are_numbered_and_the_prompt_counts_once(client, model):
    wanted = {"model": model, "messages": HELLO, "max_tokens": 8, "seed": 7}
    one = client.chat.completions.create(**wanted)
    three = client.chat.completions.create(**wanted, n=3)
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    assert three.choices[0].message.content == one.choices[0].message.content
    assert len({choice.message.content for choice in three.choices}) == 3
    assert three.usage.prompt_tokens == one.usage.prompt_tokens
    assert three.usage.completion_tokens > one.usage.completion_tokens


def test_streamed_choices_can_be_told_apart(client, model):
    wanted = {"model": model, "messages": HELLO, "max_tokens": 8, "seed": 7, "n": 2}
    whole = client.chat.completions.create(**wanted)
    texts = ["", ""]
    for chunk in client.chat.completions.create(**wanted, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [choice.message.content for choice in whole.choices]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("n", [1, 2])
def test_a_stop_string_ends_the_answer_before_it(client, model, stream, n):
    wanted = {"model": model, "messages": HELLO, "max_tokens": 16, "n": n, **FIXED}
    text = client.chat.completions.create(**wanted).choices[0].message.content
    stop = text[5:8]
    if stream:
        before, finish = "", None
        for chunk in client.chat.completions.create(**wanted, stop=[stop], stream=True):
            (choice,) = chunk.choices
            if choice.index == 0:
                before += choice.delta.content or ""
                finish = choice.finish_reason or finish
    else:
        choice = client.chat.completions.create(**wanted, stop=stop).choices[0]
        before, finish = choice.message.content, choice.finish_reason
    assert before == text[: text.index(stop)]
    assert finish == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_spell_the_answer(client, model, stream):
    wanted = {"model": model, "messages": HELLO, "max_tokens": 8, **FIXED}
    wanted |= {"logprobs": True, "top_logprobs": 3}
    if stream:
        chunks = [
            chunk.choices[0] for chunk in client.chat.completions.create(**wanted, stream=True)
        ]
        text = "".join(chunk.delta.content or "" for chunk in chunks)
        tokens = [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.content]
    else:
        (choice,) = client.chat.completions.create(**wanted).choices
        text, tokens = choice.message.content, choice.logprobs.content
    assert b"".join(bytes(token.bytes) for token in tokens).decode("utf-8", "replace") == text
    for token in tokens:
        assert token.logprob <= 0
        logprobs = [other.logprob for other in token.top_logprobs]
        assert len(logprobs) == 3
        assert logprobs == sorted(logprobs, reverse=True)


def test_completions_continue_text_and_token_ids(client, model):
    wanted = {"model": model, "max_tokens": 6, **FIXED}
    texts = client.completions.create(prompt=["The herring", "One two three"], **wanted)
    assert [choice.index for choice in texts.choices] == [0, 1]
    ids = client.completions.create(prompt=[[5, 6, 7], [8, 9]], n=2, **wanted)
    assert [choice.index for choice in ids.choices] == [0, 1, 2, 3]
    assert ids.usage.prompt_tokens == 5
    one = client.completions.create(prompt="The herring", **wanted)
    assert one.choices[0].text == texts.choices[0].text
    assert one.object == "text_completion"


def test_completions_echo_the_prompt_and_report_logprobs(client, model):
    wanted = {"model": model, "prompt": "The herring", "max_tokens": 6, **FIXED}
    plain = client.completions.create(**wanted, logprobs=2).choices[0]
    assert len(plain.logprobs.tokens) == len(plain.logprobs.token_logprobs)
    assert plain.logprobs.text_offset[0] == 0
    assert all(len(top) <= 2 for top in plain.logprobs.top_logprobs)
    echoed = client.completions.create(**wanted, echo=True).choices[0]
    assert echoed.text == "The herring" + plain.text


def test_streamed_completions_are_the_same_text(client, model):
    wanted = {"model": model, "prompt": "The herring", "max_tokens": 6, "echo": True, **FIXED}
    whole = client.completions.create(**wanted)
    options = {"include_usage": True}
    chunks = list(client.completions.create(**wanted, stream=True, stream_options=options))
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == whole.choices[0].text
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


def test_an_unknown_model_is_not_found_and_the_right_one_named(client, model):
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="gpt-4", messages=HELLO)
    assert refused.value.code == "model_not_found"
    assert model in str(refused.value)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


def test_a_wrong_token_is_an_authentication_error(api, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAI(base_url=f"{api.url}/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            client.models.list()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 10**12}, "max_tokens"),
        ({"n": 17}, "n"),
    ],
)
def test_bad_fields_are_bad_requests_that_name_the_field(client, model, fields, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**{"model": model, "messages": HELLO, **fields})
    assert refused.value.param == param


def test_a_prompt_beyond_the_context_is_named_as_such(client, model):
    words = [{"role": "user", "content": "herring " * 20_000}]
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=model, messages=words)
    assert refused.value.code == "context_length_exceeded"


async def test_the_async_client_streams_too(api, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with openai.AsyncOpenAI(base_url=f"{api.url}/v1", api_key=api.token) as client:
        stream = await client.chat.completions.create(
            model="default", messages=HELLO, max_tokens=5, stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text


def test_an_abandoned_stream_leaves_the_api_working(client, model):
    stream = client.chat.completions.create(model=model, messages=HELLO, stream=True)
    next(iter(stream))
    stream.close()
    assert client.chat.completions.create(model=model, messages=HELLO, max_tokens=2).choices


def llm_command(api: Api, home: Path, *arguments: str) -> str:
    """What the `llm` command prints, with the API entered as one of its models."""
    (home / "extra-openai-models.yaml").write_text(
        f"- model_id: shoal\n  model_name: default\n  api_base: {api.url}/v1\n"
        "  api_key_name: shoal\n"
    )
    environment = {**os.environ, "LLM_USER_PATH": str(home), "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-m", "llm", "-m", "shoal", "--key", api.token, "-n", *arguments]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return run.stdout.strip()


def test_the_llm_command_answers_streaming_and_not(api, client, tmp_path):
    options = ["-o", "temperature", "0", "-o", "max_tokens", "8"]
    streamed = llm_command(api, tmp_path, "Hello, how are you today?", *options)
    whole = llm_command(api, tmp_path, "Hello, how are you today?", "--no-stream", *options)
    answer = client.chat.completions.create(
        model="default", messages=HELLO, max_tokens=8, temperature=0
    )
    assert streamed == whole == answer.choices[0].message.content.strip()
