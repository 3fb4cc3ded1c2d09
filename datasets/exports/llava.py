"""LLaVA JSON export: one conversation per row, as LLaVA's and LLaVA-1.5's training code reads it.

A row is ``id``, ``image`` and ``conversations`` of ``{"from": "human" | "gpt", "value"}``. The token ``<image>`` occurs
exactly once, in the first human turn, before or after the question at random (a function of seed, key and ordinal). Several
images are a list, with a token for each where the questions show it, as in LLaVA-NeXT-Interleave. Rows of
a text-only pair have neither ``image`` nor token. Any other ``<image>`` in a text is written ``< image >``, as a trainer would
read it as another image. `verification.llava_json.check_llava` validates the file.

Rows whose image file is missing are written, and counted as ``missing_images``; images inside existing tars and tables
are ``packed_images``; pairs without a conversation have no row,
and are counted as ``without_conversations``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.chats import require_marks
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    list_conversations,
    write_json_list,
)
from pairwright.datasets.image_marks import count_marks, mark_beside
from pairwright.datasets.images.loading import split_locator
from pairwright.datasets.records import IMAGE_TOKEN, Annotation
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.sample_source import SampleSource

VERSION = 1
_ROLE_NAMES = {"human": "human", "assistant": "gpt"}


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the conversations of ``source`` to the JSON file ``out``.

    Details: ``missing_images``, ``without_conversations``, ``packed_images``.
    """
    rows = _LlavaRows(source, options)
    written = write_json_list(rows.each(), out)
    rows.names.packed -= rows.missing
    counts = {"missing_images": len(rows.missing), "without_conversations": rows.without, **rows.names.details()}
    return replace(written, details=counts)


@dataclass
class _LlavaRows:
    source: SampleSource
    options: ExportOptions
    missing: set[str] = field(default_factory=set)
    without: int = 0
    names: ImageNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = ImageNames(self.options)

    def each(self) -> Iterator[dict[str, Any]]:
        for sample in self.source.samples():
            found = list_conversations(sample)
            self.without += not found
            images = self.names.names(sample) if found else []
            if images and sample.image is None:
                self.missing.update(filter(self._is_missing, sample.locators))
            for ordinal, annotation in enumerate(found):
                row: dict[str, Any] = {"id": f"{sample.pair.key}-{ordinal}"}
                if images:
                    row["image"] = images if len(images) > 1 else images[0]
                before = make_rng(self.options.seed, 0, "llava", VERSION, sample.pair.key, ordinal).random() < 0.5
                row["conversations"] = list(_turns(annotation, len(images), before=before))
                yield row

    def _is_missing(self, locator: str) -> bool:
        """Return whether the image's file, or the tar or table that holds it, does not exist; URLs are not checked."""
        if self.options.images is not None or "://" in locator:
            return False
        path, _ = split_locator(locator)
        return not (self.options.image_root or Path()).joinpath(path).is_file()


def _turns(annotation: Annotation, images: int, *, before: bool) -> Iterator[dict[str, str]]:
    if images > 1:
        require_marks(annotation.id, count_marks(turn.text for turn in annotation.turns), images)
    for number, turn in enumerate(annotation.turns):
        value = turn.text if images > 1 else turn.text.replace(IMAGE_TOKEN, "< image >")
        if number == 0 and images == 1:
            value = mark_beside(value, before=before)
        yield {"from": _ROLE_NAMES[turn.role], "value": value}
