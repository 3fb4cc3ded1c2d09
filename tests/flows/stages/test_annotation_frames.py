"""What is done to frames of annotations is what is done to records."""

import random
from dataclasses import replace

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.records import Annotation, Edit, Origin, Turn
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.flows.stages.annotation_frames import (
    add_to_report,
    new_words,
    reject_annotations,
    split_by_status,
    tally_name,
    type_name,
    with_scores,
)
from pairwright.generators.balance import BalanceReport, reject_excess_rows
from pairwright.generators.counts import count_type
from pairwright.generators.edits import inserted_words as words_of

KINDS = ("hard_negative", "hard_negative", "hard_positive", "conversation")
WORDS = ("dog", "a cat", "Löwe", "with a hat", "laying next to", "")


def annotation(number: int, chance: random.Random) -> Annotation:
    """Return an annotation of any kind, kept or rejected, with or without edits, scores and a positive beside it."""
    kind = chance.choice(KINDS)
    source = chance.choice(["a dog runs", "Ein Löwe schläft", ""])
    starts = [chance.randint(0, len(source)) for _ in range(chance.randint(0, 2))]
    edits = [Edit("x", chance.choice(WORDS), (at, at + 1), (at, at + 1)) for at in starts]
    rejected = chance.random() < 0.3
    return Annotation(
        f"{number:032x}",
        f"{number // 4:032x}",
        kind,
        Origin(chance.choice(["rules-negatives", "llm-positives"]), 1),
        chance.choice(["replace", "swap", "shuffle", ""]),
        chance.choice(["object", "attribute", "relation", ""]),
        chance.choice(["a cat runs", ""]),
        source,
        tuple(edits),
        f"{chance.randint(0, 40):032x}" if kind == "hard_negative" and chance.random() < 0.6 else "",
        (Turn("human", "why?"),) if kind == "conversation" else (),
        {name: chance.random() for name in chance.sample(["a_gap", "n_gap", "z"], chance.randint(0, 2))},
        "rejected" if rejected else "kept",
        chance.choice(["no_edit", "identical"]) if rejected else "",
    )


def some(number: int, seed: int) -> list[Annotation]:
    chance = random.Random(seed)
    return [annotation(each, chance) for each in range(number)]


rows_of = st.builds(some, st.integers(0, 40), st.integers(0, 10_000))


@given(rows=rows_of)
@settings(max_examples=50)
def test_records_come_back_from_a_frame_as_they_were(rows: list[Annotation]) -> None:
    assert ANNOTATIONS.records(ANNOTATIONS.frame(rows)) == rows


@given(rows_of)
def test_types_tallies_and_new_words_are_those_of_records(rows: list[Annotation]) -> None:
    frame = ANNOTATIONS.frame(rows)
    assert frame.select(type_name().alias("name"))["name"].to_list() == [annotation_type(row) for row in rows]
    assert frame.select(tally_name().alias("name"))["name"].to_list() == [count_type(row) for row in rows]
    assert new_words(frame) == [words_of.inserted_words(row) for row in rows]


@given(rows_of, st.randoms(use_true_random=False))
def test_rows_that_go_take_their_positives_along(rows: list[Annotation], chance: random.Random) -> None:
    gone = {row.id: "over_quota" for row in rows if chance.random() < 0.4}
    reasons = pl.DataFrame(list(gone.items()), {"id": pl.String, "reason": pl.String}, orient="row")
    expected = ANNOTATIONS.frame(list(reject_excess_rows(rows, gone)))
    found = reject_annotations(ANNOTATIONS.frame(rows), reasons)
    assert found.equals(expected)
    kept, rejected = split_by_status(found)
    assert kept.equals(expected.filter(pl.col("status") == "kept"))
    assert kept.height + rejected.height == len(rows)


@given(rows_of, st.sampled_from(["hard_negative", "hard_positive", ""]))
def test_an_account_of_frames_is_that_of_records(rows: list[Annotation], kind: str) -> None:
    by_records, by_frames = BalanceReport(kind), BalanceReport(kind)
    for half in (rows[::2], rows[1::2]):
        by_records.add(half)
        add_to_report(by_frames, ANNOTATIONS.frame(half))
    assert by_frames.as_json() == by_records.as_json()


@given(rows_of, st.integers(0, 1000))
@settings(deadline=None)
def test_scores_are_added_in_the_order_of_their_names(rows: list[Annotation], seed: int) -> None:
    chance = random.Random(seed)
    drawn = [[chance.choice([None, float("nan"), 0.25, -0.5]) for _ in rows] for _ in range(2)]
    new = {"n_gap": drawn[0], "b_gap": drawn[1]}
    expected = []
    for number, row in enumerate(rows):
        told = {name: each[number] for name, each in new.items()}
        left = {name: value for name, value in row.scores.items() if name not in new}
        expected.append(replace(row, scores={**left, **{n: v for n, v in told.items() if v is not None and v == v}}))  # noqa: PLR0124 - not NaN
    columns = {name: pl.Series(name, each, pl.Float64) for name, each in new.items()}
    assert with_scores(ANNOTATIONS.frame(rows), columns).equals(ANNOTATIONS.frame(expected))
    assert with_scores(ANNOTATIONS.frame(rows), {}).equals(ANNOTATIONS.frame(rows))
