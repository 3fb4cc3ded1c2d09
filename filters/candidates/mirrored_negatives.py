"""Mending by reuse: a generated negative that is true of another image becomes a positive there.

Whatever a writer's hand leaves in negatives tells nothing once it stands in positives too. A text is known to be true
of another image where a caption of that image says it word for word (but for capitals, spacing and the final mark).
The caption that it was made from is then the negative: what contradicts the text on its own image contradicts it
there. That is as sure as the row itself, and no surer, so the other image's captions and boxes are heard about it
(`flows.reusing`). Such a row mirrors the one it comes from, so the two tell nothing together.

An addition says all that its caption says, and more: where it is true, so is the caption. ADD rows are left out, and
rows with a positive of their own, which was written for one image.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pairwright.datasets.records import Pair
from pairwright.filters.scorers.image_groups import pair_group, text_group
from pairwright.generators.edit_checks.unwrapping import sameness

_ENTAILED_FORMS = ("add", "shuffle")


class CaptionsByImage:
    """Which images say what; made of pairs, one by one."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._groups: defaultdict[str, set[str]] = defaultdict(set)

    def learn(self, pair: Pair) -> None:
        """Add what a pair says of its image; pairs without one are of no use."""
        image = pair.image or pair.source_id
        if image:
            group = pair_group(pair)
            self._images.setdefault(group, image)
            for text in (pair.caption, *pair.captions):
                self._groups[sameness(text)].add(group)

    def other(self, text: str, but: str) -> tuple[str, str] | None:
        """Return (group, image) of the first other group that says a text; None when none does."""
        found = sorted(self._groups.get(sameness(text), set()) - {but})
        return (found[0], self._images[found[0]]) if found else None

    def says(self, group: str, text: str) -> bool:
        """Say whether a caption of the group is this text."""
        return group in self._groups.get(sameness(text), set())


def mirror_negatives(frame: pl.DataFrame, sayings: CaptionsByImage) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (group, row) for each kept row whose negative another image says: that image, the texts exchanged.

    Args:
        frame: with the columns of `candidates.py`.
        sayings: of all images known.
    """
    kept = frame.filter((pl.col("status") == "kept") & (pl.col("positive") == ""))
    names = ("id", "key", "image", "caption", "negative", "form", "target")
    seen: set[tuple[str, str, str]] = set()
    for id_, key, image, caption, negative, form, target in kept.select(names).iter_rows():
        found = sayings.other(negative, text_group(image, key, caption))
        if form in _ENTAILED_FORMS or found is None or sayings.says(found[0], caption):
            continue
        if (once := (found[0], sameness(negative), sameness(caption))) in seen:
            continue
        seen.add(once)
        row = {"image": found[1], "caption": negative, "negative": caption, "form": form, "target": target}
        yield found[0], {"id": f"{id_}-reused", "reused_from": id_, **row}
