"""Table of the constraints on edits by rules and by language models.

A *constraint* is a pure predicate over a proposed edit, with a reason code, an edit that it blocks and one that it
allows. `first_violated` returns the first of those that apply to an edit (`applicable_constraints`).

Groups: "grammar" applies to every edit; "truth" rejects negatives that may be true of the image and positives that may
be false; "plausibility" rejects edits that are untypical of the pool, by rules only.

Examples write the caption with the replaced words in brackets, or "|" where words are added.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.datasets.records import Box
from pairwright.generators.edits.constraints import grammar, image, meaning, plausibility, scope, stated, swapped
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.object_classifier import OBJECT_CLASSIFIER
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.relation_classifier import RELATION_CLASSIFIER

Predicate = Callable[[ProposedEdit, Knowledge], bool]


@dataclass(frozen=True, slots=True)
class EditExample:
    """An example edit: a caption with its replaced words marked, the new words, and the other captions and boxes.

    Attributes:
        caption: with "[...]" around the replaced words, or around both spans of a swap, or "|" for an addition.
        new: new words; empty for a swap.
        type: form and target ("replace-object").
    """

    caption: str
    new: str
    type: str
    others: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that an edit must not meet.

    Attributes:
        id: unique name, for counts and to skip it.
        group: "grammar", "truth" or "plausibility".
        reason: reason code of rejected edits.
        types: types of edits to which it applies, such as "replace-*"; "*" is all.
        violated: predicate that is true for rejected edits.
        blocked: example that violates it.
        allowed: similar example that does not.
        kind: of the annotations to which it applies.
        by_place: depends on the replaced tokens only, whatever replaces them.
        of_rules: types of edits by rules to which it applies, if not `types`: rules propose no others that violate it.
        of_texts: whether it applies to texts by a model.
    """

    id: str
    group: str
    reason: str
    types: tuple[str, ...]
    violated: Predicate
    blocked: EditExample
    allowed: EditExample
    kind: str = "hard_negative"
    by_place: bool = False
    of_rules: tuple[str, ...] | None = None
    of_texts: bool = True

    def applies_to(self, kind: str, form: str, target: str, *, by_rules: bool) -> bool:
        """Return whether it applies to edits of a kind, form and target, by rules or by a model."""
        types = self.types if self.of_rules is None or not by_rules else self.of_rules
        relevant = kind == self.kind and (by_rules or self.of_texts)
        return relevant and not {f"{form}-{target}", f"{form}-*", f"*-{target}", "*"}.isdisjoint(types)


def first_violated(constraints: Iterable[Constraint], edit: ProposedEdit, known: Knowledge) -> Constraint | None:
    """Return the first of some constraints that an edit violates, or None."""
    for each in constraints:
        if each.violated(edit, known):
            return each
    return None


@lru_cache(maxsize=1_000)
def applicable_constraints(
    kind: str, form: str, target: str, *, by_rules: bool, skip: frozenset[str] = frozenset()
) -> tuple[Constraint, ...]:
    """Return the constraints that apply to edits, in the order in which they are checked, without some ids or groups."""
    return tuple(
        each
        for each in CONSTRAINTS
        if skip.isdisjoint((each.id, each.group)) and each.applies_to(kind, form, target, by_rules=by_rules)
    )


_THINGS: Final = ("replace-object", "add-object")
_QUALITIES: Final = ("replace-attribute", "add-attribute", "swap-attribute")
_DOGS: Final = tuple(Box("dog", x, 0.1, x + 0.1, 0.3) for x in (0.0, 0.3, 0.6))
_LEFT_RIGHT: Final = (Box("dog", 0.8, 0.1, 0.9, 0.3), Box("cat", 0.5, 0.1, 0.6, 0.3))

CONSTRAINTS: Final[tuple[Constraint, ...]] = (
    Constraint(
        "in_name", "grammar", "not_grammatical", ("replace-attribute",), grammar.is_in_proper_name,
        EditExample("A fan of the [Red] Sox on a bench", "blue", "replace-attribute"),
        EditExample("A fan of the [red] bus on a bench", "blue", "replace-attribute"),
        by_place=True, of_texts=False,
    ),
    Constraint(
        "repeated_noun", "grammar", "not_grammatical", ("replace-object",), grammar.has_second_instance,
        EditExample("a [dog] beside another dog", "horse", "replace-object"),
        EditExample("a [dog] beside another animal", "horse", "replace-object"),
        by_place=True,
    ),
    Constraint(
        "negation_word", "truth", "another_target", ("replace-*", "swap-*", "add-*"), scope.changes_negation,
        EditExample("a street [with] cars", "without", "replace-relation"),
        EditExample("a cat [under] a table", "on", "replace-relation"),
        of_rules=(),
    ),
    Constraint(
        "negation_scope", "truth", "true_of_image", ("*",), scope.is_in_negation_scope,
        EditExample("a street with no [cars] on it", "buses", "replace-object"),
        EditExample("a [street] with no cars on it", "beach", "replace-object"),
        by_place=True,
    ),
    Constraint(
        "disjunction", "truth", "true_of_image", ("*",), scope.is_in_disjunction,
        EditExample("a [cat] or a dog on a bed", "horse", "replace-object"),
        EditExample("a cat and a dog on a [bed]", "roof", "replace-object"),
        by_place=True,
    ),
    Constraint(
        "in_coordination", "truth", "true_of_image", ("replace-object",), scope.is_in_coordination,
        EditExample("a chair and a [cat]", "boat", "replace-object"),
        EditExample("a [cat] under a chair", "boat", "replace-object"),
        by_place=True, of_texts=False,
    ),
    Constraint(
        "same_object", "truth", "same_meaning", ("replace-object",), meaning.is_same_object,
        EditExample("a man on a [couch]", "sofa", "replace-object"),
        EditExample("a man on a [bench]", "chair", "replace-object"),
        of_rules=(),
    ),
    Constraint(
        "same_attribute", "truth", "same_meaning", ("replace-attribute",), meaning.is_same_attribute,
        EditExample("a [big] dog on a bed", "large", "replace-attribute"),
        EditExample("a [big] dog on a bed", "small", "replace-attribute"),
        of_rules=(),
    ),
    Constraint(
        "same_relation", "truth", "same_meaning", ("replace-relation",), meaning.is_same_relation,
        EditExample("a dog [next to] a bed", "near", "replace-relation"),
        EditExample("a dog [next to] a bed", "under", "replace-relation"),
        of_rules=(),
    ),
    Constraint(
        "not_entailed", "truth", "may_be_false", ("replace-*",), meaning.is_not_entailed,
        EditExample("a [dog] on a sofa", "puppy", "replace-object"),
        EditExample("a [dog] on a sofa", "animal", "replace-object"),
        "hard_positive",
    ),
    Constraint(
        "unstated_addition", "truth", "may_be_false", ("add-*",), stated.is_unstated,
        EditExample("a dog on a bed |", "lamp", "add-object", ("a dog on a bed with a kite",)),
        EditExample("a dog on a bed |", "lamp", "add-object", ("a dog on a bed next to a lamp",)),
        "hard_positive",
    ),
    Constraint(
        "uncoordinated_swap", "truth", "may_be_false", ("swap-*",), swapped.is_not_coordination,
        EditExample("a [man] and [his dog]", "", "swap-object"),
        EditExample("a [man] and [a dog]", "", "swap-object"),
        "hard_positive",
    ),
    Constraint(
        "symmetric_swap", "truth", "same_meaning", ("swap-object",), swapped.is_symmetric,
        EditExample("a [dog] next to a [cat]", "", "swap-object"),
        EditExample("a [dog] under a [cat]", "", "swap-object"),
    ),
    Constraint(
        "shared_predicate", "truth", "true_of_image", ("swap-object",), swapped.has_shared_predicate,
        EditExample("a [cat] lying on a bed next to a [dog]", "", "swap-object"),
        EditExample("a [cat] lying on a bed next to a [dog] eating food", "", "swap-object"),
        of_texts=False,
    ),
    Constraint(
        "permuted_list", "truth", "true_of_image", ("swap-object",), swapped.is_in_one_list,
        EditExample("a [bed] with a lamp and a [table]", "", "swap-object"),
        EditExample("a man with a [hat] and a woman with a [dress]", "", "swap-object"),
    ),
    Constraint(
        "same_count_swap", "truth", "same_meaning", ("swap-attribute",), swapped.has_same_count,
        EditExample("[three] men look at [some] dogs", "", "swap-attribute"),
        EditExample("[two] men look at [five] dogs", "", "swap-attribute"),
    ),
    Constraint(
        "same_noun_swap", "truth", "same_meaning", ("swap-attribute",), swapped.modifies_same_noun,
        EditExample("a [white] blue and [red] train", "", "swap-attribute"),
        EditExample("a [black] cat and a [white] dog", "", "swap-attribute"),
    ),
    Constraint(
        "ubiquitous_object", "truth", "true_of_image", _THINGS, plausibility.is_ubiquitous,
        EditExample("a dog on a bed | .", "floor", "add-object"),
        EditExample("a dog on a bed | .", "kite", "add-object"),
    ),
    Constraint(
        "frequent_cooccurrence", "truth", "true_of_image", ("replace-object",), plausibility.often_cooccurs,
        EditExample("a bowl of [soup] on a table", "chicken", "replace-object"),
        EditExample("a bowl of [soup] on a table", "rice", "replace-object"),
    ),
    Constraint(
        "unnatural_relation", "plausibility", "no_candidate", ("replace-relation",), RELATION_CLASSIFIER.is_unnatural,
        EditExample("a plate [near] a table", "walk on", "replace-relation"),
        EditExample("a cat [near] a table", "walk on", "replace-relation"),
        of_texts=False,
    ),
    Constraint(
        "probable_relation", "truth", "true_of_image", ("replace-relation",), RELATION_CLASSIFIER.may_be_true,
        EditExample("a man [with] a dog", "near", "replace-relation"),
        EditExample("a man [sitting on] a bench", "stand on", "replace-relation"),
        of_texts=False,
    ),
    Constraint(
        "unnatural_object", "plausibility", "no_candidate", ("replace-object",), OBJECT_CLASSIFIER.is_unnatural,
        EditExample("a [cat] on a table", "boat", "replace-object"),
        EditExample("a [cat] on a table", "plate", "replace-object"),
        of_texts=False,
    ),
    Constraint(
        "probable_object", "truth", "true_of_image", ("replace-object",), OBJECT_CLASSIFIER.may_be_true,
        EditExample("a [plate] on a table", "bowl", "replace-object"),
        EditExample("a [plate] on a table", "boat", "replace-object"),
        of_texts=False,
    ),
    Constraint(
        "unseen_attribute", "plausibility", "no_candidate", ("replace-attribute",), plausibility.is_unseen_attribute,
        EditExample("a [red] cat on a table", "wooden", "replace-attribute"),
        EditExample("a [red] chair at a table", "wooden", "replace-attribute"),
        of_texts=False,
    ),
    Constraint(
        "countability", "plausibility", "no_candidate", ("replace-object",), plausibility.has_wrong_countability,
        EditExample("a bowl of [soup] on a table", "sandwich", "replace-object"),
        EditExample("a bowl of [soup] on a table", "rice", "replace-object"),
        of_texts=False,
    ),
    Constraint(
        "pronoun_agreement", "grammar", "not_grammatical", ("replace-object",), grammar.disagrees_with_pronoun,
        EditExample("A [man] walks his dog", "woman", "replace-object"),
        EditExample("A [man] walks a dog", "woman", "replace-object"),
        of_texts=False,
    ),
    Constraint(
        "one_of_several", "truth", "true_of_image", ("replace-relation", "replace-attribute", "add-attribute"), image.may_hold_of_other_instance,
        EditExample("a [brown] dog on a bed", "white", "replace-attribute", ("two dogs on a bed",)),
        EditExample("[brown] dogs on a bed", "white", "replace-attribute", ("two dogs on a bed",)),
        of_rules=("replace-relation", "replace-attribute"),
    ),
    Constraint(
        "implausible", "plausibility", "no_candidate", ("replace-attribute",), plausibility.is_implausible,
        EditExample("a [red] bus on a street", "wooden", "replace-attribute"),
        EditExample("a [red] bus at a table", "wooden", "replace-attribute"),
        of_texts=False,
    ),
    Constraint(
        "stated_attribute", "truth", "true_of_image", _QUALITIES, image.is_stated_attribute,
        EditExample("a [red] bus on a street", "green", "replace-attribute", ("the bus is big and green",)),
        EditExample("a [red] bus on a street", "green", "replace-attribute", ("a bus near a green car",)),
        of_rules=("replace-attribute", "swap-attribute"),
    ),
    Constraint(
        "possible_count", "truth", "true_of_image", _QUALITIES, image.may_be_count,
        EditExample("[two] dogs here", "three", "replace-attribute", boxes=_DOGS),
        EditExample("[two] dogs here", "four", "replace-attribute", boxes=_DOGS),
        of_rules=("replace-attribute", "swap-attribute"),
    ),
    Constraint(
        "stated_object", "truth", "true_of_image", _THINGS, image.is_stated_object,
        EditExample("a [dog] on a bed", "cat", "replace-object", ("two cats on a bed",)),
        EditExample("a [dog] on a bed", "cat", "replace-object", ("a dog and a lamp",)),
        of_rules=("replace-object",),
    ),
    Constraint(
        "possible_position", "truth", "true_of_image", ("replace-relation", "swap-object"), image.may_hold_by_boxes,
        EditExample("a dog [to the left of] a cat", "to the right of", "replace-relation", boxes=_LEFT_RIGHT),
        EditExample("a dog [to the right of] a cat", "to the left of", "replace-relation", boxes=_LEFT_RIGHT),
    ),
    Constraint(
        "stated_relation", "truth", "true_of_image", ("replace-relation", "swap-object"), image.is_stated_relation,
        EditExample("flowers [next to] a vase", "in", "replace-relation", ("a vase full of flowers",)),
        EditExample("flowers [next to] a vase", "in", "replace-relation", ("flowers beside a vase",)),
    ),
    Constraint(
        "stated_action", "truth", "true_of_image", ("replace-relation",), image.is_stated_action,
        EditExample("a man [sitting on] a bench", "stand on", "replace-relation", ("someone stands there",)),
        EditExample("a man [sitting on] a bench", "stand on", "replace-relation", ("someone sits there",)),
    ),
)  # fmt: skip
"""In the order in which they are checked: cheap ones that reject many edits come first."""
