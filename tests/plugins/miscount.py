"""Hard negatives that count wrong: "two dogs on a bed" becomes "four dogs on a bed"."""

import random
from collections.abc import Sequence
from dataclasses import replace

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.generators.captions.realisation import Change, rewrite
from pairwright.generators.language.tokens import Token
from pairwright.generators.registry import Materials


class Miscount:
    """Replaces the first number word by one that no caption of the image says."""

    name, version = "miscount", 1

    def __init__(self, materials: Materials, counts: Sequence[str] = ("two", "three", "four", "five")) -> None:
        self.counts, self.origin = counts, Origin(self.name, self.version, materials.seed)

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return one negative, kept or rejected."""
        said = " ".join((pair.caption, *pair.captions)).lower()
        free = [count for count in self.counts if count not in said]
        numbers = [token for token in tokens if free and token.text.lower() in self.counts]
        text, edits = rewrite(pair.caption, [Change(n.start, n.end, rng.choice(free)) for n in numbers[:1]])
        id_ = annotation_id(pair.key, "hard_negative", self.origin, "0", text)
        row = Annotation(id_, pair.key, "hard_negative", self.origin, "replace", "attribute", text, pair.caption, edits)
        return [row if edits else replace(row, text="", status="rejected", reason="no_edit")]
