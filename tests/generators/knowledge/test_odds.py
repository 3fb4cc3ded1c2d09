"""Which exchange is chosen, by what captions say."""

from collections import Counter

import pytest

from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.odds import LEAST, MOST, WANTED, Odds
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from tests.generators.rule_fixtures import SmallThesaurus, annotate, counted, pair_of

SAID = (
    *["a dog on a bench"] * 12, *["a dog next to a bench"] * 4, *["a dog under a bench"] * 2,
    *["two dogs"] * 20, *["three dogs"] * 10, *["five dogs"] * 2, *["a red ball"] * 9, *["a blue ball"] * 3,
    *["a man riding a horse"] * 8, *["a man feeding a horse"] * 6, *["a man leading a horse"] * 2,
)  # fmt: skip


@pytest.fixture(scope="module")
def odds() -> Odds:
    return Odds(counted(SAID))


def test_odds_are_even_for_a_word_and_itself_and_turn_round_with_the_words(odds: Odds) -> None:
    assert odds.of_places("on", ("on",), "bench") == (1.0,)
    there, back = odds.of_places("on", ("under",), "bench")[0], odds.of_places("under", ("on",), "bench")[0]
    assert there * back == pytest.approx(1.0)
    assert there < 1.0 < back


def test_what_captions_have_there_more_often_has_the_better_odds(odds: Odds) -> None:
    beside, under = odds.of_places("on", ("next to", "under"), "bench")
    assert beside > under
    feeding, leading = odds.of_deeds("ride", ("feed", "lead"), "horse", "man")
    assert feeding > leading
    three, five = odds.of_words("two", ("three", "five"), "dog")
    assert three > five
    assert odds.rarity("five") > odds.rarity("two")


def test_phrases_are_weighed_by_how_often_captions_have_verb_preposition_and_noun_together(odds: Odds) -> None:
    same, other = odds.of_phrases(("ride", ""), (("ride", ""), ("sit", "under")), "horse")
    assert same == 1.0
    assert other < same


def test_what_most_exchanges_take_out_is_preferred_to_what_they_put_in() -> None:
    said = [f"a dog {there} a bench" for there in ("along", "outside", "on", "under")]
    odds = Odds(counted(said))
    along, outside = odds.of_places("on", ("along", "outside"), "bench")
    assert along > 2 * outside
    assert WANTED["along"] > 1 > WANTED["outside"]


def test_a_text_that_runs_on_as_captions_do_has_the_better_odds(odds: Odds) -> None:
    same, beside, under = odds.of_runs("dog", "on", ("on", "next to", "under"), "a")
    assert same == pytest.approx(1.0)
    assert same > beside > under > 0
    there, back = odds.of_runs("dog", "on", ("under",), "a")[0], odds.of_runs("dog", "under", ("on",), "a")[0]
    assert there * back == pytest.approx(1.0)
    first, last = odds.of_runs("", "two", ("a", "man"), "")
    assert first > last  # captions begin with "a", not with "man"
    assert min(odds.of_runs("dog", "on", ("words", "of words"), "here")) > 0
    assert odds.of_runs("unheard", "of", ("words", "of words"), "here") == (1.0, 1.0), "nothing is known"


def test_odds_of_words_that_captions_lack_are_small_and_never_nothing(odds: Odds) -> None:
    for found in (odds.of_places("on", ("beneath",), "roof"), odds.of_deeds("ride", ("paint",), "", "")):
        assert LEAST <= found[0] < 1.0
    assert odds.of_words("unheard", ("two",), "dog")[0] <= MOST


def test_of_more_weight_come_sooner_and_each_comes_once() -> None:
    first = Counter(
        RandomStream(seed * 7919).weighted_shuffle(("a", "b", "c"), (6.0, 3.0, 1.0))[0] for seed in range(4000)
    )
    assert 0.55 < first["a"] / 4000 < 0.65
    assert 0.25 < first["b"] / 4000 < 0.35
    assert sorted(RandomStream(5).weighted_shuffle(("a", "b", "c"), (6.0, 3.0, 1.0))) == ["a", "b", "c"]
    assert RandomStream(5).weighted_shuffle((), ()) == []


def test_numbers_are_exchanged_for_those_that_captions_say() -> None:
    pool = counted(SAID)
    generator = RuleNegatives(SmallThesaurus(), pool, NegativeOptions(types=("replace-attribute",), minimum=2))
    texts = Counter(annotate(generator, pair_of("two dogs"), seed)[0].text for seed in range(60))
    assert texts["three dogs"] > 2 * texts["five dogs"] > 0
