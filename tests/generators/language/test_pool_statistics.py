"""Pool statistics: counts, merging of parts, plausibility, and files."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.language import pool_statistics
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics, count_captions
from pairwright.generators.language.tokens import Token
from tests.example_counts import examples

_TAGS = {
    "a": "DT",
    "the": "DT",
    "on": "IN",
    "in": "IN",
    "of": "IN",
    "sit": "VBZ",
    "ride": "VBZ",
    "red": "JJ",
    "small": "JJ",
}
_POS = {"DT": "DET", "IN": "ADP", "VBZ": "VERB", "JJ": "ADJ", "NN": "NOUN"}


def caption(text: str) -> list[Token]:
    """Return tokens of a text whose words are lemmas."""
    tokens, start = [], 0
    for word in text.split():
        tag = _TAGS.get(word, "NN")
        tokens.append(Token(word, start, start + len(word), tag, _POS[tag], word))
        start += len(word) + 1
    return tokens


WORDS = ["a", "the", "on", "in", "sit", "ride", "red", "small", "dog", "cat", "couch", "wave", "board"]
CAPTIONS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join).map(caption), max_size=12)
HOME = [
    "a red dog sit on the couch",
    "a small cat sit on the couch",
    "a dog sit on the small couch",
    "the dog ride a wave",
]


def test_frequencies_count_a_caption_once() -> None:
    statistics = count_captions(map(caption, ["dog dog dog", "a dog", "a cat"])).frozen()
    assert (statistics.captions, statistics.frequency("dog", "NOUN"), statistics.form_frequency("DOG")) == (3, 2, 2)
    assert statistics.frequency("dog", "VERB") == 0


def test_co_occurrence_counts_content_words_of_a_caption_both_ways() -> None:
    statistics = count_captions(map(caption, HOME)).frozen()
    assert statistics.cooccurrence("dog", "couch") == statistics.cooccurrence("couch", "dog") == 2
    assert statistics.cooccurrence("dog", "dog") == 3
    assert statistics.cooccurrence("the", "dog") == 0


def test_adjacency_joins_adjective_and_noun_and_preposition_with_both_sides() -> None:
    statistics = count_captions(map(caption, [*HOME, *HOME])).frozen()
    assert statistics.adjacency("red", "dog") == 2
    assert statistics.adjacency("sit", "on") == 6
    assert statistics.adjacency("on", "couch") == 6
    assert statistics.adjacency("dog", "red") == 0


class Copied(list[Token]):
    """Tokens that count how many of them are copied by slices."""

    copied = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        if isinstance(at, slice):
            self.copied += len(found)
        return found


@pytest.mark.parametrize("phrase", ["a {} dog on the couch", "a dog {}"])
def test_the_work_grows_with_the_length_of_a_caption(phrase: str) -> None:
    """An adjective was followed to the end of its phrase, one after the other: 49 kB of "red" took 15 s."""
    copied = []
    for words in (200, 400, 800):
        tokens = Copied(caption(phrase.format("red " * words)))
        count_captions([tokens])
        copied.append(tokens.copied)
    assert copied[2] - copied[1] == 2 * (copied[1] - copied[0])


def test_runs_are_forms_right_after_each_other_and_the_ends_count() -> None:
    statistics = count_captions(map(caption, [*HOME, "A DOG sit in the small couch"])).frozen()
    assert (statistics.bigram("a", "dog"), statistics.bigram("the", "couch"), statistics.bigram("dog", "a")) == (
        2,
        2,
        0,
    )
    assert (statistics.bigram("", "a"), statistics.bigram("couch", "")) == (4, 4)
    assert statistics.bigram("a", "wave") == 0, "seen once"


def test_links_are_governor_preposition_and_noun() -> None:
    statistics = count_captions(map(caption, [*HOME, "a dog in front of the couch"])).frozen()
    assert statistics.linked("dog", "on", "couch") == statistics.linked("sit", "on", "couch") - 1 == 2
    assert statistics.linked("cat", "", "couch") == 1
    assert statistics.linked("dog", "in front of", "couch") == 1
    assert statistics.linked("", "on", "couch") == sum(
        statistics.linked(one, "on", "couch") for one in ("dog", "cat", "sit")
    )
    assert statistics.linked("ride", "on", "wave") == 0


def test_links_are_saved_and_read_with_prepositions_of_several_words(tmp_path: Path) -> None:
    statistics = count_captions(map(caption, [*HOME, "a dog in front of the couch"])).frozen()
    statistics.save(tmp_path / "pool.parquet")
    loaded = PoolStatistics.load(tmp_path / "pool.parquet")
    assert loaded.links == statistics.links
    assert ("dog", "in front of", "couch") in loaded.links
    assert loaded.digest == statistics.digest


def test_a_file_of_before_runs_were_counted_is_read(tmp_path: Path) -> None:
    statistics = count_captions(map(caption, HOME)).frozen()
    statistics.save(tmp_path / "pool.parquet")
    frame = pl.read_parquet(tmp_path / "pool.parquet").filter(~pl.col("kind").is_in(["run", "link"]))
    frame.write_parquet(tmp_path / "old.parquet")
    old = PoolStatistics.load(tmp_path / "old.parquet")
    assert (old.pairs, old.adjacent, old.runs) == (statistics.pairs, statistics.adjacent, {})
    assert old.bigram("the", "couch") == 0
    assert old.linked("dog", "on", "couch") == 0


def test_pairs_seen_once_are_pruned() -> None:
    statistics = count_captions(map(caption, HOME)).frozen()
    assert statistics.cooccurrence("dog", "wave") == 0
    assert statistics.cooccurrence("wave", "wave") == 1


@settings(max_examples=examples(60))
@given(CAPTIONS, CAPTIONS, CAPTIONS)
def test_parts_merge_to_the_whole_in_any_order(
    a: list[list[Token]], b: list[list[Token]], c: list[list[Token]]
) -> None:
    whole = count_captions([*a, *b, *c]).frozen()
    forth = count_captions(a).merged(count_captions(b)).merged(count_captions(c)).frozen()
    back = count_captions(c).merged(count_captions(a).merged(count_captions(b))).frozen()
    assert whole == forth == back
    assert whole.digest == forth.digest == back.digest


@settings(max_examples=examples(40))
@given(CAPTIONS, st.sampled_from(WORDS), st.lists(st.sampled_from([*WORDS, "unseen"])))
def test_plausibility_is_a_number_between_minus_one_and_one(
    captions: list[list[Token]], word: str, context: list[str]
) -> None:
    assert -1.0 <= count_captions(captions).frozen().plausibility(word, context) <= 1.0


def test_words_seen_together_are_more_plausible_than_words_seen_apart() -> None:
    captions = ["dog couch"] * 5 + ["board wave"] * 5 + ["cat couch"] * 2
    statistics = count_captions(map(caption, captions)).frozen()
    assert statistics.plausibility("board", ["wave"]) > 0 > statistics.plausibility("board", ["couch"])
    assert statistics.plausibility("unseen", ["wave"]) == statistics.plausibility("dog", ["unseen"]) == 0


def test_statistics_come_back_from_their_file(tmp_path: Path) -> None:
    statistics = count_captions(map(caption, HOME)).frozen()
    statistics.save(tmp_path / "pool.parquet")
    again = PoolStatistics.load(tmp_path / "pool.parquet")
    assert again == statistics
    assert again.digest == statistics.digest
    again.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "pool.parquet").read_bytes()


def test_a_torn_or_foreign_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 torn")
    for name in ("torn.parquet", "missing.parquet"):
        with pytest.raises(StorageError, match=name):
            PoolStatistics.load(tmp_path / name)


def test_an_empty_pool_knows_nothing() -> None:
    statistics = PoolCounts().frozen()
    assert (statistics.captions, statistics.plausibility("dog", ["cat"])) == (0, 0.0)


def test_too_many_pairs_lose_those_seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_statistics, "_MOST_PAIRS", 3)
    merged = count_captions([caption("dog couch"), caption("dog couch")]).merged(count_captions([caption("cat wave")]))
    assert set(merged.pairs) == {("couch", "dog"), ("couch", "couch"), ("dog", "dog"), ("cat", "cat"), ("wave", "wave")}
