"""JSON in any of the disguises that models give it, and texts that hold none."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairwright.generators.llm.output.json_parsing import (
    MAX_LENGTH,
    MAX_VALUES,
    FoundValues,
    find_json_values,
    iter_strings,
    strip_control_tokens,
    strip_thinking,
)
from tests.example_counts import examples

# What JSON can carry: no half characters. Numbers as orjson and json write them alike.
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=30) | st.sampled_from(
    [
        'say "hi", ok',
        "it's",
        "a // b",
        "/* c */",
        "# d",
        "{x}",
        "[y]",
        "```",
        "\\",
        "a,\n}",
        "True",
        "“q”",
        "NaN",
        "'",
        "User: ",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9, width=32) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
TREES = st.dictionaries(TEXTS, VALUES, max_size=4) | st.lists(VALUES, max_size=4)


def trailing_commas(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + "".join(f"{json.dumps(name)}: {trailing_commas(inner)}, " for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + "".join(f"{trailing_commas(inner)},\n" for inner in value) + "]"
    return json.dumps(value)


def commented(value: Any) -> str:
    return json.dumps(value, indent=1).replace("\n", " // a, {b}: 'c'\n/* d\n */ # e\n")


def curly(value: Any) -> str:
    """Write with curly quotes around every string; quotes of the string's own are written by number."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{curly(name)}: {curly(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(curly, value)) + "]"
    if isinstance(value, str):
        body = "".join(f"\\u{ord(each):04x}" if each in '"“”„\\' else each for each in value)
        return f"“{body}”"
    return json.dumps(value)


def raw_breaks(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\\\\", "\\u005c").replace("\\n", "\n").replace("\\t", "\t")


DISGUISES: dict[str, Callable[[Any], str]] = {
    "plain": json.dumps,
    "indented": lambda value: json.dumps(value, indent=4, ensure_ascii=False),
    "fenced": lambda value: f"```json\n{json.dumps(value)}\n```",
    "in prose": lambda value: (
        f"Sure! Here it is, as asked (1 answer):\n\n{json.dumps(value)}\n\nLet me know if it fits."
    ),
    "trailing commas": trailing_commas,
    "commented": commented,
    "curly quotes": curly,
    "raw line breaks": raw_breaks,
}


@pytest.mark.parametrize("disguise", DISGUISES)
@given(value=TREES)
@settings(max_examples=examples(60))
@example(value={"a": ['say "hi", ok', "it's", "User: x"], "b": {"c": [[], {}]}})
def test_a_value_in_any_disguise_comes_back_equal(disguise: str, value: Any) -> None:
    found = find_json_values(DISGUISES[disguise](value))
    assert [each.value for each in found.values] == [value]
    assert found.broken_off == -1


PLAIN = st.text("abcdefg ,.-'()é", max_size=20)
PYTHONIC = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | PLAIN.filter(lambda text: "'," not in text),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(PLAIN.filter(lambda t: "'" not in t), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text("abc", max_size=3), PYTHONIC, max_size=4))
@settings(max_examples=examples(80))
def test_pythons_way_of_writing_it_comes_back_equal(value: Any) -> None:
    assert [each.value for each in find_json_values(repr(value)).values] == [value]


@given(value=TREES, data=st.data())
@settings(max_examples=examples(80))
def test_a_value_that_breaks_off_is_never_completed(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    found = find_json_values(text[: data.draw(st.integers(1, len(text) - 1))])
    assert found.values == ()
    assert found.broken_off == 0


@pytest.mark.parametrize("text", ["[6.1e-", '{"a": 5e+', "[-", "[1.", "[2E", '["", 6.103515625e-'])
def test_a_number_may_break_off_anywhere(text: str) -> None:
    assert find_json_values(text) == FoundValues((), broken_off=0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "a "red" dog"}', {"a": 'a "red" dog'}),
        ('{"a": "A sign says "STOP""}', {"a": 'A sign says "STOP"'}),
        ('{"a": "say "hi", ok", "b": 1}', {"a": 'say "hi", ok', "b": 1}),
        ("{'a': 'the dog's ball'}", {"a": "the dog's ball"}),
        ("{a: 'b', c_1: True, d: None, e: undefined}", {"a": "b", "c_1": True, "d": None, "e": None}),
        ('{"a": NaN, "b": -Infinity}', {"a": None, "b": None}),
        ('{"a": "it\\\'s \\d \\x41"}', {"a": "it's \\d A"}),
        ("{1: 2}", {"1": 2}),
        ("The set {a, b} is: [1]", [1]),
    ],
)
def test_near_json_is_read_as_it_can_only_be_meant(text: str, value: Any) -> None:
    [found] = find_json_values(text).values
    assert found.value == value


@pytest.mark.parametrize(
    "text",
    [
        '["a" "b"]',
        '{"a": "b" "c": "d"}',
        '{"old": {"a": 1} "new": {"a": 2}}',
        '[{"a": 1} {"a": 2}]',
        '{"a" 1}',
        "[1,,2]",
        "{,}",
        "[1 2]",
        "{]",
        "[}",
        '{"a": word}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": __import__("os")}',
        "I'm sorry, I can't [do] that",
        "",
        "}{",
    ],
)
def test_what_could_be_meant_in_several_ways_is_no_value(text: str) -> None:
    assert not [each for each in find_json_values(text).values if each.value not in ([], {})]


def test_of_several_values_all_are_given_in_their_order_with_their_places() -> None:
    text = 'first {"a": 1} then [2] {"b":'
    found = find_json_values(text)
    assert [each.value for each in found.values] == [{"a": 1}, [2]]
    assert [text[each.start : each.end] for each in found.values] == ['{"a": 1}', "[2]"]
    assert found.broken_off == text.rindex("{")
    assert len(find_json_values("[] " * 200).values) == MAX_VALUES


@pytest.mark.parametrize(
    "text", ['{"a": tru', '{"a": 12', '{"a', '{"a": "b\\', "[1, // c", "[1, /* c", "{'a': 'it", "[", "[1"]
)
def test_a_text_that_ends_within_a_token_breaks_off(text: str) -> None:
    assert find_json_values(text).broken_off == 0


SIZE = 400_000
HOSTILE = {
    "brackets": "[" * SIZE,
    "objects": '{"a":' * (SIZE // 5),
    "quotes": '"' * SIZE,
    "a quote and quotes": '{"a": "b"' + '"' * SIZE,
    "comments": "/*[" * (SIZE // 3),
    "hashes": "#\n[" * (SIZE // 3),
    "words": "[a " * (SIZE // 3),
    "missing commas": "[1 [1 " * (SIZE // 6),
    "single quotes": "{'a':'" + "' " * (SIZE // 2),
    "quotes and blanks": "['a" + "'          " * (SIZE // 11),
    "inner quotes": '{"a":"' + ' "a' * (SIZE // 3),
    "deep and long": ("[" * 60 + '"' + "a" * 10_000 + '"x') * (SIZE // 10_000),
    "backslashes": '{"a":"' + "\\" * SIZE,
    "digits": "[" + "1" * SIZE,
    "blanks": "{" + " " * SIZE,
    "line breaks": "{" + "\n" * SIZE + "x",
    "thoughts": "<think>" * (SIZE // 7),
    "end marks": "<|x|>" * (SIZE // 5),
    "end marks and blanks": "<|x|>   " * (SIZE // 8) + " " * SIZE,
    "all openings": "{[\"'“" * (SIZE // 5),
    "controls": "\x00[" * (SIZE // 2),
    "empty values": "[]" * (SIZE // 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long(name: str) -> None:
    began = time.process_time()
    text, _ = strip_thinking(HOSTILE[name])
    text, _ = strip_control_tokens(text)
    find_json_values(text)
    assert time.process_time() - began < 2


@given(st.text(max_size=300) | st.text("[]{}:,\"'“”/*#\\ \n1a-", max_size=200))
@settings(max_examples=examples(300))
def test_no_text_raises_and_what_is_found_stands_in_it(text: str) -> None:
    end = 0
    for found in find_json_values(strip_control_tokens(strip_thinking(text)[0])[0]).values:
        assert found.start >= end
        end = found.end
        assert isinstance(found.value, dict | list)


def test_what_is_longer_than_the_longest_is_not_read() -> None:
    assert find_json_values(" " * MAX_LENGTH + "[1]").values == ()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a {b}</think>\nyes", "\nyes"),
        ("\n<Thinking>a</Thinking>yes", "yes"),
        ("so I say</think>yes", "yes"),
        ("<think>never ends", ""),
    ],
)
def test_thinking_before_an_answer_is_set_aside(text: str, rest: str) -> None:
    assert strip_thinking(text) == (rest, True)


def test_a_text_without_thoughts_or_controls_stays_as_it_is() -> None:
    assert strip_thinking("I think <b>") == ("I think <b>", False)
    assert strip_control_tokens("a\tb\nc é\n") == ("a\tb\nc é\n", False)


@pytest.mark.parametrize(
    "text", ["\ufeffyes", "y\x00es", "yes<|im_end|>", "yes</s>\n", "yes<end_of_turn><eos>", "y\u200bes"]
)
def test_marks_that_nobody_sees_are_taken_out(text: str) -> None:
    assert strip_control_tokens(text) == ("yes", True)


def test_all_strings_of_a_value_are_found_in_order() -> None:
    assert list(iter_strings({"a": ["b", {"c": "d"}], "e": 1, "f": "g"})) == ["b", "d", "g"]
