"""Build of an index folder from pairs, with its encoder.

The pairs are read once: they are written to files while the encoder is fitted on their captions (`ingest`). Then each
part is built from a range of them (`part_jobs`), and ``index.json`` completes the index.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.indexes.building.ingest import PairIngest, make_sample_queries
from pairwright.indexes.building.pair_keys import PartKeys, check_unique_keys
from pairwright.indexes.building.pair_vectors import EncodedVectors, PairVectors
from pairwright.indexes.building.part_jobs import IndexProgress, PartJob, PartResult, build_parts
from pairwright.indexes.building.stored_pairs import StoredPairs
from pairwright.indexes.encoders import lexical
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.encoders.registry import EncoderOptions, encoder_file_name, fit_encoder, load_encoder
from pairwright.indexes.hnsw.faiss_files import map_array
from pairwright.indexes.hnsw.index_folder import lock_index, part_name, prepare_folder, remove_index_files
from pairwright.indexes.hnsw.metadata import (
    CAPTIONS_FILE,
    KEYS_FILE,
    MODALITIES,
    PAIRS_FOLDER,
    TEMPORARY_PAIRS_FOLDER,
    FileDigests,
    IndexInfo,
    Modality,
    PartInfo,
    digest_files,
    with_seconds,
    write_metadata,
)
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.storage import StorageChoice, choose_storage

PairSource = Callable[[], Iterable[list[Pair]]]
RejectCallback = Callable[[Reject], None]


@lock_index
def build_index_from_pairs(  # noqa: PLR0913 - keyword arguments, documented below
    pairs: PairSource,
    directory: Path,
    *,
    encoder: EncoderOptions | None = None,
    vectors: PairVectors | None = None,
    modalities: Sequence[Modality] = ("text",),
    options: IndexOptions | None = None,
    shards: int = 1,
    workers: int = 1,
    encoder_from: Path | None = None,
    keep_pairs: bool = True,
    rejected: RejectCallback = lambda _: None,
    watch: IndexProgress = lambda _what, _done, _total: None,
) -> IndexInfo:
    """Build the index of ``pairs`` in ``directory``, replacing an existing one.

    Args:
        pairs: returns the batches; called once. An existing index is removed when the first batch has been read.
        directory: folder of the index; created if missing.
        encoder: the encoder, lexical by default; with ``vectors``, the one that made them, for queries.
        vectors: precomputed vectors of the pairs.
        modalities: modalities to index.
        options: options of the index.
        shards: parts per modality, of equal size.
        workers: processes that build parts in parallel.
        encoder_from: folder of an index whose encoder is reused, so that the two can be merged.
        keep_pairs: store the pairs in the index, so that retrieved pairs can be shown and written.
        rejected: called with each pair that has no vector in a modality, after its part is built.
        watch: called with the current step ("pairs", "vectors"), the progress, and the total (0 if unknown).

    Returns:
        Metadata of the index; ``seconds`` covers the whole call.

    Raises:
        UsageError: if an option is invalid.
        InputError: if there are no pairs, a key occurs twice, or no pair has a vector in a modality.
        MissingResourceError: if a package or a checkpoint is missing.
    """
    started = time.perf_counter()
    options = options or IndexOptions()
    if shards < 1 or workers < 1 or not modalities:
        raise UsageError("shards and workers must be at least 1, and modalities must not be empty.")
    if vectors is not None or encoder_from is None:  # the encoder of `encoder_from` is checked after loading
        check_modalities(_available_modalities(vectors, encoder), modalities)
    ingest = PairIngest(directory / (PAIRS_FOLDER if keep_pairs else TEMPORARY_PAIRS_FOLDER), watch)
    captions = ingest.captions(_prepare_on_first_batch(directory, pairs))
    used = fit_or_load_encoder(captions, encoder, encoder_from, needed=vectors is None)
    stored = ingest.finish()
    if used is not None:
        used.save(directory / encoder_file_name(used))
    source = choose_vectors(vectors, used, directory, encoder)
    check_modalities(source.modalities, modalities)
    sample_queries = {
        name: make_sample_queries(ingest.sample, name, source, used) for name in MODALITIES if name in modalities
    }
    choice = choose_pair_storage(source, stored, modalities, options)
    whole = PartJob(directory, "text", stored, 0, stored.count, choice, options)
    jobs = list(_make_part_jobs(whole, sample_queries, shards))
    built = build_parts(jobs, source, workers, watch)
    counts = report_rejects(built, rejected)
    check_no_empty_modality(modalities, [one.info for one in built if one.info is not None], counts)
    own_files = [encoder_file_name(used)] if used else []
    own_files += _pair_file_names(stored, keep=keep_pairs)
    info = _index_info(whole, built, used, counts, digest_files(directory, own_files))
    commit_index(directory, info)
    return with_seconds(info, time.perf_counter() - started)


def check_modalities(available: Sequence[Modality], wanted: Sequence[Modality]) -> None:
    """Check that vectors of the wanted modalities are available.

    Raises:
        UsageError: naming a missing modality.
    """
    missing = [modality for modality in wanted if modality not in available]
    if missing:
        raise UsageError(
            f"no vectors of modality {missing[0]}, only of {' and '.join(available)}."
            " Use an encoder of images, such as clip, or a folder of image embeddings."
        )


def check_query_encoder(encoder: TextEncoder | None, vectors: PairVectors) -> None:
    """Check that an encoder can encode queries for precomputed ``vectors``.

    Raises:
        UsageError: if their lengths differ, or it is the lexical encoder, which is fitted to its own index.
    """
    if encoder is not None and (encoder.dim != vectors.dim or encoder.name == lexical.NAME):
        raise UsageError(
            f"encoder {encoder.name} of length {encoder.dim} cannot encode queries for vectors of length {vectors.dim}"
            " from another encoder. Name the model that made the vectors."
        )


def report_rejects(built: Sequence[PartResult], rejected: RejectCallback) -> Counter[str]:
    """Pass each pair without a vector to ``rejected``, and return their counts by reason."""
    counts: Counter[str] = Counter()
    for one in built:
        for reject in one.rejects:
            counts[reject.reason] += 1
            rejected(reject)
    return counts


def commit_index(directory: Path, info: IndexInfo) -> None:
    """Check that keys are unique and write ``info``, which completes the index.

    Raises:
        InputError: for a duplicate key.
    """
    for modality in info.modalities:
        check_unique_keys(open_part_keys(directory, info.parts_of(modality)))
    write_metadata(directory, info)


def open_part_keys(directory: Path, parts: Sequence[PartInfo]) -> list[PartKeys]:
    """Return the memory-mapped keys of parts."""
    found = []
    for folder in (directory / part.name for part in parts):
        captions = map_array(folder / CAPTIONS_FILE) if (folder / CAPTIONS_FILE).exists() else None
        found.append(PartKeys(folder, map_array(folder / KEYS_FILE), captions))
    return found


def faiss_version() -> str:
    """Return the FAISS version, on which the bytes of an index depend."""
    import faiss

    return str(faiss.__version__)


def _prepare_on_first_batch(directory: Path, pairs: PairSource) -> Iterator[list[Pair]]:
    """Yield the batches; prepare the folder only after the first batch has been read."""
    batches = iter(pairs())
    first = next(batches, [])
    prepare_folder(directory)
    yield first
    yield from batches


def fit_or_load_encoder(
    captions: Iterator[str], options: EncoderOptions | None, encoder_from: Path | None, *, needed: bool
) -> TextEncoder | None:
    """Return the encoder to use, if any, and consume all captions."""
    if encoder_from is None and (options is not None or needed):
        return fit_encoder(options or EncoderOptions(), captions)
    encoder = None
    if encoder_from is not None:  # load it first: it may be in the folder that is about to be replaced
        device, model = (options.device, options.model) if options else ("", "")
        encoder = load_encoder(encoder_from, device=device, model=model)
        if encoder is None and needed:
            raise UsageError(f"{encoder_from}: index without an encoder. Name an index that was built with one.")
    deque(captions, maxlen=0)
    return encoder


def choose_vectors(
    vectors: PairVectors | None, encoder: TextEncoder | None, directory: Path, options: EncoderOptions | None
) -> PairVectors:
    """Return the vectors of the pairs: precomputed ones, or those of the encoder.

    Raises:
        UsageError: without either, or if the encoder cannot encode queries for precomputed vectors.
    """
    if vectors is None:
        if encoder is None:
            raise UsageError("neither vectors nor an encoder given.")
        options = options or EncoderOptions()
        return EncodedVectors(encoder, directory, device=options.device, model=options.model)
    check_query_encoder(encoder, vectors)
    return vectors


def choose_pair_storage(
    source: PairVectors, stored: StoredPairs, modalities: Sequence[Modality], options: IndexOptions
) -> StorageChoice:
    """Return the storage of the vectors of all pairs."""
    entries = [stored.captions if name == "text" and source.every_caption else stored.count for name in modalities]
    return choose_storage(sum(entries), source.dim, options)


def _make_part_jobs(
    whole: PartJob, sample_queries: Mapping[Modality, Vectors | None], shards: int
) -> Iterator[PartJob]:
    """Yield the jobs of each modality in ``sample_queries``: ``whole``, with the folder of the index, in shards."""
    size = -(-whole.end // shards)
    for modality, queries in sample_queries.items():
        for number, first in enumerate(range(0, whole.end, size)):
            folder, end = whole.folder / part_name(modality, number), min(first + size, whole.end)
            yield replace(whole, folder=folder, modality=modality, first=first, end=end, sample_queries=queries)


def _pair_file_names(stored: StoredPairs, *, keep: bool) -> list[str]:
    """Return the paths of the pair files in the index folder; remove the files unless ``keep``."""
    if keep:
        return [f"{PAIRS_FOLDER}/{name}" for name in stored.names]
    remove_index_files(stored.folder)
    return []


def _available_modalities(vectors: PairVectors | None, encoder: EncoderOptions | None) -> Sequence[Modality]:
    if vectors is not None:
        return vectors.modalities
    return ("text", "image") if encoder is not None and encoder.encodes_images else ("text",)


def check_no_empty_modality(
    modalities: Sequence[Modality], parts: Sequence[PartInfo], counts: Mapping[str, int]
) -> None:
    """Check that each modality has vectors.

    Raises:
        InputError: naming one without, with the ``counts`` of rejected pairs by reason.
    """
    held = {part.modality for part in parts}
    for modality in (each for each in modalities if each not in held):
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
        raise InputError(
            f"no pair has a vector of modality {modality} ({reasons})", where="index", fix="Do not index this modality."
        )


def _index_info(
    whole: PartJob,
    built: Sequence[PartResult],
    encoder: TextEncoder | None,
    counts: Counter[str],
    own_files: FileDigests,
) -> IndexInfo:
    """Return the metadata of an index of the ``built`` parts; ``own_files`` are those outside of parts."""
    return IndexInfo(
        parts=tuple(one.info for one in built if one.info is not None),
        pairs=whole.pairs.count,
        dim=whole.choice.dim,
        encoder=encoder.fingerprint if encoder else "",
        encoder_name=encoder.name if encoder else "",
        options=whole.options,
        why=whole.choice.why,
        rejected=dict(sorted(counts.items())),
        files=own_files | {name: file for one in built for name, file in one.files.items()},
        versions={"faiss": faiss_version()},
    )
