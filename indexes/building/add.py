"""Addition of pairs to an existing index.

The encoder does not change. Pairs whose keys are in the index are skipped and counted. New pairs extend the last part of
each modality, which is read into memory and written as a new part; with ``as_part`` they become a separate part, which
takes less time and memory but slows every search slightly. The index stays valid throughout: index.json is replaced
after everything is written, and only then is the extended part removed. Only one addition can run at a time.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Pair
from pairwright.indexes.building.build import (
    RejectCallback,
    check_modalities,
    check_query_encoder,
    commit_index,
    open_part_keys,
    report_rejects,
)
from pairwright.indexes.building.ingest import PairIngest, make_sample_queries
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.building.pair_keys import encode_keys, find_known_keys
from pairwright.indexes.building.pair_vectors import EncodedVectors, PairVectors
from pairwright.indexes.building.part_jobs import IndexProgress, PartJob, PartResult, build_parts
from pairwright.indexes.building.stored_pairs import StoredPairs
from pairwright.indexes.encoders.protocols import TextEncoder
from pairwright.indexes.hnsw.index_folder import (
    ADDED_PAIRS_FOLDER,
    lock_index,
    parse_part_name,
    part_name,
    remove_index_files,
    remove_stale_files,
)
from pairwright.indexes.hnsw.metadata import (
    PAIRS_FOLDER,
    TEMPORARY_PAIRS_FOLDER,
    FileDigests,
    IndexInfo,
    Modality,
    digest_files,
    read_metadata,
    with_seconds,
)
from pairwright.indexes.hnsw.storage import StorageChoice


@dataclass(frozen=True)
class AdditionReport:
    """Result of `add_pairs`.

    Attributes:
        info: metadata of the extended index.
        added: number of new pairs.
        known: number of pairs whose keys were in the index.
        rejected: number of new pairs without a vector in a modality, by reason.
    """

    info: IndexInfo
    added: int
    known: int
    rejected: dict[str, int]


@lock_index
def add_pairs(  # noqa: PLR0913 - keyword arguments, documented below
    pairs: Iterable[list[Pair]],
    directory: Path,
    *,
    vectors: PairVectors | None = None,
    as_part: bool = False,
    device: str = "",
    model: str = "",
    rejected: RejectCallback = lambda _: None,
    watch: IndexProgress = lambda _what, _done, _total: None,
) -> AdditionReport:
    """Add pairs to the index in ``directory``.

    Args:
        pairs: batches of pairs.
        directory: an index folder.
        vectors: precomputed vectors of the pairs; required if the index has no encoder.
        as_part: write the new pairs as separate parts.
        device: device of the encoder, see `EncoderOptions`.
        model: new location of the encoder's checkpoint, if it has been moved.
        rejected: called with each pair that has no vector in a modality.
        watch: as in `build_index_from_pairs`.

    Returns:
        Counts and the new metadata; ``info.seconds`` covers the whole call.

    Raises:
        StorageError: if the index is damaged.
        UsageError: if the vectors have another length or other modalities than the index, or cannot be computed.
        InputError: if there are no pairs, or a new key occurs twice.
    """
    started = time.perf_counter()
    info = read_metadata(directory)
    remove_stale_files(directory, info.files)
    needs_encoder = vectors is None or info.encoder
    encoder = open_index_with_encoder(directory, device=device, model=model).encoder if needs_encoder else None
    source = _choose_vectors(directory, info, vectors, encoder)
    read = _write_given_pairs(directory, pairs, watch)
    new = PairIngest(
        directory / (PAIRS_FOLDER if info.pairs_files else f"{TEMPORARY_PAIRS_FOLDER}/{ADDED_PAIRS_FOLDER}"),
        watch,
        len(info.pairs_files),
    )
    known = _ingest_new_pairs(directory, info, read, new)
    if known == read.count:
        remove_index_files(directory / TEMPORARY_PAIRS_FOLDER)
        return AdditionReport(with_seconds(info, time.perf_counter() - started), 0, known, {})
    stored = new.finish()
    sample_queries = {
        name: make_sample_queries(new.sample, name, source, encoder) if as_part else None for name in info.modalities
    }
    jobs = [_make_part_job(directory, info, modality, stored, as_part=as_part) for modality in info.modalities]
    jobs = [replace(job, sample_queries=sample_queries[job.modality]) for job in jobs]
    built = build_parts(jobs, source, 1, watch)
    counts = report_rejects(built, rejected)
    kept = digest_files(directory, [f"{PAIRS_FOLDER}/{name}" for name in stored.names]) if info.pairs_files else {}
    extended = replace(
        _replace_parts(info, jobs, built, kept),
        pairs=info.pairs + stored.count,
        why=f"storage {info.storage} as in the first build; {stored.count:,} pairs added",
        rejected=dict(sorted((Counter(info.rejected) + counts).items())),
    )
    commit_index(directory, extended)
    remove_stale_files(directory, extended.files)
    return AdditionReport(
        with_seconds(extended, time.perf_counter() - started), stored.count, known, dict(sorted(counts.items()))
    )


def _choose_vectors(
    directory: Path, info: IndexInfo, vectors: PairVectors | None, encoder: TextEncoder | None
) -> PairVectors:
    if vectors is None:
        if encoder is None:
            raise UsageError(f"{directory}: this index has no encoder. Pass the vectors of the new pairs.")
        return EncodedVectors(encoder)
    if vectors.dim != info.dim:
        raise UsageError(
            f"vectors of length {vectors.dim}: the index in {directory} holds vectors of length {info.dim}."
        )
    check_query_encoder(encoder, vectors)
    check_modalities(vectors.modalities, info.modalities)
    return vectors


def _write_given_pairs(directory: Path, pairs: Iterable[list[Pair]], watch: IndexProgress) -> StoredPairs:
    """Write the given pairs, known ones included, to temporary files."""
    given = PairIngest(directory / TEMPORARY_PAIRS_FOLDER, watch)
    for _ in given.captions(pairs):
        pass
    return given.finish()


def _ingest_new_pairs(directory: Path, info: IndexInfo, read: StoredPairs, new: PairIngest) -> int:
    """Ingest the pairs that are not in the index; return the number of the others."""
    parts = open_part_keys(directory, info.parts)
    keys = [encode_keys([pair.key for pair in batch]) for batch in read.batches(0, read.count)]
    known = find_known_keys(parts, np.concatenate(keys))
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


def _make_part_job(
    directory: Path, info: IndexInfo, modality: Modality, pairs: StoredPairs, *, as_part: bool
) -> PartJob:
    last = max(info.parts_of(modality), key=lambda part: parse_part_name(part.name))
    _, number, revision = parse_part_name(last.name)
    choice = StorageChoice(last.kind, last.storage, last.dim, 0, 0, "")
    name = part_name(modality, number + 1) if as_part else part_name(modality, number, revision + 1)
    extends = None if as_part else (directory / last.name, last)
    return PartJob(directory / name, modality, pairs, 0, pairs.count, choice, info.options, None, extends)


def _replace_parts(
    info: IndexInfo, jobs: Sequence[PartJob], built: Sequence[PartResult], kept: FileDigests
) -> IndexInfo:
    """Return the metadata with the built parts in place of those that they extend, and with the files ``kept``."""
    replaced = [job.extends[1].name for job, one in zip(jobs, built, strict=True) if job.extends and one.info]
    parts = [part for part in info.parts if part.name not in replaced] + [one.info for one in built if one.info]
    files = {name: file for name, file in info.files.items() if name.partition("/")[0] not in replaced} | kept
    for one in built:
        files |= one.files
    in_order = sorted(parts, key=lambda part: (info.modalities.index(part.modality), parse_part_name(part.name)))
    return replace(info, parts=tuple(in_order), files=files)
