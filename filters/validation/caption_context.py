"""Validation by the other captions and boxes of the image, on text only.

A negative that another caption of the image states, or a box shows, is a false negative; so is one that rewords its
caption. The edit checks decide (`generators.edits.written`), whatever wrote the row and however much it changes; their
objections to its form are ignored here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pairwright.datasets.records import Box, Pair, pair_key
from pairwright.filters.scorers.image_groups import pair_group
from pairwright.filters.validation.verdicts import ValidationRow, ValidationVerdict
from pairwright.generators.captions.caption import Caption
from pairwright.generators.triples import DISQUALIFYING_REASONS, CachingTagger, Triples

NAME: Final = "context"


@dataclass(slots=True)
class ImageFacts:
    """Known facts about an image: its captions, each once, and its boxes."""

    captions: dict[str, None] = field(default_factory=dict)
    boxes: dict[Box, None] = field(default_factory=dict)

    def add(self, pair: Pair) -> None:
        """Add the captions and boxes of a pair."""
        self.captions.update(dict.fromkeys((pair.caption, *pair.captions)))
        self.boxes.update(dict.fromkeys(pair.boxes))


def collect_facts(pairs: Iterable[Pair], groups: Iterable[str]) -> dict[str, ImageFacts]:
    """Return the facts of the images with these groups (`image_groups.pair_group`)."""
    known = {group: ImageFacts() for group in groups}
    for pair in pairs:
        if (found := known.get(pair_group(pair))) is not None:
            found.add(pair)
    return known


def check_by_context(
    questions: Iterable[tuple[ValidationRow, str, str]],
    known: Mapping[str, ImageFacts],
    triples: Triples,
    tagger: CachingTagger,
) -> Iterator[ValidationVerdict]:
    """Yield the verdict of each row, in order.

    Args:
        questions: each with its group and its type (empty if unknown).
        known: facts of each group.
        triples: reads negatives unchanged (``as_given``).
        tagger: of ``triples``.
    """
    for question, group, kind in questions:
        about = known.get(group, ImageFacts())
        others = tuple(text for text in about.captions if text != question.positive)
        pair = Pair(
            pair_key(NAME, question.id, question.positive), question.positive, captions=others, boxes=tuple(about.boxes)
        )
        caption = Caption(pair, tagger.tag([question.positive])[0])
        reason = triples.read(caption, question.negative, kind, ()).reason
        yield ValidationVerdict(reason if reason in DISQUALIFYING_REASONS else "")
