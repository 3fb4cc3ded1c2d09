"""Rule-based texts against scenes whose truth is known."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from pairwright.datasets.colorshape.corpus import list_box_labels, make_sample, read_scene, sample_to_pair
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from pairwright.generators.negatives import TYPES, RuleNegatives
from pairwright.generators.positives import RulePositives
from pairwright.generators.protocols import RuleGenerator
from tests.generators.rule_fixtures import SmallThesaurus

FEW, MANY = 250, 2000
FEWER = 100  # of each there are many turns
SHARE = 0.995


@dataclass(frozen=True)
class Corpus:
    """Scenes as pairs, their tokens, and the statistics of their captions."""

    pairs: Sequence[Pair]
    tokens: Sequence[Sequence[Token]]
    pool: PoolStatistics

    def annotated(self, generator: RuleGenerator) -> Iterator[tuple[Pair, Annotation]]:
        """Yield every annotation with its pair."""
        for pair, tokens in zip(self.pairs, self.tokens, strict=True):
            for annotation in generator.annotate(pair, tokens, make_rng(0, generator.name, pair.key)):
                yield pair, annotation


def corpus_of(number: int) -> Corpus:
    pairs = [sample_to_pair(make_sample(11, index)) for index in range(number)]
    tokens = load_tagger().tag([pair.caption for pair in pairs])
    return Corpus(pairs, tokens, count_captions(tokens).frozen())


@pytest.fixture(scope="module")
def few() -> Corpus:
    return corpus_of(FEW)


@pytest.fixture(scope="module")
def many() -> Corpus:
    return corpus_of(MANY)


def judged(corpus: Corpus, generator: RuleGenerator, right: OracleVerdict) -> tuple[Counter[str], list[str]]:
    """Return how many texts of each type were kept, and those that the oracle does not find ``right``."""
    kept: Counter[str] = Counter()
    wrong = []
    for pair, annotation in corpus.annotated(generator):
        if annotation.status == "kept":
            kept[f"{annotation.form}-{annotation.target}"] += 1
            verdict = judge(annotation.text, read_scene(pair))
            if verdict is not right:
                wrong.append(f"{verdict.name}: {annotation.source_text!r} -> {annotation.text!r}")
    return kept, wrong


def check_negatives(corpus: Corpus, negatives: RuleNegatives) -> None:
    kept, wrong = judged(corpus, negatives, OracleVerdict.FALSE)
    assert len(wrong) <= (1 - SHARE) * kept.total(), wrong
    share = {kind: kept[kind] / len(corpus.pairs) for kind in TYPES}
    assert share["replace-object"] >= 0.9
    assert share["replace-attribute"] >= 0.8
    assert share["swap-attribute"] >= 0.3
    assert share["replace-relation"] >= 0.1
    assert share["swap-object"] >= 0.05
    assert share["add-object"] >= 0.3


def check_turns(corpus: Corpus) -> None:
    options = ConversationOptions(types=("conversation", "short", "choice"), vocabulary=list_box_labels(), max_turns=0)
    said: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    wrong = []
    for pair, annotation in corpus.annotated(TemplateConversations(options)):
        for question, answer in zip(annotation.turns[::2], annotation.turns[1::2], strict=True):
            (letters if annotation.kind == "choice" else said)[answer.text.split(",")[0]] += 1
            if judge_turn(question.text, answer.text, read_scene(pair)) is not OracleVerdict.TRUE:
                wrong.append(f"{pair.caption!r}: {question.text} {answer.text}")
    assert not wrong
    assert said.total() > 25 * len(corpus.pairs)
    assert 0.47 <= said["Yes"] / (said["Yes"] + said["No"]) <= 0.53
    assert letters.keys() == set("ABCD")
    assert max(letters.values()) <= 1.2 * min(letters.values())


def test_kept_negatives_are_false_and_frequent(few: Corpus) -> None:
    check_negatives(few, RuleNegatives(SmallThesaurus(), few.pool))


def test_kept_positives_are_true(few: Corpus) -> None:
    kept, wrong = judged(few, RulePositives(SmallThesaurus(), few.pool), OracleVerdict.TRUE)
    assert len(wrong) <= (1 - SHARE) * kept.total(), wrong
    assert kept["replace-attribute"] >= 0.6 * FEW
    assert kept["replace-relation"] >= 0.25 * FEW
    assert kept["swap-object"] >= 0.3 * FEW


def test_every_turn_is_true_and_yes_and_no_are_even(few: Corpus) -> None:
    check_turns(Corpus(few.pairs[:FEWER], few.tokens[:FEWER], few.pool))


@pytest.mark.slow
@pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])
def test_the_same_holds_with_wordnet_on_two_thousand_scenes(many: Corpus) -> None:
    wordnet = load_wordnet()
    check_negatives(many, RuleNegatives(wordnet, many.pool))
    kept, wrong = judged(many, RulePositives(wordnet, many.pool), OracleVerdict.TRUE)
    assert len(wrong) <= (1 - SHARE) * kept.total(), wrong
    check_turns(many)
