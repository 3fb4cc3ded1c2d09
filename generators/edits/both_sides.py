"""Both-sides pairs: each negative with a hard positive, so that being edited does not distinguish them.

A benchmark that compares an original caption with an edited one can be solved by detecting the edit. Here the true text
is edited as well: with the same target if possible ("a large dog" and "a small cat" come with "a big dog"), else with
another. ADD and NEGATION make their own positives, since they lengthen the text.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pairwright.datasets.records import Annotation, Origin
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import EditedText, edited_annotation, first_valid_edit
from pairwright.generators.positives import BY_PREFERENCE, RewriteRule


class CaptionPositives:
    """The hard positives of one caption, made on demand; a positive is one row that several negatives may share.

    Args:
        rules: rewrite rules by type (`positives.rewrite_rules`).
        taken: texts that must not be written again; updated.
    """

    def __init__(
        self, rules: Mapping[str, RewriteRule], caption: Caption, taken: set[str], seed: int, origin: Origin
    ) -> None:
        self._rules, self._caption, self._taken = rules, caption, taken
        self._seed, self._origin = seed, origin
        self._made: dict[str, Annotation] = {}
        self.rows: list[Annotation] = []

    def find_id(self, kind: str) -> str:
        """Return the id of the positive for a negative of this type; empty if there is none."""
        for wanted in _order(kind):
            row = self._made.get(wanted) or self._make(wanted)
            if row.status == "kept":
                if row not in self.rows:
                    self.rows.append(row)
                return row.id
        return ""

    def add(self, found: EditedText, attempt: str) -> str:
        """Add the positive that was made with a negative, and return its id."""
        row = self._row(found, attempt)
        self.rows.append(row)
        return row.id

    def _make(self, kind: str) -> Annotation:
        rng = random.Random(self._seed + BY_PREFERENCE.index(kind))
        found = first_valid_edit(self._caption, self._rules[kind](self._caption, rng), self._taken)
        self._made[kind] = self._row(found, kind)
        return self._made[kind]

    def _row(self, found: EditedText, attempt: str) -> Annotation:
        return edited_annotation(found, self._caption.pair, "hard_positive", attempt, self._origin)


def _order(kind: str) -> Sequence[str]:
    """Return the types of positives for a negative, those of the same target and form first."""
    form, _, target = kind.partition("-")
    return sorted(BY_PREFERENCE, key=lambda other: (not other.endswith(target), not other.startswith(form)))


def with_positive(row: Annotation, positive_id: str) -> Annotation:
    """Return a negative with the id of its positive, rejected if there is none."""
    if row.status != "kept" or positive_id:
        return replace(row, positive_id=positive_id)
    return replace(row, status="rejected", reason="no_positive")
