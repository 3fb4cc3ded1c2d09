"""Letters that nobody sees are no part of a caption's words, and stay where the caption has them."""

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.captions.invisible_characters import has_invisible, remove_invisible
from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations
from pairwright.generators.edit_types import NEGATIVE_TYPES
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives
from pairwright.generators.protocols import RuleGenerator
from tests.example_counts import examples
from tests.generators.rule_fixtures import annotate, pair_of, small_pool

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

PLAIN = "A red car next to a blue truck."
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u202a\u202c\u2063"


@lru_cache(maxsize=1)
def makers() -> tuple[RuleGenerator, RuleGenerator]:
    negatives = RuleNegatives(load_wordnet(), small_pool(), NegativeOptions(NEGATIVE_TYPES, both_sides=True))
    return negatives, RulePositives(small_pool())


def of_plain(written: str) -> Pair:
    """Return the pair of the plain caption, written otherwise: the same key, so the same chance."""
    return replace(pair_of(PLAIN), caption=written)


def told(rows: list[Annotation]) -> list[tuple[str, str, str, str]]:
    return [(row.form, row.target, remove_invisible(row.text), row.reason) for row in rows]


@pytest.mark.parametrize(
    "written",
    [
        "A red\u200b car next to a blue truck.",
        "\ufeffA red car next to a blue truck.\u200b",
        "A r\u00aded car\u2060 next to a blue tr\u200cuck.",
        "A red car next\u200d to a \u200e\u202ablue\u202c truck.",
    ],
)
def test_texts_are_those_of_the_caption_as_one_sees_it(written: str) -> None:
    for maker in makers():
        rows = annotate(maker, of_plain(written))
        assert told(rows) == told(annotate(maker, pair_of(PLAIN)))
        assert any(row.status == "kept" for row in rows)
        for row in rows:
            assert row.source_text == written
            assert row.form == "shuffle" or not row.text or has_invisible(row.text)


def test_a_mark_beside_a_word_that_gives_way_stays() -> None:
    maker = RuleNegatives(load_wordnet(), small_pool(), NegativeOptions(("swap-attribute",)))
    (row,) = annotate(maker, pair_of("a red\u200b car next to a \u2060blue truck"))
    assert row.text == "a blue\u200b car next to a \u2060red truck"


def test_what_another_caption_says_behind_such_marks_is_said() -> None:
    maker = RuleNegatives(load_wordnet(), small_pool(), NegativeOptions(("replace-object",), per_type=20, floor=0.001))
    assert any("cat" in row.text for row in annotate(maker, pair_of("a dog on a bed")))
    rows = annotate(maker, pair_of("a dog on a bed", "a c\u00adat sleeps"))
    assert not any("cat" in row.text for row in rows)


@given(st.lists(st.tuples(st.integers(0, len(PLAIN)), st.sampled_from(UNSEEN)), max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_wherever_they_stand_edits_tell_what_changed(marks: list[tuple[int, str]]) -> None:
    written = PLAIN
    for at, mark in sorted(marks, reverse=True):
        written = written[:at] + mark + written[at:]
    for maker in makers():
        rows = annotate(maker, of_plain(written))
        assert told(rows) == told(annotate(maker, pair_of(PLAIN)))
        for row in rows:
            rebuilt, done = "", 0
            for edit in row.edits:
                assert written[slice(*edit.before_span)] == edit.before
                assert row.text[slice(*edit.after_span)] == edit.after
                rebuilt += written[done : edit.before_span[0]] + edit.after
                done = edit.before_span[1]
            assert not row.edits or rebuilt + written[done:] == row.text


def test_the_joiner_of_an_emoji_is_seen() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert remove_invisible(f"a {family} on a b\u200ded") == f"a {family} on a bed"


def test_words_around_such_marks_are_tagged_as_without_them() -> None:
    written = "\ufeffTwo r\u00aded\u200b cars park."
    tokens = load_tagger().tag([written, remove_invisible(written)])
    assert [(t.tag, t.pos, t.lemma) for t in tokens[0]] == [(t.tag, t.pos, t.lemma) for t in tokens[1]]
    assert [t.text for t in tokens[0]] == ["Two", "r\u00aded", "cars", "park", "."]


def test_answers_are_given_without_them() -> None:
    rows = annotate(TemplateConversations(ConversationOptions(types=("brief",))), pair_of("a red\u200b c\u00adar"))
    assert [turn.text for row in rows for turn in row.turns if turn.role == "assistant"] == ["a red car"]
