"""Evaluation metrics against their definitions."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="evaluations open models")

from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError
from pairwright.filters.evaluation.report import evaluation_page
from pairwright.filters.evaluation.results import Metric, ModelResult, TaskResult, describe_counts
from pairwright.indexes.retrieval.queries import queries_from_classes
from pairwright.training.evaluation.conditional_retrieval import rank_correlations
from pairwright.training.evaluation.image_text import best_ranks, chance_recall, join_classes
from pairwright.training.evaluation.rationales import equal_texts, split_answer, word_f1


def unit(rows: Any) -> Any:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(seed=st.integers(0, 999), owners=st.lists(st.integers(0, 4), min_size=5, max_size=12))
def test_a_rank_is_the_place_of_the_first_match_in_the_sorted_list(seed: int, owners: list[int]) -> None:
    rng = np.random.default_rng(seed)
    owners = [*range(5), *owners]
    queries, searched = unit(rng.normal(size=(5, 6))), unit(rng.normal(size=(len(owners), 6)))
    found = best_ranks(queries, searched, np.arange(5), np.array(owners))
    for query in range(5):
        order = sorted(range(len(owners)), key=lambda text: -float(queries[query] @ searched[text]))
        assert found[query] == next(place for place, text in enumerate(order, 1) if owners[text] == query)


def test_rows_that_are_all_alike_find_nothing_at_rank_one() -> None:
    rows = np.ones((4, 1), dtype=np.float32)
    assert best_ranks(rows, rows, np.arange(4), np.arange(4)).tolist() == [4, 4, 4, 4]


def test_the_recall_of_guessing_is_the_share_of_all_choices_that_hold_a_match() -> None:
    for wanted, searched, k in ((1, 5, 2), (2, 5, 2), (3, 4, 2), (2, 6, 5)):
        choices = list(combinations(range(searched), k))
        literal = sum(min(choice) < wanted for choice in choices) / len(choices)
        assert chance_recall(np.array([wanted]), searched, k) == pytest.approx(literal)


def test_rank_correlation_is_spearmans_over_the_other_images() -> None:
    from scipy.stats import spearmanr  # takes a second

    rng = np.random.default_rng(3)
    rows, colours = unit(rng.normal(size=(9, 4))), rng.integers(0, 3, size=(9, 3)).astype(float)
    found = rank_correlations(rows, colours)
    for query in range(9):
        others = [place for place in range(9) if place != query]
        near = [-float(np.linalg.norm(colours[query] - colours[place])) for place in others]
        alike = [float((rows @ rows.T)[query, place]) for place in others]
        assert found[query] == pytest.approx(spearmanr(alike, near).statistic)


def test_colours_that_are_all_one_tell_nothing() -> None:
    rows = unit(np.random.default_rng(0).normal(size=(4, 3)))
    assert rank_correlations(rows, np.zeros((4, 3))).tolist() == [0, 0, 0, 0]
    with pytest.raises(InputError, match="three"):
        rank_correlations(rows[:2], np.zeros((2, 3)))


def test_a_mean_of_shares_has_an_interval_by_its_spread_that_stays_within_0_and_1() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.5])
    metric = Metric.mean("all", "mAP", values)
    half = 1.959963984540054 * values.std(ddof=1) / 2
    assert metric.low == pytest.approx(values.mean() - half)
    assert metric.high == 1.0


def test_labels_are_compared_but_for_capitals_and_spacing_and_rationales_word_by_word() -> None:
    assert equal_texts("Not  Entailment", "not entailment\n")
    assert not equal_texts("yes", "yes it is")
    assert word_f1("a b c d", "a b x") == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert word_f1("a a b", "a") == pytest.approx(2 * 1 * (1 / 3) / (1 + 1 / 3))
    assert (word_f1("", ""), word_f1("a", "")) == (1.0, 0.0)


def test_one_text_is_taken_apart_at_its_last_answer() -> None:
    assert split_answer("So the answer is B? No. So the answer is A.") == ("So the answer is B? No.", "A")
    assert split_answer("why so the answer is a .") == ("why", "a")
    assert split_answer("it goes on") == ("it goes on", "")


def test_labels_find_their_class_under_any_of_its_names() -> None:
    queries = queries_from_classes({"classes": ["dog", ["cat", "tabby"]], "templates": ["a {}", "the {}"]})
    given_ = join_classes(["1", "2"], ["tabby", "dog"], queries, "labels")
    assert given_.classes == ["cat", "dog"]
    assert given_.texts == {"dog": ["a dog", "the dog"], "cat": ["a cat", "the cat", "a tabby", "the tabby"]}
    with pytest.raises(InputError, match="'cow'"):
        join_classes(["1"], ["cow"], queries, "labels")


def test_what_all_models_lost_alike_is_told_once() -> None:
    one, two = (
        ModelResult(name, "clip", TaskResult((), {"rows are gone": 2, "texts cut": n}))
        for n, name in ((1, "a"), (3, "b"))
    )
    assert describe_counts([one, two]) == ["Rows are gone: 2.", "a: texts cut: 1.", "b: texts cut: 3."]


def test_the_page_names_models_and_figures_and_needs_nothing_else() -> None:
    metrics = Metric.share("swap<b>", "accuracy", 3, 4, 0.5), Metric("all", "r", 0.25, -0.5, 1.0, 3, percent=False)
    models = [ModelResult(f"m{n}", "clip", TaskResult(metrics)) for n in range(5)]
    page = evaluation_page("negatives", ["x.json"], models)
    assert "swap&lt;b&gt;" in page
    assert "swap<b>" not in page
    assert page.count("75.0%") >= 10  # in plot and table, for each model
    assert "http" not in page.replace("http-equiv", "")
