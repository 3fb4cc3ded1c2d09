"""Table of the constraints on edits by rules and by language models.

A *constraint* is a pure predicate over a proposed edit, with a reason code, an edit that it blocks and one that it
allows. `find_violation` returns the first violated one.

Groups: "grammar" applies to every edit; "truth" rejects negatives that may be true of the image and positives that may
be false; "plausibility" rejects edits that are untypical of the pool, by rules only. ``lexicon/data/constraints.tsv`` has
all but the predicates.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.datasets.records import Box
from pairwright.generators.edits.constraints import (
    grammar,
    image,
    meaning,
    plausibility,
    scope,
    stated,
    swapped,
)
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.object_classifier import OBJECT_CLASSIFIER
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.relation_classifier import RELATION_CLASSIFIER
from pairwright.generators.lexicon.tables import read_rows

Predicate = Callable[[ProposedEdit, Knowledge], bool]


@dataclass(frozen=True, slots=True)
class EditExample:
    """An example edit: a caption with its replaced words marked, the new words, and the other captions and boxes.

    Attributes:
        caption: with "[...]" around the replaced words, or around both spans of a swap, or "|" for an addition.
        new: new words; empty for a swap.
        type: form and target ("replace-object").
        others: other captions of the image.
        boxes: of the image.
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
        id: unique name, for counts and for the ``skip`` of `find_violation`.
        group: "grammar", "truth" or "plausibility".
        reason: reason code of rejected edits.
        kind: of the annotations to which it applies.
        types: types of edits to which it applies, such as "replace-*"; "*" is all.
        of_rules: the same for edits by rules, which propose no others that violate it.
        violated: predicate that is true for rejected edits.
        blocked: example that violates it.
        allowed: similar example that does not.
        by_place: depends on the replaced tokens only, whatever replaces them.
        of_texts: whether it applies to texts by a model.
    """

    id: str
    group: str
    reason: str
    kind: str
    types: tuple[str, ...]
    of_rules: tuple[str, ...]
    violated: Predicate
    blocked: EditExample
    allowed: EditExample
    by_place: bool
    of_texts: bool

    def applies_to(self, kind: str, form: str, target: str, *, by_rules: bool) -> bool:
        """Return whether it applies to edits of a kind, form and target, by rules or by a model."""
        relevant = kind == self.kind and (by_rules or self.of_texts)
        types = self.of_rules if by_rules else self.types
        return relevant and not {f"{form}-{target}", f"{form}-*", f"*-{target}", "*"}.isdisjoint(types)


def find_violation(
    edit: ProposedEdit, known: Knowledge, *, by_rules: bool = False, skip: frozenset[str] = frozenset()
) -> Constraint | None:
    """Return the first constraint that an edit violates, or None.

    Args:
        edit: the proposed edit.
        known: WordNet and pool statistics.
        by_rules: whether the edit is by rules, else by a model.
        skip: ids or groups of constraints that are not checked.
    """
    constraints = applicable_constraints(edit.kind, edit.form, edit.target, by_rules=by_rules, skip=skip)
    return first_violated(constraints, edit, known)


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
    """Return the constraints that apply to a type of edits, in the order in which they are checked."""
    return tuple(
        each
        for each in CONSTRAINTS
        if skip.isdisjoint((each.id, each.group)) and each.applies_to(kind, form, target, by_rules=by_rules)
    )


_PREDICATES: Final[Mapping[str, Predicate]] = {
    "in_name": grammar.is_in_proper_name,
    "repeated_noun": grammar.has_second_instance,
    "negation_word": scope.changes_negation,
    "negation_scope": scope.is_in_negation_scope,
    "disjunction": scope.is_in_disjunction,
    "in_coordination": scope.is_in_coordination,
    "same_object": meaning.is_same_object,
    "same_attribute": meaning.is_same_attribute,
    "same_relation": meaning.is_same_relation,
    "not_entailed": meaning.is_not_entailed,
    "unstated_addition": stated.is_unstated,
    "uncoordinated_swap": swapped.is_not_coordination,
    "symmetric_swap": swapped.is_symmetric,
    "permuted_list": swapped.is_in_one_list,
    "same_count_swap": swapped.has_same_count,
    "same_noun_swap": swapped.modifies_same_noun,
    "ubiquitous_object": plausibility.is_ubiquitous,
    "frequent_cooccurrence": plausibility.often_cooccurs,
    "unnatural_relation": RELATION_CLASSIFIER.is_unnatural,
    "probable_relation": RELATION_CLASSIFIER.may_be_true,
    "unnatural_object": OBJECT_CLASSIFIER.is_unnatural,
    "probable_object": OBJECT_CLASSIFIER.may_be_true,
    "unseen_attribute": plausibility.is_unseen_attribute,
    "countability": plausibility.has_wrong_countability,
    "pronoun_agreement": grammar.disagrees_with_pronoun,
    "plural_subject": image.may_hold_of_some,
    "one_of_several": image.may_hold_of_other_instance,
    "implausible": plausibility.is_implausible,
    "stated_attribute": image.is_stated_attribute,
    "possible_count": image.may_be_count,
    "stated_object": image.is_stated_object,
    "possible_position": image.may_hold_by_boxes,
    "stated_relation": image.is_stated_relation,
    "stated_action": image.is_stated_action,
}


def _constraint(row: Mapping[str, str]) -> Constraint:
    """Return a constraint from its row in ``constraints.tsv``, whose header comment explains the columns."""
    boxes = tuple(_box(cell) for cell in row["boxes"].split(";") if cell)
    types = tuple(row["types"].split())
    return Constraint(
        row["id"],
        row["group"],
        row["reason"],
        row["kind"] or "hard_negative",
        types,
        {"": types, "-": ()}.get(row["rules"], tuple(row["rules"].split())),
        _PREDICATES[row["id"]],
        _example(row["blocked"], row["example"], boxes),
        _example(row["allowed"], row["example"], boxes),
        by_place=bool(row["place"]),
        of_texts=not row["texts"],
    )


def _example(cell: str, kind: str, boxes: tuple[Box, ...]) -> EditExample:
    caption, _, rest = cell.partition(" ->")
    new, *others = [part.strip() for part in rest.split(";")]
    return EditExample(caption, new, kind, tuple(others), boxes)


def _box(cell: str) -> Box:
    label, *corners = cell.split()
    return Box(label, *map(float, corners))


CONSTRAINTS: Final = tuple(map(_constraint, read_rows("constraints")))
