"""The benchmark of the papers' claims: its worlds, its statistics and table, and short runs."""

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("torch", reason="the benchmark trains models")

from benchmarks.claims import composition, positions, rationales, scripted_model, synonyms
from benchmarks.claims.__main__ import PAGE, RESULTS
from benchmarks.claims.pictures import COLOURS, SHAPES, Kind, draw
from benchmarks.claims.registry import CLAIMS
from benchmarks.claims.results import Claim, Comparison, Row, paired_difference, read_rows, rows_of, table
from benchmarks.claims.trials import Trials


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("claims"), 1, effort=0.1)


def test_every_kind_is_drawn_differently() -> None:
    kinds = [Kind(colour, shape) for colour in COLOURS for shape in SHAPES]
    assert len(kinds) == 120
    assert len({draw([kind], Random(1), pixels=32) for kind in kinds}) == 120


def test_negatives_of_the_slice_are_false_and_swaps_have_the_words_of_the_caption() -> None:
    for sample in composition.slice_samples(3, "finetuning", 60):
        caption = _kinds(sample.pair.caption)
        assert [f"{row.form}-{row.target}" for row in sample.annotations] == list(composition.KINDS)
        for row in sample.annotations:
            assert _kinds(row.text) != caption
            same_words = sorted(row.text.replace("an ", "a ").split()) == sorted(
                sample.pair.caption.replace("an ", "a ").split()
            )
            assert same_words == (row.form == "swap")


def test_finetuning_uses_the_second_word_of_a_colour_in_edits_only() -> None:
    second = set(synonyms.WORDS.values())
    for sample in synonyms.pictures("finetuning", 3, 60, both_words=False):
        assert not second & set(sample.pair.caption.split())
        first = {word: colour for colour, word in synonyms.WORDS.items()}
        for row in sample.annotations:
            (word,) = second & set(row.text.split())
            true = _kinds(row.text.replace(word, first[word])) == _kinds(sample.pair.caption)
            assert true == (row.kind == "hard_positive")
    before = {
        word for one in synonyms.pictures("pretraining", 3, 60, both_words=True) for word in one.pair.caption.split()
    }
    assert second <= before


def test_the_scripted_model_writes_tidily_and_has_favourite_words() -> None:
    written = [scripted_model.write("replace-object", "a red circle", Random(seed)) for seed in range(300)]
    new = [word for _, word, _ in written]
    assert 0.4 < new.count("square") / 300 < 0.65
    assert {"circle"} == {old for old, _, _ in written}
    assert {text for _, _, text in written} == {f"A red {word}." for word in new}
    longer = [
        scripted_model.write("add-object", "a red circle and an olive bar", Random(seed))[2] for seed in range(50)
    ]
    assert min(len(text.split()) for text in longer) > 7


def test_a_label_is_a_function_of_the_fact_in_its_rationale() -> None:
    colours: dict[str, set[str]] = {}
    for example in rationales.examples(2, 300, 20):
        shape, _, *facts = example.input.split()
        assert [fact for fact in facts if fact.endswith(shape)] == [example.rationale]
        colour = example.rationale.removesuffix(shape)
        colours.setdefault(colour, set()).add(example.label)
    assert all(len(labels) == 1 for labels in colours.values())
    assert {label for labels in colours.values() for label in labels} == {"yes", "no"}


def test_a_smaller_training_set_is_a_prefix_of_a_larger_one() -> None:
    assert rationales.examples(2, 10, 0) == rationales.examples(2, 30, 0)[:10]


def test_a_claim_is_shown_when_the_interval_of_paired_differences_lies_above_zero() -> None:
    found = paired_difference([0.9, 0.8, 0.85], [0.7, 0.7, 0.7])
    half = 4.303 * 0.05 / 3**0.5  # Student's t of two degrees of freedom; the differences are 0.2, 0.1 and 0.15
    assert (found.mean, found.low, found.high) == pytest.approx((0.15, 0.15 - half, 0.15 + half), abs=1e-4)
    assert found.verdict == "shown"
    assert paired_difference([0.7, 0.7, 0.7], [0.9, 0.8, 0.85]).verdict == "refuted"
    assert paired_difference([0.9, 0.5, 0.7], [0.7, 0.6, 0.8]).verdict == "open"
    assert paired_difference([0.9], [0.1]).verdict == "open"


def _claim(**arms: float) -> Claim:
    figures = {arm: {"accuracy": value} for arm, value in arms.items()}
    compared = (Comparison("accuracy", "one", "other"),)
    return Claim("x", "example", "One is better", synonyms.DESIGN, lambda _: figures, compared)


def test_the_table_compares_the_rows_of_one_design_and_leaves_the_design_seed_out() -> None:
    claim = _claim(one=0.9, other=0.6)
    rows = [row for seed in (0, 1, 99) for row in rows_of(claim, seed, claim.run(Trials(Path(), seed)))]
    rows.append(Row("x", 0, "one", "of another design", {"accuracy": 0.0}))
    (line,) = table([claim], rows).splitlines()[2:]
    assert line == "| x | accuracy | one 90.0 | other 60.0 | +30.0 (+30.0 to +30.0) | 2 | shown | `--claims x` |"


def test_what_is_trained_once_is_taken_from_the_cache(small: Trials) -> None:
    made = [small.save(synonyms.pictures("test", 1, 4, both_words=False)) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0] != small.save(synonyms.pictures("test", 2, 4, both_words=False))


def test_the_documentation_has_the_table_of_the_committed_results() -> None:
    rows = read_rows(RESULTS)
    assert rows
    assert f"<!-- claims -->\n{table(CLAIMS, rows)}\n<!-- end -->" in PAGE.read_text("utf-8")


def test_calibration_recovers_an_injected_bias(tmp_path: Path) -> None:
    found = positions.run(Trials(tmp_path, 3, effort=0.05))
    measure = "correlation, bias in own heads"
    assert found["linear"][measure] > found["plain"][measure]


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_every_claim_runs_and_measures_what_it_compares(claim: Claim, small: Trials) -> None:
    found = claim.run(small)
    for one in claim.comparisons:
        for arm in (one.better, one.worse):
            signed = "correlation" in one.measure or "gain" in one.measure
            assert -signed <= found[arm][one.measure] <= 1


def _kinds(caption: str) -> set[tuple[str, str]]:
    """Return the colours and shapes that a caption names."""
    words = [word for word in caption.split() if word not in {"a", "an", "and"}]
    return set(zip(words[::2], words[1::2], strict=True))
