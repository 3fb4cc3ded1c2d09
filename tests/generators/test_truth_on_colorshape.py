"""Rule-based texts against scenes whose truth is known."""

from collections import Counter
from collections.abc import Iterator

import pytest

from pairwright.datasets.colorshape.corpus import list_box_labels, read_scene
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.records import TRAINING_ONLY_FORMS, Annotation, Pair
from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations
from pairwright.generators.edit_types import NEGATIVE_TYPES
from pairwright.generators.language.wordnet import load_wordnet, wordnet_status
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives
from pairwright.generators.protocols import RuleGenerator, annotate_pairs
from tests.generators.rule_fixtures import Scenes, scenes

pytestmark = pytest.mark.skipif(not wordnet_status()[0], reason=wordnet_status()[1])

MANY = 2000
FEWER = 100  # of each there are many turns
WRONG = 0.001  # share of kept texts
NEGATIVES = tuple(kind for kind in NEGATIVE_TYPES if kind not in TRAINING_ONLY_FORMS)
RIGHT = {"hard_negative": OracleVerdict.FALSE, "hard_positive": OracleVerdict.TRUE}


def annotated(corpus: Scenes, generator: RuleGenerator) -> Iterator[tuple[Pair, Annotation]]:
    """Yield every annotation with its pair."""
    made = annotate_pairs(generator, zip(corpus.pairs, corpus.tokens, strict=True), seed=0)
    for pair, annotations in zip(corpus.pairs, made, strict=True):
        for annotation in annotations:
            yield pair, annotation


def check(corpus: Scenes, generator: RuleGenerator, kind: str) -> dict[str, float]:
    """Return the share of captions with a text of each type of a kind, if nearly all texts of both kinds are right."""
    kept: Counter[tuple[str, str]] = Counter()
    wrong = []
    for pair, annotation in annotated(corpus, generator):
        if annotation.status == "kept":
            kept[annotation.kind, f"{annotation.form}-{annotation.target}".removesuffix("-")] += 1
            verdict = judge(annotation.text, read_scene(pair))
            if verdict is not RIGHT[annotation.kind]:
                wrong.append(f"{verdict.name}: {annotation.source_text!r} -> {annotation.text!r}")
    assert len(wrong) <= max(1, WRONG * kept.total()), wrong
    return {named: count / len(corpus.pairs) for (of, named), count in kept.items() if of == kind}


def negatives(corpus: Scenes, *, both_sides: bool = False) -> RuleNegatives:
    options = NegativeOptions(NEGATIVES, vocabulary=tuple(list_box_labels()), both_sides=both_sides)
    return RuleNegatives(load_wordnet(), corpus.pool, options, corpus.model)


def positives(corpus: Scenes) -> RulePositives:
    return RulePositives(corpus.pool, model=corpus.model.cloze)


def check_negatives(corpus: Scenes) -> None:
    share = check(corpus, negatives(corpus), "hard_negative")
    assert share["replace-object"] >= 0.85
    assert share["replace-attribute"] >= 0.75
    assert share["replace-relation"] >= 0.08
    assert share["swap-object"] >= 0.35
    assert share["swap-attribute"] >= 0.35
    assert share["add-attribute"] >= 0.12
    assert share["negation"] >= 0.12


def check_turns(corpus: Scenes) -> None:
    options = ConversationOptions(types=("conversation", "short", "choice"), vocabulary=list_box_labels(), max_turns=0)
    said: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    wrong = []
    for pair, annotation in annotated(corpus, TemplateConversations(options)):
        for question, answer in zip(annotation.turns[::2], annotation.turns[1::2], strict=True):
            (letters if annotation.kind == "choice" else said)[answer.text.split(",")[0]] += 1
            if judge_turn(question.text, answer.text, read_scene(pair)) is not OracleVerdict.TRUE:
                wrong.append(f"{pair.caption!r}: {question.text} {answer.text}")
    assert not wrong
    assert said.total() > 25 * len(corpus.pairs)
    assert 0.47 <= said["Yes"] / (said["Yes"] + said["No"]) <= 0.53
    assert letters.keys() == set("ABCD")
    assert max(letters.values()) <= 1.2 * min(letters.values())


def test_kept_negatives_are_false_and_frequent() -> None:
    check_negatives(scenes())


def test_both_sides_of_a_pair_are_right() -> None:
    share = check(scenes(), negatives(scenes(), both_sides=True), "hard_positive")
    assert share["add-attribute"] >= 0.1
    assert share["negation"] >= 0.12


def test_kept_positives_are_true() -> None:
    share = check(scenes(), positives(scenes()), "hard_positive")
    assert share["replace-attribute"] >= 0.3
    assert share["replace-relation"] >= 0.1
    assert share["swap-object"] >= 0.3


def test_every_turn_is_true_and_yes_and_no_are_even() -> None:
    few = scenes()
    check_turns(Scenes(few.pairs[:FEWER], few.tokens[:FEWER], few.pool, few.model))


@pytest.mark.slow
def test_the_same_holds_on_two_thousand_scenes() -> None:
    many = scenes(MANY)
    check_negatives(many)
    check(many, positives(many), "hard_positive")
    check_turns(many)
