"""Conversation files as a sample source: every layout of `conversations.py`, including our Parquet export.

A row is a separate sample; rows of one image have the same locator. Images are named below the folder of the file, or the
common parent folder of all images if some are elsewhere.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pairwright.datasets.errors import InputError
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.sources import ConversationSource, SourceOptions, find_conversation_source
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.rejects import Reject
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample, SampleImage

CONVERSATION_SUFFIXES = frozenset({".json", ".jsonl", ".csv", ".tsv", ".parquet"})

_ORIGIN = Origin("file", 1)


def open_conversation_files(
    path: Path,
    image_root: Path | None = None,
    skipped: SkipCounts | None = None,
    one_image: str = "",
    columns: Mapping[str, str] = MappingProxyType({}),
) -> tuple[SampleSource, Path]:
    """Return a file's conversations as a source, and the folder below which its images are named.

    Rows of status rejected, and those of another split than train, are skipped.

    Args:
        path: of the file.
        image_root: folder of relative image paths; None for that of the file.
        skipped: counts the broken rows of the last pass; None: a broken row ends the reading.
        one_image: as in `SourceOptions`.
        columns: as in `SourceOptions`.

    Raises:
        UsageError: for a column of an unknown part.
        InputError: if the file cannot be read, or while samples are read, for a broken row.
    """
    options = SourceOptions(columns, str(image_root or ""), one_image=one_image)
    found = find_conversation_source(str(path), "", options)

    def samples() -> Iterator[Sample]:
        number = -1
        if skipped is not None:
            skipped.rows.clear()
        for number, (place, judged) in enumerate(found.conversations()):
            if isinstance(judged, Reject) and skipped is None:
                raise replace(judged, place=place).error()
            if isinstance(judged, Reject) and skipped is not None:
                skipped.add([judged])
            if isinstance(judged, Conversation):
                yield _sample(judged, number)
        if number < 0:
            raise InputError("no rows", where=str(path), fix="Give a file with conversations.")

    return SampleSource(samples), _root(found)


def _root(found: ConversationSource) -> Path:
    images = (
        image for _, judged in found.conversations() if isinstance(judged, Conversation) for image in judged.images
    )
    folders = {Path(image).parent for image in images if Path(image).is_absolute() and "::" not in image}
    if all(folder.is_relative_to(found.root.absolute()) for folder in folders):
        return found.root
    return Path(os.path.commonpath(folders))


def _sample(conversation: Conversation, number: int) -> Sample:
    first, *further = conversation.images or ("",)
    said = "\n".join(conversation.texts)
    # Unique per row: LLaVA's ids are made of it. Texts tell rows of different files about one image, or none, apart.
    stated = "\n".join(filter(None, [conversation.name, said]))
    key = pair_key("file", f"{number}:{stated}", conversation.caption)
    kind = conversation.kind or "conversation"
    row = Annotation(
        id=annotation_id(key, kind, _ORIGIN, str(number), said),
        key=key,
        kind=kind,
        origin=_ORIGIN,
        turns=conversation.turns,
    )
    pair = Pair(key=key, caption=conversation.caption, image=first, source_id=conversation.source_id)
    return Sample(pair, (row,), further_images=tuple(map(SampleImage, further)))
