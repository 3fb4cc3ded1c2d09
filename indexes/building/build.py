"""From pairs to an index folder with its encoder in it, and back: what ``pairwright index build`` calls.

The pairs are read once: they are written beside the index to come and the encoder is fitted on their captions as they
pass (`survey.py`). Then each part is built of a range of them (`part_jobs.py`), and ``index.json`` makes the index whole.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.indexes.building.ingest import PairIngest, make_sample_queries
from pairwright.indexes.building.pair_files import StoredPairs, look_up_pairs
from pairwright.indexes.building.pair_keys import PartKeys, check_unique_keys
from pairwright.indexes.building.pair_vectors import EncodedVectors, PairVectors
from pairwright.indexes.building.part_jobs import BuildParts, IndexProgress, PartJob, PartResult, build_parts
from pairwright.indexes.encoders import lexical
from pairwright.indexes.encoders.protocols import TextEncoder, Vectors
from pairwright.indexes.encoders.registry import EncoderOptions, encoder_file_name, fit_encoder, load_encoder
from pairwright.indexes.hnsw.index_folder import lock_index, part_name, prepare_folder, remove_index_files
from pairwright.indexes.hnsw.metadata import (
    CAPTIONS_FILE,
    KEYS_FILE,
    MODALITIES,
    PAIRS_FOLDER,
    TEMPORARY_PAIRS_FOLDER,
    IndexInfo,
    IndexOptions,
    Modality,
    PartInfo,
    digest_files,
    with_seconds,
    write_metadata,
)
from pairwright.indexes.hnsw.numpy_files import map_array
from pairwright.indexes.hnsw.search import Index, open_index
from pairwright.indexes.hnsw.storage import choose_storage

PairSource = Callable[[], Iterable[list[Pair]]]
RejectCallback = Callable[[Reject], None]


@dataclass(frozen=True)
class IndexWithEncoder:
    """An open index, and the encoder that its queries need; None when its vectors came from elsewhere without one."""

    index: Index
    encoder: TextEncoder | None

    @property
    def query_encoder(self) -> TextEncoder:
        """The encoder.

        Raises:
            StorageError: when there is none.
        """
        if self.encoder is None:
            raise StorageError(
                f"{self.index.directory}: an index of vectors without an encoder. Give the vectors of the queries."
            )
        return self.encoder

    def pairs(self, keys: Sequence[str]) -> pl.DataFrame | None:
        """Return the pairs of ``keys`` in their order, columns of `PAIRS_FOLDER`; None when the index keeps no pairs."""
        files = [self.index.directory / name for name in self.index.info.pairs_files]
        return look_up_pairs(files, keys) if files else None


@lock_index
def build_index_from_pairs(  # noqa: PLR0913 - keywords, each told of below
    pairs: PairSource,
    directory: Path,
    *,
    encoder: EncoderOptions | None = None,
    vectors: PairVectors | None = None,
    modalities: Sequence[Modality] = ("text",),
    options: IndexOptions | None = None,
    shards: int = 1,
    workers: int = 1,
    build: BuildParts | None = None,
    like: Path | None = None,
    keep_pairs: bool = True,
    rejected: RejectCallback = lambda _: None,
    watch: IndexProgress = lambda _what, _done, _total: None,
) -> IndexInfo:
    """Build the index of ``pairs`` in ``directory``, replacing one that is there.

    Args:
        pairs: gives the batches; called once. An index that is there is gone when the first batch has come.
        directory: folder of the index; made when missing.
        encoder: which encoder; the lexical one when neither this nor ``vectors`` is given. With ``vectors`` it is what
            encodes queries: the one that made them.
        vectors: of the pairs, when they are there already.
        modalities: what to index.
        options: of the index.
        shards: parts a modality, of equal size.
        workers: processes that build parts side by side.
        build: builds the parts in the caller's way, such as on a cluster; ``workers`` is not used then.
        like: folder of an index whose encoder is used as it is, so that the two can be merged.
        keep_pairs: whether the index keeps the pairs, so that what is retrieved can be shown and written.
        rejected: gets each pair that has no vector in a modality, when its part is built.
        watch: hears what is going on ("pairs", "vectors"), how much is done, and of how much; 0 when unknown.

    Returns:
        What was built; ``seconds`` counts everything.

    Raises:
        UsageError: when an option is not possible.
        InputError: when there is no pair, a key comes twice, or no pair has a vector in a modality.
        MissingResource: when a package or a checkpoint is not there.
    """
    started = time.perf_counter()
    options = options or IndexOptions()
    if shards < 1 or workers < 1 or not modalities:
        raise UsageError("shards and workers have to be at least 1, and modalities name at least one.")
    if vectors is not None or like is None:  # that of `like` is looked at when it is there
        check_modalities(_available_modalities(vectors, encoder), modalities)
    survey = PairIngest(directory / (PAIRS_FOLDER if keep_pairs else TEMPORARY_PAIRS_FOLDER), watch)
    asked = _fit_or_load_encoder(
        survey.captions(_prepare_on_first_batch(directory, pairs)), encoder, like, needed=vectors is None
    )
    stored = survey.finish()
    if asked is not None:
        asked.save(directory / encoder_file_name(asked))
    source = _choose_vectors(vectors, asked, directory, encoder)
    check_modalities(source.modalities, modalities)
    entries = [stored.captions if name == "text" and source.every_caption else stored.count for name in modalities]
    choice = choose_storage(sum(entries), source.dim, options)
    probes = {
        name: make_sample_queries(survey.sample, name, source, asked) for name in MODALITIES if name in modalities
    }
    whole = PartJob(directory, "text", stored, 0, stored.count, choice, options)
    jobs = list(_make_part_jobs(whole, probes, shards))
    built = build(jobs, source, watch) if build else build_parts(jobs, source, workers, watch)
    counts = report_rejects(built, rejected)
    parts = tuple(one.info for one in built if one.info is not None)
    _check_no_empty_modality(modalities, parts, counts)
    own = [encoder_file_name(asked)] if asked else []
    own += _pair_file_names(stored, keep=keep_pairs)
    info = IndexInfo(
        parts=parts,
        pairs=stored.count,
        dim=source.dim,
        encoder=asked.fingerprint if asked else "",
        encoder_name=asked.name if asked else "",
        options=options,
        why=choice.why,
        rejected=dict(sorted(counts.items())),
        files=digest_files(directory, own) | {name: file for one in built for name, file in one.files.items()},
        versions={"faiss": faiss_version()},
    )
    commit_index(directory, info)
    return with_seconds(info, time.perf_counter() - started)


def open_index_with_encoder(directory: Path, *, device: str = "", model: str = "") -> IndexWithEncoder:
    """Open an index that `build_index_from_pairs` built, with its encoder.

    Args:
        directory: of the index.
        device: where a model runs, see `EncoderOptions`.
        model: where its checkpoint is now, when it has been moved.

    Raises:
        StorageError: when a file is missing, truncated, or the encoder is not the index's.
        MissingResource: when a package or the checkpoint is not there.
    """
    index = open_index(directory)
    if not index.info.encoder:
        return IndexWithEncoder(index, None)
    encoder = load_encoder(directory, device=device, model=model)
    if encoder is None or encoder.fingerprint != index.info.encoder:
        raise StorageError(f"{directory}: its encoder file is not the encoder of this index. Build the index again.")
    return IndexWithEncoder(index, encoder)


def check_modalities(there: Sequence[Modality], wanted: Sequence[Modality]) -> None:
    """Refuse modalities that there are no vectors of.

    Raises:
        UsageError: naming one.
    """
    missing = [modality for modality in wanted if modality not in there]
    if missing:
        raise UsageError(
            f"no vectors of modality {missing[0]} here, only of {' and '.join(there)}."
            " An encoder of images is needed, or a folder of image embeddings."
        )


def check_query_encoder(encoder: TextEncoder | None, vectors: PairVectors) -> None:
    """Refuse an encoder that cannot have made ``vectors``, which came from elsewhere.

    Raises:
        UsageError: when their lengths differ, or it is the lexical one, whose vectors exist in its index only.
    """
    if encoder is not None and (encoder.dim != vectors.dim or encoder.name == lexical.NAME):
        raise UsageError(
            f"encoder {encoder.name} of length {encoder.dim} cannot ask for vectors of length {vectors.dim} that another made."
        )


def report_rejects(built: Sequence[PartResult], rejected: RejectCallback) -> Counter[str]:
    """Tell of each pair without a vector, and count them by reason."""
    counts: Counter[str] = Counter()
    for one in built:
        for reject in one.rejects:
            counts[reject.reason] += 1
            rejected(reject)
    return counts


def commit_index(directory: Path, info: IndexInfo) -> None:
    """Make the folder the index that ``info`` describes, if no key comes twice in it.

    Raises:
        InputError: naming a key that does.
    """
    for modality in info.modalities:
        check_unique_keys(open_part_keys(directory, info.parts_of(modality)))
    write_metadata(directory, info)


def open_part_keys(directory: Path, parts: Sequence[PartInfo]) -> list[PartKeys]:
    """Return the mapped keys of the pairs of parts."""
    found = []
    for folder in (directory / part.name for part in parts):
        captions = map_array(folder / CAPTIONS_FILE) if (folder / CAPTIONS_FILE).exists() else None
        found.append(PartKeys(folder, map_array(folder / KEYS_FILE), captions))
    return found


def faiss_version() -> str:
    """Return the version that shapes the bytes."""
    import faiss

    return str(faiss.__version__)


def _prepare_on_first_batch(directory: Path, pairs: PairSource) -> Iterator[list[Pair]]:
    """Yield the batches; the folder is prepared when the first of them could be read, and the encoder was there."""
    batches = iter(pairs())
    first = next(batches, [])
    prepare_folder(directory)
    yield first
    yield from batches


def _fit_or_load_encoder(
    captions: Iterator[str], options: EncoderOptions | None, like: Path | None, *, needed: bool
) -> TextEncoder | None:
    """Return the encoder to use, if any, having read the captions to their end."""
    if like is None and (options is not None or needed):
        return fit_encoder(options or EncoderOptions(), captions)
    encoder = None
    if like is not None:  # it may be that of the index which is about to be replaced
        encoder = load_encoder(like, device=options.device if options else "", model=options.model if options else "")
        if encoder is None and needed:
            raise UsageError(f"{like}: no encoder there. Name an index that was built with one.")
    deque(captions, maxlen=0)
    return encoder


def _choose_vectors(
    vectors: PairVectors | None, encoder: TextEncoder | None, directory: Path, options: EncoderOptions | None
) -> PairVectors:
    if vectors is None:
        if encoder is None:
            raise UsageError("neither vectors nor an encoder.")
        options = options or EncoderOptions()
        return EncodedVectors(encoder, directory, device=options.device, model=options.model)
    check_query_encoder(encoder, vectors)
    return vectors


def _make_part_jobs(whole: PartJob, probes: Mapping[Modality, Vectors | None], shards: int) -> Iterator[PartJob]:
    """Yield the parts of each modality that there are sample queries of: ``whole``, with the index's folder, in shards."""
    size = -(-whole.end // shards)
    for modality, queries in probes.items():
        for number, first in enumerate(range(0, whole.end, size)):
            folder, end = whole.folder / part_name(modality, number), min(first + size, whole.end)
            yield replace(whole, folder=folder, modality=modality, first=first, end=end, probes=queries)


def _pair_file_names(stored: StoredPairs, *, keep: bool) -> list[str]:
    """Return the files of the pairs, named from the index's folder; where they shall not be kept, they go."""
    if keep:
        return [f"{PAIRS_FOLDER}/{name}" for name in stored.names]
    remove_index_files(stored.folder)
    return []


def _available_modalities(vectors: PairVectors | None, encoder: EncoderOptions | None) -> Sequence[Modality]:
    if vectors is not None:
        return vectors.modalities
    return ("text", "image") if encoder is not None and encoder.of_images else ("text",)


def _check_no_empty_modality(modalities: Sequence[Modality], parts: Sequence[PartInfo], counts: Counter[str]) -> None:
    """Refuse modalities that no part holds, because no pair had a vector of them."""
    held = {part.modality for part in parts}
    for modality in (each for each in modalities if each not in held):
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
        raise InputError(f"no pair has a vector of modality {modality} ({told})", where="index", fix="Leave it out.")
