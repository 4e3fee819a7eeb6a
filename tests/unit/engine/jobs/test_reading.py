"""Whatever people save, rows come out of it, or a sentence that says what to do."""

from __future__ import annotations

import io
import json
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.http.openai_requests import chat_request
from engine.jobs.problems import InputUnusable
from engine.jobs.reading import InputReader, InputRow
from engine.jobs.requests import CHAT_URL, COMPLETIONS_URL, Recipe
from engine.jobs.templates import Template
from engine.jobs.text import MAX_LINE_CHARS, read_lines

ASK = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def rows(tmp_path: Path):
    def read(
        data: bytes | str,
        name: str = "input.jsonl",
        template: str | None = None,
        system: str | None = None,
        endpoint: str | None = None,
        **parameters: Any,
    ) -> list[InputRow]:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        parsed = None if template is None else Template.parse(template)
        recipe = Recipe(parsed, system, parameters, lambda _url, body: None, endpoint)
        with closing(InputReader.open(path, recipe, name=name)) as reader:
            return list(reader.rows())

    return read


def prompts(rows: list[InputRow]) -> list[str | None]:
    return [row.request and row.request.body["messages"][-1]["content"] for row in rows]


def problem(row: InputRow) -> str:
    assert row.request is None
    assert row.problem is not None
    assert row.problem.line == row.line
    return row.problem.message


def test_openais_lines_are_read_as_they_are_documented(rows):
    line = {"custom_id": "r-1", "method": "POST", "url": CHAT_URL, "body": ASK}
    (row,) = rows(json.dumps(line))
    assert (row.request.custom_id, row.request.url, row.request.body) == ("r-1", CHAT_URL, ASK)


@pytest.mark.parametrize(
    ("line", "url", "custom_id"),
    [
        ({"custom_id": "a", "body": ASK}, CHAT_URL, "a"),
        ({"custom_id": "a", **ASK}, CHAT_URL, "a"),
        (ASK, CHAT_URL, "line-1"),
        ({"prompt": "The herring"}, COMPLETIONS_URL, "line-1"),
        ("Hello", CHAT_URL, "line-1"),
    ],
)
def test_lines_may_leave_out_what_can_be_guessed(rows, line, url, custom_id):
    (row,) = rows(json.dumps(line))
    assert (row.request.url, row.request.custom_id) == (url, custom_id)


def test_a_template_is_filled_with_a_lines_fields(rows):
    (row,) = rows('{"title": "Shoals", "year": 1998}', template="{title} of {year} {{here}}")
    assert prompts([row]) == ["Shoals of 1998 {here}"]
    assert row.values == {"title": "Shoals", "year": "1998"}


def test_parameters_and_instructions_go_into_every_request_but_a_rows_own_come_first(rows):
    lines = [{**ASK, "temperature": 1}, ASK]
    first, second = rows("\n".join(map(json.dumps, lines)), system="Be brief.", temperature=0)
    assert (first.request.body["temperature"], second.request.body["temperature"]) == (1, 0)
    assert first.request.body["messages"][0] == {"role": "system", "content": "Be brief."}


def test_bad_lines_say_what_is_wrong_and_the_others_are_read(rows):
    data = [
        '{"custom_id": "a", "body": {"messages": []',
        json.dumps({"custom_id": "b", "body": ASK}),
        "[1, 2]",
        json.dumps({"custom_id": "b", "body": ASK}),
        json.dumps({"custom_id": "c"}),
        json.dumps({"custom_id": "d", "url": "/v1/embeddings", "body": ASK}),
        json.dumps({"custom_id": 7, "body": ASK}),
        "",
        json.dumps({"custom_id": "e", "body": ASK}),
    ]
    result = rows("\r\n".join(data))
    assert [row.line for row in result] == [1, 2, 3, 4, 5, 6, 7, 9]
    assert "not valid JSON" in problem(result[0])
    assert "must be a JSON object" in problem(result[2])
    assert problem(result[3]) == (
        "custom_id 'b' was used in line 2 already; give each row its own."
    )
    assert "has no request" in problem(result[4])
    assert "url must be" in problem(result[5])
    assert result[6].problem.column == "custom_id"
    assert [row.request.custom_id for row in (result[1], result[7])] == ["b", "e"]


def test_what_the_engine_refuses_is_known_before_anything_is_asked(tmp_path):
    path = tmp_path / "input.jsonl"
    path.write_text(json.dumps({**ASK, "temperature": "hot"}))
    recipe = Recipe(None, None, {}, lambda _url, body: chat_request(body))
    with closing(InputReader.open(path, recipe, name=path.name)) as reader:
        (row,) = reader.rows()
    assert problem(row) == "temperature must be a number, not a string."
    assert row.problem.column == "temperature"


def test_a_batch_is_for_one_endpoint(rows):
    good, bad = rows(
        "\n".join(json.dumps({"url": url, "body": ASK}) for url in (CHAT_URL, COMPLETIONS_URL)),
        endpoint=CHAT_URL,
    )
    assert good.request is not None
    assert "make two batches" in problem(bad)


CSV = "name;text\nAda;Hello\nBrünn;Größe, naïve\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "utf-32"]
)
def test_tables_are_read_in_every_usual_encoding(rows, encoding):
    result = rows(CSV.encode(encoding), "t.csv", template="{name}: {text}")
    assert prompts(result) == ["Ada: Hello", "Brünn: Größe, naïve"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends_are_found_out(rows, delimiter, ending):
    table = [["id", "prompt"], ["1", "One, two; three"], ["2", "Four\nfive"], ["3", 'Say "six"']]
    text = ending.join(
        delimiter.join('"' + value.replace('"', '""') + '"' for value in line) for line in table
    )
    assert prompts(rows(text, "t.csv")) == [line[1] for line in table[1:]]


def test_odd_quotes_cost_their_own_row_alone(rows):
    table = [
        "id,prompt",
        '1,a 5" nail',
        '2, "after a blank"',
        '3,"closed" too early',
        "4,fine",
        '5,"never closed',
        "6,fine again",
        "7,one,too many",
        "8,and the last",
    ]
    result = rows("\n".join(table), "t.csv")
    assert prompts(result) == [
        *('a 5" nail', "after a blank", None, "fine", None, "fine again", None, "and the last"),
    ]
    assert "double each quote" in problem(result[2])
    assert "never closed" in problem(result[4])
    assert "3 values, but the first line names 2 columns" in problem(result[6])


def test_backslashes_before_quotes_are_understood_too(rows):
    assert prompts(rows('id,prompt\n1,"say \\"six\\""\n', "t.csv")) == ['say "six"']


def test_each_line_of_a_text_is_a_prompt(rows):
    assert prompts(rows("One\n\nTwo\n", "t.txt")) == ["One", "Two"]
    assert prompts(rows("One\nTwo", "t.txt", template="Translate: {line}")) == [
        "Translate: One",
        "Translate: Two",
    ]


@pytest.mark.parametrize(
    ("data", "kind"), [(json.dumps(ASK), "jsonl"), ("prompt,x\na,b\n", "csv"), ("Hi\n", "txt")]
)
def test_a_file_without_a_telling_name_is_recognised(tmp_path, data, kind):
    path = tmp_path / "input"
    path.write_text(data)
    with closing(
        InputReader.open(path, Recipe(None, None, {}, lambda _u, _b: None), name="input")
    ) as reader:
        assert reader.format == kind


@pytest.mark.parametrize(
    ("data", "name", "template", "text"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 100, "a.jsonl", None, "not text"),
        (b"", "a.csv", None, "empty"),
        (b"a,a\n1,2\n", "a.csv", None, "'a' twice"),
        (b"title,body\n1,2\n", "a.csv", None, "give a template"),
        (b"title,body\n1,2\n", "a.csv", "{titel}", "write 'title' if you mean"),
        (b"title,body\n1,2\n", "a.csv", "{author}", "those that there are: 'title', 'body'"),
        (b"x\n", "a.txt", "{line", "single '{' at character 1"),
        (b"x\n", "a.txt", "a\nb } c", "single '}' at line 2, character 3"),
        (b"x\n", "a.txt", "{}", "empty placeholder"),
    ],
)
def test_an_unusable_input_is_one_sentence_that_says_what_to_do(rows, data, name, template, text):
    with pytest.raises(InputUnusable) as unusable:
        rows(data, name, template)
    assert text in str(unusable.value)


def test_a_row_that_lacks_a_value_names_it(rows):
    good, bad = rows('{"a": "1", "b": "2"}\n{"a": "3"}', template="{a}{b}")
    assert good.request is not None
    assert "no value for {b}" in problem(bad)
    assert bad.problem.column == "b"


def test_a_stray_byte_costs_its_own_line(rows):
    good = json.dumps(ASK).encode()
    result = rows(good + b'\n{"prompt": "caf\xe9"}\n' + good.replace(b"Hello", "\ufffd".encode()))
    assert "save it as UTF-8" in problem(result[1])
    assert result[2].request is not None


class Endless(io.RawIOBase):
    """A file of one long line and a short one, made while it is read."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, size: int = -1) -> bytes:
        if self._left > 0:
            self._left -= size
            return b"x" * size
        if self._left > -(1 << 40):
            self._left = -(1 << 40)
            return b"\nshort\n"
        return b""


def test_a_line_of_a_gigabyte_is_passed_over_without_being_held():
    tracemalloc.start()
    lines = list(read_lines(Endless(1 << 30), "utf-8"))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(line.number, line.text, line.is_too_long) for line in lines] == [
        (1, "", True),
        (2, "short", False),
    ]
    assert most_bytes < 8 * MAX_LINE_CHARS


def test_many_rows_take_no_more_memory_than_their_ids(tmp_path):
    path = tmp_path / "many.jsonl"
    padding = "y" * 1000
    with path.open("w") as file:
        for number in range(20_000):
            file.write(json.dumps({"custom_id": str(number), **ASK, "user": padding}) + "\n")
    tracemalloc.start()
    recipe = Recipe(None, None, {}, lambda _url, _body: None)
    with closing(InputReader.open(path, recipe, name=path.name)) as reader:
        assert sum(row.request is not None for row in reader.rows()) == 20_000
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 8 << 20
