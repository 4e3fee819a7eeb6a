from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.markdown_parts import Part, parts


def test_code_is_cut_out_of_the_text_with_its_language():
    assert parts("Look:\n```python\nx = 1\n```\nDone.") == (
        Part(False, "Look:\n"),
        Part(True, "x = 1\n", "python"),
        Part(False, "Done.", is_closed=False),
    )


def test_unfinished_code_is_code_already():
    assert parts("```c++\nint x;")[0] == Part(True, "int x;", "c++", is_closed=False)


def test_code_in_a_list_loses_its_indentation():
    assert parts("1. First\n   ```sh\n   ls\n     -l\n   ```\n2. Then")[1].text == "ls\n  -l\n"


def test_longer_fence_holds_shorter_ones():
    assert parts("````md\n```\nx\n```\n````")[0].text == "```\nx\n```\n"


def test_inline_code_with_three_backticks_is_no_fence():
    assert parts("```not a fence``` of code") == (
        Part(False, "```not a fence``` of code", is_closed=False),
    )


@given(st.lists(st.sampled_from(["a", "b\n", "```", "\n", "~~~\n", "  ", "```py\n"]), max_size=30))
def test_parts_of_a_growing_answer_stay_what_they_were_but_for_the_last(pieces):
    source = ""
    before: tuple[Part, ...] = ()
    for piece in pieces:
        source += piece
        now = parts(source)
        settled = [part for part in before[:-1] if part.is_code and part.is_closed]
        assert [part for part in now if part.is_code and part.is_closed][: len(settled)] == settled
        before = now
