import asyncio
from contextlib import aclosing

import pytest

from engine.core.errors import NoRoute, WorkerFailed
from engine.core.generation import FinishReason, TokenEvent
from engine.core.sampling_params import SamplingParams
from engine.http.answers import Answer, generate_answers
from tests.support.api_backend import ScriptedBackend
from tests.support.tiny_models import EOS_TOKEN_ID


def drive(answer: Answer, backend: ScriptedBackend, *, logprobs: int | None = None):
    """All pieces of the backend's script for one answer."""
    pieces = []
    for event in backend.script(SamplingParams(max_new_tokens=500, logprobs=logprobs)):
        pieces.append(answer.push(event))
        if pieces[-1].finish is not None:
            break
    return pieces


async def collect(backend, tokenizer, *, stops=(), n=1):
    params = [SamplingParams(choice=choice, max_new_tokens=500) for choice in range(n)]
    texts = [""] * n
    finishes = {}
    async with aclosing(generate_answers(backend, tokenizer, [(5,)] * n, params, stops)) as pieces:
        async for piece in pieces:
            texts[piece.index] += piece.text
            if piece.finish:
                finishes[piece.index] = piece.finish
    return texts, finishes


def test_characters_of_several_tokens_come_out_whole(tokenizer):
    text = "Fish 🐟 and 日本語"
    pieces = drive(Answer(0, tokenizer, ()), ScriptedBackend(tokenizer, answer=text))
    assert "".join(piece.text for piece in pieces) == text
    assert not any("�" in piece.text for piece in pieces)


def test_a_stop_string_spread_over_tokens_is_never_shown_in_part(tokenizer):
    backend = ScriptedBackend(tokenizer, answer="one two STOP three")
    pieces = drive(Answer(0, tokenizer, ["STOP"]), backend)
    assert "".join(piece.text for piece in pieces) == "one two "
    assert pieces[-1].finish is FinishReason.STOP


def test_text_held_back_for_a_stop_string_is_shown_when_the_answer_ends_without_it(tokenizer):
    backend = ScriptedBackend(tokenizer, answer="the end STO")
    pieces = drive(Answer(0, tokenizer, ["STOP"]), backend)
    assert "".join(piece.text for piece in pieces) == "the end STO"


def test_logprobs_cover_exactly_the_shown_text(tokenizer):
    backend = ScriptedBackend(tokenizer, answer="one 🐟 two STOP three")
    pieces = drive(Answer(0, tokenizer, ["STOP"]), backend, logprobs=2)
    tokens = [token for piece in pieces for token in piece.tokens]
    assert b"".join(token.data for token in tokens).decode() == "one 🐟 two "
    offsets = [token.text_offset for token in tokens]
    assert offsets[0] == 0
    assert offsets == sorted(offsets)
    assert all(len(token.top_data) == 2 for token in tokens)


def test_the_stop_token_has_no_text_and_no_logprobs(tokenizer):
    piece = Answer(0, tokenizer, ()).push(TokenEvent(EOS_TOKEN_ID, finish=FinishReason.STOP))
    assert piece.text == ""
    assert piece.tokens == ()
    assert piece.finish is FinishReason.STOP


async def test_a_stop_string_ends_the_session_at_once(tokenizer):
    backend = ScriptedBackend(tokenizer, answer="one two STOP" + " and on" * 50)
    assert await collect(backend, tokenizer, stops=["STOP"]) == (
        ["one two "],
        {0: FinishReason.STOP},
    )
    assert backend.running == 0
    assert backend.tokens_made < 20


async def test_each_choice_stops_on_its_own(tokenizer):
    backend = ScriptedBackend(tokenizer, answer="one 1: two")
    texts, finishes = await collect(backend, tokenizer, stops=["1: t", "9"], n=3)
    # Choice 1 begins with "1: ", so it is not cut there but at "1: t" like the others.
    assert texts == ["one ", "1: one ", "2: one "]
    assert set(finishes.values()) == {FinishReason.STOP}
    assert backend.running == 0


async def test_without_stop_strings_all_choices_are_one_batch(tokenizer):
    backend = ScriptedBackend(tokenizer)
    texts, _ = await collect(backend, tokenizer, n=2)
    assert texts == [backend.answer, "1: " + backend.answer]


@pytest.mark.parametrize("stops", [(), ("never seen",)])
async def test_closing_frees_every_session(tokenizer, stops):
    backend = ScriptedBackend(tokenizer, hang_after=3)
    params = [SamplingParams(choice=choice) for choice in range(3)]
    pieces = generate_answers(backend, tokenizer, [(5,)] * 3, params, stops)
    await anext(pieces)
    assert backend.running == 3
    await pieces.aclose()
    assert backend.running == 0


@pytest.mark.parametrize("stops", [(), ("never seen",)])
async def test_cancelling_the_reader_frees_every_session(tokenizer, stops):
    backend = ScriptedBackend(tokenizer, hang_after=0)
    reader = asyncio.create_task(collect(backend, tokenizer, stops=stops, n=2))
    await backend.hanging.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert backend.running == 0


@pytest.mark.parametrize("stops", [(), ("never seen",)])
async def test_an_error_of_the_engine_reaches_the_reader(tokenizer, stops):
    backend = ScriptedBackend(tokenizer, fail_after=2, error=NoRoute("No stage holds block 3."))
    with pytest.raises(NoRoute):
        await collect(backend, tokenizer, stops=stops, n=2)
    assert backend.running == 0


async def test_an_engine_that_ends_too_early_is_an_error(tokenizer):
    class Quitter(ScriptedBackend):
        def script(self, params):
            return super().script(params)[:2]

    with pytest.raises(WorkerFailed, match="before the answer was complete"):
        await collect(Quitter(tokenizer), tokenizer)
