"""Conversations in files of any layout (`mixture_talks`) as a source: LLaVA JSON, chat messages, our own rows and tables.

Also what `exports.parquet` wrote.

A row is a sample of its own; rows of one image have the same locator. Images are named below
the folder of the file, or where some lie elsewhere, below the folder above all of them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.sources import ConversationSource, SourceOptions, find_conversation_source
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, pair_key
from pairwright.datasets.rejects import Reject
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample

CONVERSATION_SUFFIXES = frozenset({".json", ".jsonl", ".csv", ".tsv", ".parquet"})
CONVERSATION_LAYOUTS = frozenset({"triplets", "llava", "openai", "parquet"})  # that need no image and no hard negatives

_ORIGIN = Origin("file", 1)


def open_conversation_files(path: Path) -> tuple[SampleSource, Path]:
    """Return a file's conversations as a source, and the folder below which its images are named.

    Rows of status rejected, and those of another split than train, are passed over. A broken row ends the reading.

    Raises:
        InputError: when the file cannot be read, or while samples are read, a row of it.
    """
    found = find_conversation_source(str(path), "", SourceOptions())

    def samples() -> Iterator[Sample]:
        number = -1
        for number, (place, judged) in enumerate(found.talks()):
            if isinstance(judged, Reject):
                fix = "Correct the row, or mix the file first, which counts such rows and goes on."
                raise InputError(f"{judged.reason}: {judged.detail}", where=place, fix=fix)
            if isinstance(judged, Conversation):
                yield _sample(judged, number)
        if number < 0:
            raise InputError("there are no rows", where=str(path), fix="Give a file with conversations.")

    return SampleSource(samples), _root(found)


def _root(found: ConversationSource) -> Path:
    images = (judged.image for _, judged in found.talks() if isinstance(judged, Conversation))
    folders = {Path(image).parent for image in images if Path(image).is_absolute() and "::" not in image}
    if all(folder.is_relative_to(found.root.absolute()) for folder in folders):
        return found.root
    return Path(os.path.commonpath(folders))


def _sample(talk: Conversation, number: int) -> Sample:
    key = pair_key("file", f"{number}:{talk.image}", talk.caption)  # a row's own: LLaVA's ids are made of it
    kind = talk.kind or "conversation"
    said = "\n".join(talk.texts)
    row = Annotation(
        id=annotation_id(key, kind, _ORIGIN, str(number), said), key=key, kind=kind, origin=_ORIGIN, turns=talk.turns
    )
    return Sample(Pair(key=key, caption=talk.caption, image=talk.image, source_id=talk.source_id), (row,))
