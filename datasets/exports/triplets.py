"""Triplets JSONL export: ``image``, ``instruction``, ``output``, for instruction-conditioned embeddings (FocalLens).

Every question and answer of a conversation is one line with the same image. Lines of one image are adjacent, also if it has
several pairs (one per caption), so that a batch can have several instructions for one image, which the model has to
distinguish. A repeated line of an image is written once: in one batch it would be its own negative.

Outputs are compared as texts by CLIP, which reads 77 tokens: the result counts longer ones, and `max_tokens` truncates
them.

Memory: the image names, twice; and the lines of images whose pairs are not adjacent in the source.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.clip_tokens import (
    CLIP_CONTEXT_LENGTH,
    TokenCounter,
    make_approximate_counter,
    make_exact_counter,
)
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    iter_exchanges,
    list_conversations,
    write_json_lines,
)
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

_Row = dict[str, Any]


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write every exchange of ``source`` to the JSONL file ``out``.

    Returns:
        The result, with details ``images``; ``without_conversations`` (pairs); ``without_instruction`` (exchanges whose
        question is the image alone); ``repeated`` (duplicate lines); ``longest``
        (output in tokens), ``over_77`` (longer outputs) and ``counted_by``; ``cut`` (truncated outputs);
        ``packed_images`` (see `ImageNames.packed`).

    Raises:
        UsageError: if the tokenizer cannot be read.
    """
    length = make_exact_counter(options.tokenizer) if options.tokenizer else make_approximate_counter()
    triplets = _TripletRows(source, options, length)
    return replace(write_json_lines(triplets.rows(), out), details=triplets.details())


@dataclass
class _TripletRows:
    source: SampleSource
    options: ExportOptions
    length: TokenCounter
    images: int = 0
    repeated: int = 0
    longest: int = 0
    over: int = 0
    cut: int = 0
    without: int = 0
    uninstructed: int = 0
    names: ImageNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = ImageNames(self.options)

    def rows(self) -> Iterator[_Row]:
        """Yield the lines, image by image, each at its last pair."""
        last: dict[str, int] = {}
        for number, sample in enumerate(self.source.samples()):
            last[_image_id(sample)] = number
        held: defaultdict[str, dict[tuple[str, str], _Row]] = defaultdict(dict)
        for number, sample in enumerate(self.source.samples()):
            image = _image_id(sample)
            self._take(sample, held[image])
            if last[image] == number:
                rows = held.pop(image)
                self.images += bool(rows)
                yield from rows.values()

    def details(self) -> dict[str, Any]:
        return {
            "images": self.images,
            "without_conversations": self.without,
            "without_instruction": self.uninstructed,
            "repeated": self.repeated,
            "longest": self.longest,
            f"over_{CLIP_CONTEXT_LENGTH}": self.over,
            "counted_by": self.length.by,
            "cut": self.cut,
            **self.names.details(),
        }

    def _take(self, sample: Sample, rows: dict[tuple[str, str], _Row]) -> None:
        found = list_conversations(sample)
        self.without += not found
        name = self.names.name(sample) if found else ""
        for annotation in found:
            for instruction, output in iter_exchanges(annotation.turns):
                if not instruction:
                    self.uninstructed += 1
                elif (instruction, output) in rows:
                    self.repeated += 1
                else:
                    shown = self._measured(output)
                    rows[instruction, output] = {"image": name, "instruction": instruction, "output": shown}

    def _measured(self, output: str) -> str:
        tokens = self.length.count(output)
        self.longest = max(self.longest, tokens)
        self.over += tokens > CLIP_CONTEXT_LENGTH
        if not self.options.max_tokens or tokens <= self.options.max_tokens:
            return output
        self.cut += 1
        return self.length.cut(output, self.options.max_tokens)


def _image_id(sample: Sample) -> str:
    return sample.pair.image or sample.pair.key
