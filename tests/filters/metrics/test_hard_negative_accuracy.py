"""Accuracies from scores: strict signs, triples, intervals, files of any layout."""

import itertools
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, UsageError
from pairwright.filters.metrics.hard_negative_accuracy import evaluate_scores
from pairwright.filters.metrics.score_files import NO_TYPE, SCHEMA, read_scores

SCORE = st.sampled_from([0.0, 0.1, 0.2, 0.3])
ROW = st.tuples(st.sampled_from(["a", "b"]), SCORE, SCORE, st.none() | SCORE)


@given(st.lists(ROW, min_size=1))
def test_accuracies_equal_a_plain_count(rows: list[tuple[str, float, float, float | None]]) -> None:
    found = evaluate_scores(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    triples = [(c, n, p) for _, c, n, p in rows if p is not None]
    every = found.together
    assert every.accuracy
    assert every.accuracy.value == pytest.approx(sum(c > n for _, c, n, _ in rows) / len(rows))
    assert every.ties == sum(c == n for _, c, n, _ in rows)
    assert every.triples == len(triples)
    if triples:
        assert every.original
        assert every.augmented
        assert every.brittleness
        assert every.original.value == pytest.approx(sum(c > n for c, n, _ in triples) / len(triples))
        assert every.augmented.value == pytest.approx(sum(c > n and p > n for c, n, p in triples) / len(triples))
        between = sum(c > n > p or p > n > c for c, n, p in triples)
        assert every.brittleness.value == pytest.approx(between / len(triples))
    assert sum(one.rows for one in found.by_type.values()) == every.rows


def test_chance_level_is_a_third_for_triples_and_a_half_for_pairs() -> None:
    orders = [("x", *map(float, order)) for order in itertools.permutations(range(3))]
    every = evaluate_scores(pl.DataFrame(orders, schema=SCHEMA, orient="row")).together
    assert every.accuracy
    assert every.augmented
    assert every.brittleness
    shares = every.accuracy.value, every.augmented.value, every.brittleness.value
    assert shares == pytest.approx((1 / 2, 1 / 3, 1 / 3))


def test_one_score_for_all_texts_is_never_right() -> None:
    every = evaluate_scores(pl.DataFrame([("x", 0.5, 0.5, 0.5)] * 3, schema=SCHEMA, orient="row")).together
    assert every.accuracy
    assert every.augmented
    assert (every.accuracy.value, every.augmented.value, every.ties) == (0.0, 0.0, 3)


def test_types_weigh_the_same_in_the_mean_and_rows_in_the_micro_average() -> None:
    rows = [("a", 1.0, 0.0, None), ("b", 0.0, 1.0, None), ("b", 0.0, 1.0, None), ("b", 1.0, 0.0, None)]
    result = evaluate_scores(pl.DataFrame(rows, schema=SCHEMA, orient="row")).as_json()
    accuracy = result["accuracy"]
    assert isinstance(accuracy, dict)
    assert accuracy == pytest.approx({"a": 1.0, "b": 1 / 3, "micro": 1 / 2, "macro": 2 / 3})
    assert result["augmented_accuracy"] is None


def test_rows_without_a_usable_score_are_counted_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    rows = [{"s_caption": 1, "s_negative": 0.5}, {"s_caption": float("nan"), "s_negative": 0.1}, {"s_caption": 0.2}]
    rows += [{"s_caption": 0.2, "s_negative": "much"}, {"s_caption": "0.4", "s_negative": 0.2, "edit": [1]}]  # type: ignore[dict-item]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = evaluate_scores(read_scores(path))
    assert (found.together.rows, found.unscored) == (2, 3)
    assert list(found.by_type) == [NO_TYPE]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_every_layout_gives_the_same_scores(ending: str, tmp_path: Path) -> None:
    rows = {"form": ["swap", "replace"], "target": ["object", ""], "pos": [0.5, 0.25], "s_negative": [0.125, None]}
    frame, path = pl.DataFrame(rows), tmp_path / f"s.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="," if ending == "csv" else "\t")
    read = read_scores(path, {"s_caption": "pos"})
    assert read.rows() == [("swap-object", 0.5, 0.125, None), ("replace", 0.25, None, None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no rows"), ('{"s_caption": 1}\n', "s_negative"), ("[1]\n", "not a JSON object"), ("{\n", ":1: invalid")],
)
def test_an_invalid_file_is_an_error_that_says_why(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_scores(path)


def test_a_mapping_to_a_missing_column_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"s_caption": 1, "s_negative": 0}\n')
    with pytest.raises(UsageError, match="caption"):
        read_scores(path, {"caption": "s_caption"})
    with pytest.raises(InputError, match="no column x"):
        read_scores(path, {"s_caption": "x"})
