"""Adding pairs to an index without building it again.

The encoder stays as it is. Pairs whose keys are in the index already are left out and counted. The new ones extend the last
part of each modality, which is read into memory and written as a new part; or, ``as_part``, they become a part of their
own, which takes less time and memory and costs a little at every search. The index stays whole throughout: the
sidecar is replaced when all is written, and only then goes the part that was extended. One addition at a time.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair
from pairwright.indexes.building import (
    Rejected,
    check_encoder,
    check_modalities,
    commit,
    keys_of,
    open_index_folder,
    told_rejects,
)
from pairwright.indexes.encoders import TextEncoder
from pairwright.indexes.folder import NEW_FOLDER, alone, clear_leavings, part_name, part_place, remove_folder
from pairwright.indexes.kept_pairs import PairFiles
from pairwright.indexes.keys import contains, key_bytes
from pairwright.indexes.part_jobs import PartBuilt, PartJob, Watch, build_parts
from pairwright.indexes.sidecar import (
    PAIRS_FOLDER,
    READ_FOLDER,
    Files,
    IndexInfo,
    Modality,
    described,
    read_sidecar,
    with_seconds,
)
from pairwright.indexes.storage import StorageChoice
from pairwright.indexes.survey import Survey, probes_of
from pairwright.indexes.vectors import EncodedPairs, PairVectors


@dataclass(frozen=True)
class Added:
    """What `add_pairs` did.

    Attributes:
        info: of the index as it is now.
        added: pairs that are new.
        known: pairs whose keys were in the index.
        rejected: reason to how many of the new ones have no vector in a modality.
    """

    info: IndexInfo
    added: int
    known: int
    rejected: dict[str, int]


@alone
def add_pairs(  # noqa: PLR0913 - keywords, each told of below
    pairs: Iterable[list[Pair]],
    directory: Path,
    *,
    vectors: PairVectors | None = None,
    as_part: bool = False,
    device: str = "",
    model: str = "",
    rejected: Rejected = lambda _: None,
    watch: Watch = lambda _what, _done, _total: None,
) -> Added:
    """Add pairs to the index in ``directory``.

    Args:
        pairs: batches of pairs.
        directory: an index folder.
        vectors: of the pairs; needed when the index has no encoder.
        as_part: give the new pairs parts of their own.
        device: where a model runs, see `EncoderOptions`.
        model: where its checkpoint is now, when it has been moved.
        rejected: gets each pair that has no vector in a modality.
        watch: as in `index_pairs`.

    Returns:
        What was added; ``info.seconds`` counts everything.

    Raises:
        StorageError: when the index is damaged.
        UsageError: when the vectors are not of the index's length or modalities, or none can be made.
        InputError: when there is no pair, or a new key comes twice.
    """
    started = time.perf_counter()
    info = read_sidecar(directory)
    clear_leavings(directory, info.files)
    asks = vectors is None or info.encoder
    encoder = open_index_folder(directory, device=device, model=model).encoder if asks else None
    source = _source(directory, info, vectors, encoder)
    read = _read(directory, pairs, watch)
    new = Survey(
        directory / (PAIRS_FOLDER if info.pairs_files else f"{READ_FOLDER}/{NEW_FOLDER}"), watch, len(info.pairs_files)
    )
    known = _take_new(directory, info, read, new)
    if known == read.count:
        remove_folder(directory / READ_FOLDER)
        return Added(with_seconds(info, time.perf_counter() - started), 0, known, {})
    stored = new.finish()
    probes = {name: probes_of(new.sample, name, source, encoder) if as_part else None for name in info.modalities}
    jobs = [_job(directory, info, modality, stored, as_part=as_part) for modality in info.modalities]
    jobs = [replace(job, probes=probes[job.modality]) for job in jobs]
    built = build_parts(jobs, source, 1, watch)
    counts = told_rejects(built, rejected)
    kept = described(directory, [f"{PAIRS_FOLDER}/{name}" for name in stored.names]) if info.pairs_files else {}
    now = replace(
        _with_parts(info, jobs, built, kept),
        pairs=info.pairs + stored.count,
        why=f"storage {info.storage} as at first; {stored.count:,} pairs were added",
        rejected=dict(sorted((Counter(info.rejected) + counts).items())),
    )
    commit(directory, now)
    clear_leavings(directory, now.files)
    return Added(with_seconds(now, time.perf_counter() - started), stored.count, known, dict(sorted(counts.items())))


def _source(directory: Path, info: IndexInfo, vectors: PairVectors | None, encoder: TextEncoder | None) -> PairVectors:
    if vectors is None:
        if encoder is None:
            raise UsageError(f"{directory}: an index of vectors without an encoder. Give the vectors of the new pairs.")
        return EncodedPairs(encoder)
    if vectors.dim != info.dim:
        raise UsageError(
            f"vectors of length {vectors.dim}: the index in {directory} holds vectors of length {info.dim}."
        )
    check_encoder(encoder, vectors)
    check_modalities(vectors.modalities, info.modalities)
    return vectors


def _read(directory: Path, pairs: Iterable[list[Pair]], watch: Watch) -> PairFiles:
    """Write down the pairs that were given, known ones too, and return them."""
    given = Survey(directory / READ_FOLDER, watch)
    for _ in given.captions(pairs):
        pass
    return given.finish()


def _take_new(directory: Path, info: IndexInfo, read: PairFiles, new: Survey) -> int:
    """Pass on the pairs that are not in the index, and return how many are."""
    parts = keys_of(directory, info.parts)
    keys = [key_bytes([pair.key for pair in batch]) for batch in read.batches(0, read.count)]
    known = contains(parts, np.concatenate(keys))
    place = 0
    for batch in read.batches(0, read.count):
        fresh = [
            pair
            for pair, is_known in zip(batch, known[place : place + len(batch)].tolist(), strict=True)
            if not is_known
        ]
        place += len(batch)
        for _ in new.captions([fresh]):
            pass
    return int(known.sum())


def _job(directory: Path, info: IndexInfo, modality: Modality, pairs: PairFiles, *, as_part: bool) -> PartJob:
    last = max(info.parts_of(modality), key=lambda part: part_place(part.name))
    _, number, revision = part_place(last.name)
    choice = StorageChoice(last.kind, last.storage, last.dim, 0, 0, "")
    name = part_name(modality, number + 1) if as_part else part_name(modality, number, revision + 1)
    old = None if as_part else (directory / last.name, last)
    return PartJob(directory / name, modality, pairs, 0, pairs.count, choice, info.options, None, old)


def _with_parts(info: IndexInfo, jobs: Sequence[PartJob], built: Sequence[PartBuilt], kept: Files) -> IndexInfo:
    """Return the index with the parts that were built, in place of those that they hold, and with the files ``kept``."""
    gone = [job.old[1].name for job, one in zip(jobs, built, strict=True) if job.old and one.info]
    parts = [part for part in info.parts if part.name not in gone] + [one.info for one in built if one.info]
    files = {name: file for name, file in info.files.items() if name.partition("/")[0] not in gone} | kept
    for one in built:
        files |= one.files
    in_order = sorted(parts, key=lambda part: (info.modalities.index(part.modality), part_place(part.name)))
    return replace(info, parts=tuple(in_order), files=files)
