"""Two-choice questions for benchmarks of generative models: which of two captions fits the image.

Every hard negative gives two questions, with the true caption first and second: a model that prefers a position has one of
them right. Training-only forms (shuffled negatives) are omitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pairwright.datasets.exports.chats import list_usable_negatives
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

QUESTION = "Which caption describes the image?"


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with two options.

    Attributes:
        pair: the same for the two questions of a negative.
        options: A and B.
        answer: ``A`` or ``B``.
        category: type of the negative.
    """

    pair: str
    options: tuple[str, str]
    answer: str
    category: str


@dataclass
class ChoiceSource:
    """Questions of a source, with the number of pairs that give none.

    Attributes:
        source: samples.
        without: pairs without an image or hard negatives.
    """

    source: SampleSource
    without: int = 0

    def each(self) -> Iterator[tuple[Sample, list[Choice]]]:
        """Yield each sample that has questions, with these."""
        for sample in self.source.samples_with_images():
            usable = list_usable_negatives(sample)
            if not usable or not sample.pair.image:
                self.without += 1
                continue
            yield sample, list(_choices(sample.pair.key, usable))


def _choices(key: str, usable: list[tuple[str, str, str]]) -> Iterator[Choice]:
    for number, (positive, negative, category) in enumerate(usable):
        pair = f"{key}-{number}"
        yield Choice(pair, (positive, negative), "A", category)
        yield Choice(pair, (negative, positive), "B", category)
