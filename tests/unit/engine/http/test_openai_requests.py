import json
import math
from dataclasses import replace

import pytest

from engine.core.errors import ContextTooLong, ModelNotFound, RequestError
from engine.core.generation import DraftMode, Speculation, SpeculationWish
from engine.http.fields import parse_object
from engine.http.model_limits import check_model, check_prompt, sampling_params
from engine.http.openai_prompts import ChatMessage
from engine.http.openai_requests import chat_request, completion_request
from tests.support.api_backend import CONTEXT_TOKENS, tiny_spec
from tests.support.tiny_models import EOS_TOKEN_ID, VOCAB_SIZE

HELLO = [{"role": "user", "content": "Hello"}]
IMAGE_PART = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TEXT_PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def chat(**fields: object):
    return chat_request({"model": "default", "messages": HELLO, **fields})


def completion(**fields: object):
    return completion_request({"model": "default", "prompt": "Hello", **fields})


def params(request, prompt_tokens: int = 10):
    return sampling_params(
        request.options,
        tiny_spec(),
        prompt_tokens=prompt_tokens,
        default_max_tokens=16,
        random_seed=77,
    )


def test_a_bare_request_gets_the_defaults_of_openai():
    (only,) = params(chat())
    assert only.temperature == 1.0
    assert only.top_p == 1.0
    assert only.top_k == 0
    assert only.seed == 77
    assert only.choice == 0
    assert only.logprobs is None
    assert only.max_new_tokens == 16
    assert only.stop_token_ids == (EOS_TOKEN_ID,)


def test_null_means_absent():
    names = ["temperature", "top_p", "n", "stop", "max_tokens", "seed", "logit_bias", "stream"]
    names += ["stream_options", "response_format", "tools", "user", "logprobs", "top_logprobs"]
    assert chat(**dict.fromkeys(names)) == chat()


def test_every_sampling_field_arrives():
    (first, second) = params(
        chat(
            n=2,
            temperature=0.5,
            top_p=0.9,
            top_k=40,
            min_p=0.05,
            repetition_penalty=1.1,
            presence_penalty=-1,
            frequency_penalty=2,
            logit_bias={"7": -100, "3": 1.5},
            seed=-1,
            logprobs=True,
            top_logprobs=3,
            max_completion_tokens=5,
        )
    )
    assert (first.temperature, first.top_p, first.top_k, first.min_p) == (0.5, 0.9, 40, 0.05)
    assert first.repetition_penalty == 1.1
    assert (first.presence_penalty, first.frequency_penalty) == (-1.0, 2.0)
    assert first.logit_bias == ((3, 1.5), (7, -100.0))
    assert first.seed == 2**64 - 1
    assert first.logprobs == 3
    assert first.max_new_tokens == 5
    assert second == replace(first, choice=1)


def test_temperature_zero_is_greedy_and_so_is_one_too_small_to_divide_by():
    assert params(chat(temperature=0))[0].temperature == 0.0
    assert params(chat(temperature=1e-300))[0].temperature == 0.0


def test_top_p_zero_keeps_the_most_likely_token():
    assert 0 < params(chat(top_p=0))[0].top_p < 1e-3


def test_content_may_come_in_text_parts_and_developer_means_system():
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": TEXT_PARTS, "name": "Ann"},
    ]
    wanted = chat_request({"messages": messages})
    assert wanted.messages == (ChatMessage("system", "Be brief."), ChatMessage("user", "ab"))


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
    ],
)
def test_all_four_shapes_of_prompts_are_taken(prompt, prompts):
    assert completion(prompt=prompt).prompts == prompts


def test_stop_may_be_one_string_or_several():
    assert chat(stop="\n").options.stop == ("\n",)
    assert chat(stop=["a", "b"]).options.stop == ("a", "b")
    assert chat(stop=[]).options.stop == ()


@pytest.mark.parametrize("scale", [1, -1])
@pytest.mark.parametrize(
    "name",
    [
        "temperature",
        "top_p",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
    ],
)
def test_nan_infinite_and_huge_numbers_are_refused_by_name(name, scale):
    for value in (math.nan, math.inf * scale, 1e9 * scale, 10**400 * scale):
        with pytest.raises(RequestError, match=name) as refused:
            chat(**{name: value})
        assert refused.value.param == name
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"n": "2"}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": 5}, "stop"),
        ({"seed": 2**63}, "seed"),
        ({"seed": 1.0}, "seed"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"٣": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias[5]"),
        ({"logit_bias": {"5": math.nan}}, "logit_bias[5]"),
        ({"logit_bias": []}, "logit_bias"),
        ({"logprobs": 3}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"functions": [{}]}, "functions"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"audio": {}}, "audio"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"model": 5}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": ["Hello"]}, "messages[0]"),
        ({"messages": [*HELLO, {"role": "king", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [IMAGE_PART]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]}, "messages[0]"),
    ],
)
def test_a_wrong_chat_field_is_refused_by_name(fields, param):
    with pytest.raises(RequestError) as refused:
        chat(**fields)
    assert refused.value.param == param
    assert param.partition("[")[0].partition(".")[0] in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [1, -1]}, "prompt"),
        ({"prompt": [1, 2**40]}, "prompt"),
        ({"prompt": [[1], [True]]}, "prompt[1]"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": ["a"] * 100, "n": 16}, "prompt"),
        ({"best_of": 3}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"echo": True, "logprobs": 0}, "echo"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
    ],
)
def test_a_wrong_completion_field_is_refused_by_name(fields, param):
    with pytest.raises(RequestError) as refused:
        completion(**fields)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "line 1 column 1"),
        (b'{"a": 1,\n "b" 2}', "line 2 column 6"),
        (b"[1]", "a JSON object, not a list"),
        (b"\xff{}", "byte 0"),
        (b'{"a": ' + b"1" * 5000 + b"}", "too long"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_body_is_refused_with_the_place_where_it_breaks(body, says):
    with pytest.raises(RequestError, match=says):
        parse_object(body)


def test_the_models_names_are_accepted_and_others_answered_with_what_is_available():
    spec = tiny_spec()
    for name in (None, "default", "test/tiny", "test/tiny@0123456789ab"):
        check_model(name, spec)
    with pytest.raises(ModelNotFound, match=r"'gpt-4' is not served.*test/tiny@0123456789ab"):
        check_model("gpt-4", spec)


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers():
    with pytest.raises(ContextTooLong, match=rf"{CONTEXT_TOKENS + 9} tokens.*{CONTEXT_TOKENS}"):
        check_prompt([1] * (CONTEXT_TOKENS + 9), tiny_spec(), param="messages")
    check_prompt([1] * (CONTEXT_TOKENS - 1), tiny_spec(), param="messages")


def test_prompt_and_answer_together_must_fit_the_context():
    assert params(chat(max_tokens=CONTEXT_TOKENS - 10))[0].max_new_tokens == CONTEXT_TOKENS - 10
    with pytest.raises(ContextTooLong, match=rf"10 tokens.*{CONTEXT_TOKENS - 9} more"):
        params(chat(max_tokens=CONTEXT_TOKENS - 9))


def test_an_answer_of_unsaid_length_ends_with_the_context():
    assert params(chat(), prompt_tokens=CONTEXT_TOKENS - 3)[0].max_new_tokens == 3


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(RequestError, match=f"{VOCAB_SIZE}.*ends at {VOCAB_SIZE - 1}"):
        check_prompt([VOCAB_SIZE], tiny_spec(), param="prompt")
    with pytest.raises(RequestError, match="logit_bias"):
        params(chat(logit_bias={str(VOCAB_SIZE): 1}))


def test_unknown_fields_are_ignored():
    assert chat(user="Ann", store=True, metadata={"a": "b"}, parallel_tool_calls=True) == chat()


def test_the_body_of_a_real_request_survives_the_round_trip():
    body = parse_object(json.dumps({"messages": HELLO, "temperature": 0.25}).encode())
    assert chat_request(body).options.temperature == 0.25


def test_rounding_is_allowed_by_name_alone():
    assert chat().options.lossy is None
    for value in ("", "rows8", "blocks8"):
        assert chat(lossy=value).options.lossy == value
        assert completion(lossy=value).options.lossy == value


@pytest.mark.parametrize("value", ["rows4", 8, True, ["rows8"]])
def test_unknown_rounding_is_refused(value):
    with pytest.raises(RequestError) as caught:
        chat(lossy=value)
    assert caught.value.param == "lossy"


def test_a_draft_is_asked_for_by_name():
    assert chat().options.speculation is None
    assert chat(draft="off").options.speculation == SpeculationWish("off")
    asked = completion(draft="ngram", draft_tokens=7).options.speculation
    assert asked == SpeculationWish("ngram", 7)
    asked = chat(draft="auto", pipelined="off").options.speculation
    assert asked == SpeculationWish("auto", pipelined="off")
    assert chat(draft_mode="auto").options.speculation == SpeculationWish(mode="auto")
    asked = chat(draft="model", draft_mode="dssd").options.speculation
    assert asked == SpeculationWish("model", mode=DraftMode.DSSD)


def test_what_a_request_leaves_open_of_its_draft_is_as_the_settings_say():
    kind = chat(draft="ngram").options.speculation
    assert kind.completed("auto", 6) == Speculation("ngram", 6)
    tokens = completion(draft_tokens=7).options.speculation
    assert tokens.completed("ngram", 6) == Speculation("ngram", 7)
    flow = chat(pipelined="on").options.speculation
    assert flow.completed("ngram", 6) == Speculation("ngram", 6, pipelined="on")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"draft": "oracle"}, "draft"),
        ({"draft": True}, "draft"),
        ({"draft": "auto", "pipelined": "maybe"}, "pipelined"),
        ({"draft": "model", "draft_mode": "shared"}, "draft_mode"),
        ({"draft": "model", "draft_mode": 1}, "draft_mode"),
        ({"draft_mode": "dsd"}, "draft_mode"),
        ({"draft": "ngram", "draft_tokens": 0}, "draft_tokens"),
        ({"draft": "ngram", "draft_tokens": 65}, "draft_tokens"),
    ],
)
def test_unknown_drafts_are_refused(fields, param):
    with pytest.raises(RequestError) as caught:
        chat(**fields)
    assert caught.value.param == param
