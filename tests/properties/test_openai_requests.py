"""Whatever JSON comes, the answer is a request that every stage accepts, or one clear refusal."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import RequestError
from engine.http.fields import parse_object
from engine.http.model_limits import sampling_params
from engine.http.openai_requests import chat_request, completion_request
from engine.protocol.messages import SamplingMessage
from tests.support.api_backend import tiny_spec

NAMES = [
    *("model", "messages", "prompt", "stream", "stream_options", "n", "stop", "max_tokens"),
    *("max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty"),
    *("presence_penalty", "frequency_penalty", "logit_bias", "seed", "logprobs", "top_logprobs"),
    *(
        "echo",
        "best_of",
        "suffix",
        "tools",
        "tool_choice",
        "response_format",
        "modalities",
        "audio",
    ),
]
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("user")
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "7"]), inner)
    ),
    max_leaves=6,
)
valid = {
    "messages": [{"role": "user", "content": "Hello"}],
    "prompt": "Hello",
}


def refusal(read, body) -> tuple[object, str]:
    """What `read` makes of `body`, or why it refuses."""
    try:
        return read(body), ""
    except RequestError as refused:
        return None, str(refused)


def params_of(read, body):
    options = read(body).options
    params = sampling_params(
        options, tiny_spec(), prompt_tokens=5, default_max_tokens=9, random_seed=3
    )
    assert len(params) == options.n
    return params


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), values, max_size=4))
def test_any_body_is_either_understood_or_refused_with_a_sentence(fields):
    for read in (chat_request, completion_request):
        params, told = refusal(lambda body, read=read: params_of(read, body), valid | fields)
        assert (params is None) == told.endswith(".")
        assert "\n" not in told
        for param in params or ():
            assert SamplingMessage.of(param).value() == param


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_either_an_object_or_refused(body):
    read, told = refusal(parse_object, body)
    assert isinstance(read, dict) or told.endswith(".")
    assert "\n" not in told
