"""Hard negatives by rules: what each type makes, what truth forbids, and that nothing but pair and seed decides."""

import random
import re
from collections.abc import Sequence
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Box, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.edit_types import BENCHMARK_TYPES, NEGATIVE_TYPES
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from tests.example_counts import examples
from tests.generators.rule_fixtures import (
    SHAPED,
    annotate,
    assert_order_is_free,
    counted,
    pair_of,
    scenes,
    texts,
    tiny_edit_model,
)

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

CAPTIONS = (
    "a dog on a bed",
    "A man riding a horse on a beach.",
    "two dogs and three cats",
    "a large red bus on a street",
    "a black dog and a white cat",
    "An open door in a kitchen .",
    "a man in a red shirt holding a blue umbrella",
    "a cat under a table with a plate of food",
    "A zebra standing in front of a tree!",
    "a train on the tracks near a station",
    "a dog chasing a cat",
)


def box(label: str, at: float = 0.1) -> Box:
    return Box(label, at, at, at + 0.1, at + 0.1)


@lru_cache(maxsize=32)
def photographs(*types: str, **options: object) -> RuleNegatives:
    """Return a generator for captions of photographs: the bundled model, and its captions for lack of a pool."""
    wordnet = load_wordnet()
    return RuleNegatives(wordnet, load_bundled_statistics(), NegativeOptions(types or NEGATIVE_TYPES, **options))  # type: ignore[arg-type]


def made(kind: str, pair: Pair, seeds: int = 12, **options: object) -> set[str]:
    """Return all texts of one type that some seeds give, several each."""
    generator = photographs(kind, per_type=6, **options)
    return texts(lambda seed: annotate(generator, pair, seed), seeds)


@pytest.mark.parametrize(
    ("kind", "caption", "words"),
    [
        ("replace-object", "a dog on a bed", "a dog on a bench"),
        ("replace-object", "three cats on a bed", "three kids on a bed"),
        ("replace-attribute", "two dogs and three cats", "two dogs and two cats"),
        ("replace-attribute", "a black dog and a white cat", "a black dog and an orange cat"),
        ("replace-relation", "a cat under a table", " on a table"),
        ("swap-object", "Two dogs and three cats.", "Two cats and three dogs."),
        ("swap-attribute", "a black dog and a white cat", "a white dog and a black cat"),
    ],
)
def test_each_type_edits_what_its_name_says(kind: str, caption: str, words: str) -> None:
    assert any(words in text for text in made(kind, pair_of(caption), 20))


@pytest.mark.parametrize("caption", ["a dog and a cat", "a dog next to a cat", "a dog with a cat"])
def test_objects_stay_where_both_orders_are_true(caption: str) -> None:
    assert made("swap-object", pair_of(caption)) == set()


@pytest.mark.parametrize(
    ("kind", "words", "known"),
    [
        ("replace-object", "bench", pair_of("a cat sitting on a bed", "a bench")),
        ("replace-object", "bench", pair_of("a cat sitting on a bed", "two Benches.")),
        ("replace-object", "carpet", pair_of("a cat sitting on a bed", "a rug in a room")),
        ("replace-object", "bench", pair_of("a cat sitting on a bed", boxes=(box("bench"),))),
        ("replace-object", "bench", pair_of("a cat sitting on a bed", crowds=("bench",))),
        ("replace-object", "cow", pair_of("a dog chasing a cat", "a calf in a field")),
        ("replace-attribute", "blue", pair_of("a large red bus on a street", "a blue bus")),
        ("replace-attribute", "blue", pair_of("a large red bus on a street", "a navy bus drives by")),
        ("replace-attribute", "blue", pair_of("a large red bus on a street", "the bus is blue and red")),
        ("replace-attribute", "two cats", pair_of("two dogs and three cats", "a couple of cats")),
        ("replace-relation", "on top of", pair_of("a cat under a table", "a cat on top of a table")),
        ("replace-relation", "on top of", pair_of("a cat under a table", "a cat atop a wooden table")),
        ("replace-relation", "on top of", pair_of("a cat under a table", "two cats near a table")),
        ("swap-object", "three dogs", pair_of("two dogs and three cats", "three dogs")),
    ],
)
def test_what_is_known_of_the_image_is_never_written(kind: str, words: str, known: Pair) -> None:
    assert any(words in text for text in made(kind, pair_of(known.caption), 20, floor=0.001))
    assert not any(words in text for text in made(kind, known, 20, floor=0.001))


@pytest.mark.parametrize("kind", ["replace-object", "replace-attribute", "replace-relation"])
@pytest.mark.parametrize(
    "caption",
    [
        "a street with no red bus on a bench",
        "no red bus is on a bench",
        "a kitchen without a red bus on a bench",
    ],
)
def test_what_a_caption_denies_is_left_alone(kind: str, caption: str) -> None:
    assert not [text for text in made(kind, pair_of(caption)) if "red bus" not in text]


def test_a_caption_that_leaves_open_what_there_is_is_left_alone() -> None:
    assert made("replace-object", pair_of("a dog and a cat on a bed"))
    assert not made("replace-object", pair_of("a dog or a cat on a bed"))


def test_a_question_has_no_negatives() -> None:
    rows = annotate(photographs(*BENCHMARK_TYPES), pair_of("Is the dog on the bed?"))
    assert {row.reason for row in rows} <= {"question", "no_edit"}


def test_rules_leave_captions_in_other_languages_alone() -> None:
    rows = annotate(photographs(*BENCHMARK_TYPES), pair_of("Een hond op een rode bank in de kamer."))
    assert {row.reason for row in rows} == {"not_english"}


@pytest.mark.parametrize("caption", CAPTIONS)
def test_a_negative_that_another_caption_says_in_another_format_is_not_written(caption: str) -> None:
    for kind in BENCHMARK_TYPES:
        for text in sorted(made(kind, pair_of(caption), 3))[:1]:
            again = made(kind, pair_of(caption, f"{text.rstrip('!. ').capitalize()}."), 12)
            assert text not in again


captions = st.one_of(st.sampled_from(CAPTIONS), st.sampled_from(CAPTIONS).map(str.upper))
siblings = st.lists(st.sampled_from(CAPTIONS), max_size=3)


@settings(max_examples=examples(40))
@given(captions, siblings, st.integers(0, 99))
def test_negatives_are_exact_edits_that_no_caption_says(caption: str, others: list[str], seed: int) -> None:
    """Kept texts differ from each other and from all captions, and only inside their spans from the source."""
    generator = photographs(per_type=2, vocabulary=("coco",))
    pair = pair_of(caption, *others, boxes=(box("dog"),))
    annotations = annotate(generator, pair, seed)
    assert annotations == annotate(generator, pair, seed)
    kept = [row for row in annotations if row.status == "kept"]
    said = {pair.caption, *pair.captions}
    assert len({*said, *(row.text for row in kept)}) == len(kept) + len(said)
    assert len({row.id for row in annotations}) == len(annotations)
    for row in annotations:
        assert row.reason if row.status == "rejected" else not row.reason
    for row in kept:
        assert_only_edits(row)


def assert_only_edits(row: Annotation) -> None:
    text = row.source_text
    for edit in reversed(row.edits):
        start, end = edit.before_span
        assert text[start:end] == edit.before
        text = text[:start] + edit.after + text[end:]
    assert text == row.text
    for edit in row.edits:
        start, end = edit.after_span
        assert row.text[start:end] == edit.after


@settings(max_examples=examples(25))
@given(st.lists(st.sampled_from(range(250)), min_size=1, max_size=12), st.data())
def test_batches_divided_in_any_way_give_what_single_pairs_give(chosen: list[int], data: st.DataObject) -> None:
    found, generator = scenes(), of_scenes()
    pairs, tokens = [found.pairs[at] for at in chosen], [found.tokens[at] for at in chosen]

    def rngs(start: int, end: int) -> Sequence[random.Random]:
        return [make_rng(7, pair.key) for pair in pairs[start:end]]

    cut = data.draw(st.integers(0, len(chosen)))
    single = [generator.annotate(*each) for each in zip(pairs, tokens, rngs(0, len(pairs)), strict=True)]
    divided = [
        rows
        for start, end in ((0, cut), (cut, len(pairs)))
        for rows in generator.annotate_batch(pairs[start:end], tokens[start:end], rngs(start, end))
    ]
    assert divided == single


@lru_cache(maxsize=1)
def of_scenes() -> RuleNegatives:
    """Return a generator of all types for ColorShape."""
    return RuleNegatives(
        load_wordnet(), scenes().pool, NegativeOptions(NEGATIVE_TYPES, both_sides=True), scenes().model
    )


def test_a_colour_that_is_tagged_as_a_noun_does_not_move_with_its_noun() -> None:
    """It would stand behind the colour of the other thing: "a large brown orange cross"."""
    generator = RuleNegatives(load_wordnet(), scenes().pool, NegativeOptions(("swap-object",)), scenes().model)
    pair = pair_of("a drawing of a little orange cross and a large brown circle")
    found = texts(lambda seed: annotate(generator, pair, seed))
    assert found == {"a drawing of a little orange circle and a large brown cross"}


def test_the_order_of_pairs_changes_nothing() -> None:
    """A generator that has seen other pairs, or the same backwards, answers as one that has seen none."""
    found, wordnet = scenes(), load_wordnet()
    assert_order_is_free(found.pairs[:12], lambda: RuleNegatives(wordnet, found.pool, model=found.model))


def test_a_type_gives_the_same_text_alone_and_among_others() -> None:
    pair = pair_of("a large black dog on a bed")
    among = annotate(photographs(*BENCHMARK_TYPES), pair)
    assert [row for kind in BENCHMARK_TYPES for row in annotate(photographs(kind), pair)] == among


def test_every_attempt_is_answered() -> None:
    annotations = annotate(photographs(*BENCHMARK_TYPES, per_type=2), pair_of("hello"))
    assert [f"{row.form}-{row.target}" for row in annotations] == [kind for kind in BENCHMARK_TYPES for _ in range(2)]
    assert {(row.status, row.reason, row.text) for row in annotations} == {("rejected", "no_edit", "")}


def test_a_higher_floor_gives_fewer_negatives() -> None:
    kept = []
    for floor in (0.001, 0.1, 1.0):
        generator = photographs(*BENCHMARK_TYPES, floor=floor, per_type=4)
        rows = [row for caption in CAPTIONS for row in annotate(generator, pair_of(caption))]
        kept.append(sum(row.status == "kept" for row in rows))
    assert kept[0] > kept[1] > kept[2] > 0


def test_a_constraint_that_is_skipped_is_not_asked() -> None:
    pair = pair_of("a dog on a bed", "a bench")
    generator = photographs("replace-object", per_type=6, skip_constraints=frozenset({"stated_object"}))
    assert any("bench" in text for text in texts(lambda seed: annotate(generator, pair, seed), 20))


def test_words_of_the_pool_are_put_in_and_no_others() -> None:
    captions = SHAPED * 12
    generator = RuleNegatives(load_wordnet(), counted(captions), NegativeOptions(), tiny_edit_model(captions))
    found = {row.text for caption in SHAPED for seed in range(4) for row in annotate(generator, pair_of(caption), seed)}
    assert len(found) > len(SHAPED)
    assert set(" ".join(found).split()) <= set(" ".join(SHAPED).split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (NegativeOptions(("swap",)), r"no such type of negative: swap\. .*There are: replace-object"),
        (NegativeOptions(per_type=0), "per_type"),
        (NegativeOptions(floor=0.0), "floor"),
        (NegativeOptions(floor=1.5), "floor"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: NegativeOptions, told: str) -> None:
    wordnet = load_wordnet()
    with pytest.raises(UsageError, match=told):
        RuleNegatives(wordnet, load_bundled_statistics(), options)


@pytest.mark.parametrize("caption", ["a dog " * 500, "a", "...", "<cat>", "\N{ZERO WIDTH SPACE}a dog on a bed"])
def test_an_odd_caption_is_answered_like_any_other(caption: str) -> None:
    rows = annotate(photographs(vocabulary=("coco",)), pair_of(caption))
    assert {row.status for row in rows} <= {"kept", "rejected"}
    assert all(row.source_text == caption for row in rows)


@pytest.mark.parametrize("caption", ["- a dog - a cat -", "a dog a dog a dog a dog", "a dog, a dog a dog, a dog"])
def test_a_shuffle_reads_otherwise(caption: str) -> None:
    words = re.findall(r"\w+", caption)
    for text in made("shuffle", pair_of(caption), 20):
        assert re.findall(r"\w+", text) != words
        assert sorted(re.findall(r"\w+", text.lower())) == sorted(words)
