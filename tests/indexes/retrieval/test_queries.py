"""Queries from text, class lists, captions and vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pairwright.datasets.errors import InputError
from pairwright.datasets.records import Pair
from pairwright.indexes.retrieval.queries import (
    Query,
    queries_from_classes,
    queries_from_lines,
    queries_from_pairs,
    read_queries,
    read_query_vectors,
)


def test_a_line_of_text_is_a_query_and_its_own_concept(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("\ufeffa dog\n\n  two cats \n", encoding="utf-8")
    assert read_queries(tmp_path / "q.txt") == [
        Query("a dog", "a dog", "a dog"),
        Query("two cats", "two cats", "two cats"),
    ]


def test_the_name_of_a_line_omits_words_of_nearly_all_lines() -> None:
    """Words of nearly all lines are not part of the name; two lines are too few, and a name is never empty."""
    animals = ["cat", "dog", "cow", "hen", "owl", "pig", "rat", "fox", "elk", "emu"]
    lines = [f"A photo of a {animal}." for animal in animals]
    assert [query.name for query in queries_from_lines(lines)] == animals
    assert [query.name for query in queries_from_lines([*lines, "a bat"])][-2:] == ["emu", "bat"]
    assert [query.name for query in queries_from_lines(lines[:2])] == lines[:2]
    assert [query.name for query in queries_from_lines([*lines, "a photo of a"])][-1] == "a photo of a"
    assert (
        [query.concept for query in queries_from_lines(lines)]
        == [query.text for query in queries_from_lines(lines)]
        == lines
    )


def test_every_class_has_a_query_per_template() -> None:
    queries = queries_from_classes({"classes": ["dog", "cat"], "templates": ["a {}.", "the {} and the {}"]})
    assert [query.text for query in queries] == ["a dog.", "the dog and the dog", "a cat.", "the cat and the cat"]
    assert queries[1] == Query("the dog and the dog", "dog", "dog", "the {} and the {}")


def test_synonyms_expand_under_the_first_name() -> None:
    queries = queries_from_classes({"classes": [["tabby", "tabby cat", "tabby"]], "templates": ["a {}"]})
    assert queries == [Query("a tabby", "tabby", "tabby", "a {}"), Query("a tabby cat", "tabby", "tabby cat", "a {}")]


def test_duplicate_names_stay_apart() -> None:
    queries = queries_from_classes({"classes": ["missile", "missile", "missile#2"], "templates": ["a {}"]})
    assert [query.concept for query in queries] == ["missile", "missile#2", "missile#2#2"]
    assert [query.text for query in queries] == ["a missile", "a missile", "a missile#2"]


def test_concepts_of_several_sets_carry_the_name_of_the_set() -> None:
    one = {"classes": ["dog"], "templates": ["a {}"]}
    assert [query.concept for query in queries_from_classes({"pets": one})] == ["dog"]
    assert [query.concept for query in queries_from_classes({"pets": one, "toys": one})] == ["pets/dog", "toys/dog"]


def test_braces_in_names_and_templates_are_plain_text() -> None:
    assert queries_from_classes({"classes": ["{x} {}"], "templates": ["{} {0}"]})[0].text == "{x} {} {0}"


@given(
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=6),
    st.lists(st.text("xy ", max_size=3).map(lambda text: text + "{}"), min_size=1, max_size=3),
)
def test_there_are_as_many_concepts_as_classes(names: list[str], templates: list[str]) -> None:
    queries = queries_from_classes({"classes": names, "templates": templates})
    assert len(queries) == len(names) * len(templates)
    assert len({query.concept for query in queries}) == len(names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "not an object"),
        ({"pets": ["dog"]}, "pets: not an object"),
        ({"classes": ["dog"]}, "no list 'templates'"),
        ({"classes": "dog", "templates": ["a {}"]}, "no list 'classes'"),
        ({"classes": ["dog"], "templates": ["a dog"]}, "template 'a dog' has no {}"),
        ({"classes": ["dog", []], "templates": ["a {}"]}, "class 2"),
        ({"classes": ["dog", ["cat", 3]], "templates": ["a {}"]}, "class 2"),
        ({"classes": ["dog", " "], "templates": ["a {}"]}, "class 2"),
        ({"classes": [], "templates": ["a {}"]}, "no queries"),
        ({}, "no queries"),
    ],
)
def test_an_invalid_class_list_is_reported_with_its_location(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "classes.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_queries(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"classes":\n["dog",}')
    with pytest.raises(InputError, match=r"a\.json line 2: not JSON"):
        read_queries(tmp_path / "a.json")
    (tmp_path / "b.txt").write_bytes(b"a dog\n\xff\n")
    with pytest.raises(InputError, match="byte 7 is not UTF-8"):
        read_queries(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_text("\n\n")
    with pytest.raises(InputError, match="no queries"):
        read_queries(tmp_path / "c.txt")
    with pytest.raises(InputError, match="no such file"):
        read_queries(tmp_path / "d.txt")
    with pytest.raises(InputError, match="no such file"):
        read_queries(tmp_path / "e.csv")


def test_the_published_class_lists_expand_to_their_known_number(real_data: Path) -> None:
    queries = read_queries(real_data / "react_queries" / "queries.json")
    assert len(queries) == 84_525
    assert {"imagenet-1k/missile", "imagenet-1k/missile#2"} <= {query.concept for query in queries}


def test_every_caption_of_an_image_is_a_query_of_its_concept() -> None:
    one = Pair("0" * 32, "a dog", source_id="7", captions=("a puppy", "a dog"))
    other = Pair("1" * 32, "a cat", captions=("a kitten",))
    assert queries_from_pairs([[one], [other]]) == [
        Query("a dog", "7", "a dog"),
        Query("a puppy", "7", "a puppy"),
        Query("a cat", "a cat", "a cat"),
        Query("a kitten", "a cat", "a kitten"),
    ]
    assert [query.text for query in queries_from_pairs([[one, other]], every_caption=False)] == ["a dog", "a cat"]


def test_a_pair_a_caption_asks_each_caption_once() -> None:
    """Exploded inputs repeat the other captions with each."""
    both = [Pair("0" * 32, "a", "7", captions=("b",)), Pair("1" * 32, "b", "7", captions=("a",))]
    assert [query.text for query in queries_from_pairs([both])] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.jsonl", '{"id": "7", "caption": "a dog"}\n'),
        ("pairs.csv", "id,caption\n7,a dog\n"),
        ("list.json", '[{"id": "7", "caption": "a dog"}]'),
        (
            "coco.json",
            '{"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": [{"id": 1, "image_id": 7, "caption": "a dog"}]}',
        ),
    ],
)
def test_any_input_of_pairs_holds_queries(tmp_path: Path, name: str, content: str) -> None:
    """Images need not be there: only texts are asked with."""
    (tmp_path / name).write_text(content)
    assert read_queries(tmp_path / name) == [Query("a dog", "7", "a dog")]


@given(
    rows=arrays.arrays(np.float32, (5, 3), elements=st.floats(0.0625, 128, width=32)),
    dtype=st.sampled_from(["<f2", "<f4", "<f8", ">f4"]),
)
def test_vectors_of_queries_are_scaled_to_length_1(
    tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]], dtype: str
) -> None:
    path = tmp_path_factory.mktemp("vectors") / "q.npy"
    given_rows = rows.astype(dtype)
    np.save(path, given_rows)
    read = read_query_vectors(path, 5, 3)
    assert read.dtype == np.float32
    wide = given_rows.astype(np.float64)
    np.testing.assert_allclose(read, wide / np.linalg.norm(wide, axis=1, keepdims=True), atol=1e-6)


def test_query_vectors_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.npy"
    with pytest.raises(InputError, match="no such file"):
        read_query_vectors(path, 2, 3)
    np.save(path, np.ones((2, 3)))
    with pytest.raises(InputError, match=r"float64 \(2, 3\) instead of floats \(3, 3\)"):
        read_query_vectors(path, 3, 3)
    with pytest.raises(InputError, match=r"instead of floats \(2, 4\)"):
        read_query_vectors(path, 2, 4)
    np.save(path, np.ones((2, 3), np.int64))
    with pytest.raises(InputError, match="int64"):
        read_query_vectors(path, 2, 3)
    for wrong in (0.0, np.nan, np.inf):
        rows = np.ones((2, 3))
        rows[1] = wrong
        np.save(path, rows)
        with pytest.raises(InputError, match="row 1: zero or not finite"):
            read_query_vectors(path, 2, 3)
    path.write_bytes(b"no array")
    with pytest.raises(InputError, match=r"not an \.npy"):
        read_query_vectors(path, 2, 3)
