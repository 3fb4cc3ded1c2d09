"""Kinds of a sample's texts, and counts of those that an export format has no place for."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pairwright.datasets.records import TRAINING_ONLY_FORMS, Annotation
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

NEGATIVES: Final = "hard_negatives"
SHUFFLED: Final = "shuffled_negatives"  # of training-only forms, which no benchmark has
POSITIVES: Final = "hard_positives"
COMPARED: Final = "compared_positives"  # hard positives that a hard negative is compared with in place of the caption
CONVERSATIONS: Final = "conversations"
RATIONALES: Final = "rationales"

ALL_TEXTS: Final = frozenset({NEGATIVES, SHUFFLED, POSITIVES, COMPARED, CONVERSATIONS, RATIONALES})


@dataclass(frozen=True)
class OmittedTexts:
    """Counts the texts that a format omits while it reads the samples.

    Attributes:
        carried: kinds of texts that the format writes.
        counts: omitted texts by kind, of the last pass over the samples.
    """

    carried: frozenset[str]
    counts: Counter[str] = field(default_factory=Counter)

    def watch(self, source: SampleSource) -> SampleSource:
        """Return ``source``, whose passes are counted."""

        def samples() -> Iterator[Sample]:
            self.counts.clear()
            for sample in source.samples():
                self.counts.update(kind for kind in _kinds(sample) if kind not in self.carried)
                yield sample

        return replace(source, samples=samples)

    def by_kind(self) -> dict[str, int]:
        """Return the counts by kind; a compared positive is a hard positive here."""
        counts = Counter({kind: count for kind, count in self.counts.items() if kind != COMPARED})
        counts[POSITIVES] += self.counts[COMPARED]
        return {kind: count for kind, count in sorted(counts.items()) if count}


def _kinds(sample: Sample) -> Iterator[str]:
    """Yield the kind of each text of a sample."""
    compared = {annotation.positive_id for annotation in sample.annotations}
    for annotation in sample.annotations:
        yield _kind(annotation, compared)
    for _ in sample.examples:
        yield RATIONALES


def _kind(annotation: Annotation, compared: set[str]) -> str:
    if annotation.kind == "hard_negative":
        return SHUFFLED if annotation.form in TRAINING_ONLY_FORMS else NEGATIVES
    if annotation.kind == "hard_positive":
        return COMPARED if annotation.id in compared else POSITIVES
    return CONVERSATIONS
