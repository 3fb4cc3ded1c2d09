"""Rows of the image-text matching task, made from hard negatives.

Each negative gives a row with the answer "no". The true text that it competes with (its hard positive, or else the
caption) gives one row with the answer "yes", however many negatives it has. The known facts of a row are the image's
captions and box labels; the caption that is judged is not among them, unless it is the only one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pairwright.datasets.exports.writing import find_positive, list_negatives
from pairwright.datasets.records import Pair
from pairwright.datasets.shards.samples import Sample

RawRow = tuple[Mapping[str, Any], str]
"""A row with ``known``, ``caption``, ``label`` and ``image``, and the key of its pair."""


def rows_from_sample(sample: Sample) -> Iterator[RawRow]:
    """Yield the rows of a sample's hard negatives and of the texts that they compete with."""
    pair, judged = sample.pair, dict[str, None]()
    captions = (pair.caption, *pair.captions)
    labels = tuple(dict.fromkeys(box.label for box in pair.boxes))
    for negative in list_negatives(sample):
        true = find_positive(sample, negative)
        judged[true] = None
        yield _row((*captions, *labels), negative.text, "no", pair)
    for text in judged:
        others = tuple(caption for caption in captions if caption != text) or captions
        yield _row((*others, *labels), text, "yes", pair)


def rows_from_candidate(candidate: Mapping[str, Any], judged: set[tuple[str, str]]) -> Iterator[RawRow]:
    """Yield the rows of a candidate row (caption, negative, positive, ...).

    Args:
        candidate: a kept candidate row.
        judged: (image, text) of existing "yes" rows; extended in place.
    """
    caption, true = candidate["caption"], candidate["positive"] or candidate["caption"]
    pair = Pair(candidate["key"], caption, image=candidate["image"])
    yield _row((caption,), candidate["negative"], "no", pair)
    image = candidate["key"] or candidate["image"] or caption
    if (image, true) not in judged:
        judged.add((image, true))
        yield _row((caption,), true, "yes", pair)


def _row(known: tuple[str, ...], caption: str, label: str, pair: Pair) -> RawRow:
    return {"known": list(dict.fromkeys(known)), "caption": caption, "label": label, "image": pair.image}, pair.key
