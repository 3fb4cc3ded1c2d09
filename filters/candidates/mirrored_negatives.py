"""Mirrored negatives: a generated negative that is true of another image becomes a positive there.

Patterns that a generator leaves in negatives detect nothing once they occur in positives as often. A text is true of
another image where a caption of that image equals it (except for capitals, spacing and the final mark). The caption
that it was made from is then the negative: what contradicts the text on its own image contradicts it there. That is as
certain as the original row, so the other image's captions and boxes are checked too
(`flows/commands/mirror_negatives.py`). The row mirrors the original, so both together detect nothing.

An addition entails its caption: where it is true, the caption is true. ADD rows are skipped, and so are rows with their
own positive, which was written for one image.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pairwright.datasets.records import Pair
from pairwright.filters.scorers.image_groups import pair_group, text_group
from pairwright.generators.edits.written.sentence_extraction import comparison_key

_ENTAILED_FORMS = ("add", "shuffle")


class CaptionsByImage:
    """Index of the captions of images; pairs are added one by one."""

    def __init__(self) -> None:
        self._images: dict[str, str] = {}
        self._groups: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, pair: Pair) -> None:
        """Add the captions of a pair; pairs without an image are ignored."""
        image = pair.image or pair.source_id
        if image:
            group = pair_group(pair)
            self._images.setdefault(group, image)
            for text in (pair.caption, *pair.captions):
                self._groups[comparison_key(text)].add(group)

    def other_image(self, text: str, but: str) -> tuple[str, str] | None:
        """Return (group, image) of the first other group with this caption; None without one."""
        found = sorted(self._groups.get(comparison_key(text), set()) - {but})
        return (found[0], self._images[found[0]]) if found else None

    def has_caption(self, group: str, text: str) -> bool:
        """Return whether a caption of the group equals this text."""
        return group in self._groups.get(comparison_key(text), set())


def mirror_negatives(frame: pl.DataFrame, captions: CaptionsByImage) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (group, row) for each kept row whose negative is a caption of another image: its mirrored row.

    Args:
        frame: with the columns of `rows.py`.
        captions: of all known images.
    """
    kept = frame.filter((pl.col("status") == "kept") & (pl.col("positive") == ""))
    names = ("id", "key", "image", "caption", "negative", "form", "target")
    seen: set[tuple[str, str, str]] = set()
    for id_, key, image, caption, negative, form, target in kept.select(names).iter_rows():
        found = captions.other_image(negative, text_group(image, key, caption))
        if form in _ENTAILED_FORMS or found is None or captions.has_caption(found[0], caption):
            continue
        if (once := (found[0], comparison_key(negative), comparison_key(caption))) in seen:
            continue
        seen.add(once)
        row = {"image": found[1], "caption": negative, "negative": caption, "form": form, "target": target}
        yield found[0], {"id": f"{id_}-reused", "reused_from": id_, **row}
