"""Cloze attack: prefers what fits its caption, is cross-fitted, and takes part where it is named."""

from itertools import product

import polars as pl
import pytest

from pairwright.filters.attacks.registry import give_corpus, load_scorer
from pairwright.filters.audit.verdict import run_audit
from pairwright.filters.scorers.cloze import ClozeScorer
from pairwright.filters.scorers.text_scorers import CaptionCorpus, CrossFittedScorer

PLACES = {"bird": "tree", "boat": "river", "cake": "table"}
CAPTIONS = [
    f"{article} {adjective} {noun} on the {place}"
    for article, adjective, (noun, place) in product(
        ("a", "the", "one"), ("big", "small", "old", "red"), PLACES.items()
    )
] * 20
NEGATIVES = [
    caption.replace(place, "river" if place == "tree" else "tree")
    for caption in CAPTIONS
    for place in [caption.split()[-1]]
]


@pytest.fixture(scope="module")
def scorer() -> ClozeScorer:
    return ClozeScorer.train(CAPTIONS)


def test_a_thing_at_its_place_is_likelier(scorer: ClozeScorer) -> None:
    true, false, unknown = scorer.score(["a bird on the tree", "a bird on the river", "a bird on the volcano"])
    assert true > max(false, unknown)


def test_scores_do_not_depend_on_the_other_texts(scorer: ClozeScorer) -> None:
    texts = [*dict.fromkeys(CAPTIONS)][:30]
    alone = [scorer.score([text])[0] for text in texts]
    assert scorer.score(texts).tolist() == alone
    assert all(0 < score < 1 for score in alone)


def test_a_text_without_slots_has_the_middle_score(scorer: ClozeScorer) -> None:
    assert scorer.score(["", "!"]).tolist() == [0.5, 0.5]


def test_it_takes_part_in_an_audit_where_it_is_named_and_reads_the_corpus_of_the_audit() -> None:
    rows = pl.DataFrame(
        {
            "group": [str(at) for at in range(40)],
            "type": ["replace"] * 40,
            "positive": [f"{caption} now" for caption in CAPTIONS[:40]],
            "negative": [f"{caption} now" for caption in NEGATIVES[:40]],
        }
    )
    corpus = CaptionCorpus(CAPTIONS, [f"other {at}" for at in range(len(CAPTIONS))])
    assert "cloze" not in run_audit(rows, corpus).attacks
    assert run_audit(rows, corpus, also=[load_scorer("cloze")]).attacks["cloze"].accuracy == 1.0


def test_scorers_with_captions_of_their_own_keep_them() -> None:
    own, other = CaptionCorpus(["a"], ["1"]), CaptionCorpus(["b"], ["2"])
    mine, given = CrossFittedScorer("mine", ClozeScorer.train, own), load_scorer("cloze")
    kept, trained = give_corpus([mine, given], other, 3)
    assert kept is mine
    assert isinstance(trained, CrossFittedScorer)
    assert trained.corpus is other
    assert trained.folds == 3
