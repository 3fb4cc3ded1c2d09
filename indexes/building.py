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
from pairwright.indexes import lexical
from pairwright.indexes.arrays import map_array
from pairwright.indexes.encoder_table import EncoderOptions, encoder_file, fit_encoder, load_encoder
from pairwright.indexes.encoders import TextEncoder, Vectors
from pairwright.indexes.folder import alone, part_name, prepare_folder, remove_folder
from pairwright.indexes.kept_pairs import PairFiles, find_pairs
from pairwright.indexes.keys import KeysOf, refuse_repeated
from pairwright.indexes.part_jobs import BuildParts, PartBuilt, PartJob, Watch, build_parts
from pairwright.indexes.search import Index, open_index
from pairwright.indexes.sidecar import (
    CAPTIONS,
    KEYS,
    MODALITIES,
    PAIRS_FOLDER,
    READ_FOLDER,
    IndexInfo,
    IndexOptions,
    Modality,
    PartInfo,
    described,
    with_seconds,
    write_sidecar,
)
from pairwright.indexes.storage import choose_storage
from pairwright.indexes.survey import Survey, probes_of
from pairwright.indexes.vectors import EncodedPairs, PairVectors

PairBatches = Callable[[], Iterable[list[Pair]]]
Rejected = Callable[[Reject], None]


@dataclass(frozen=True)
class IndexFolder:
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
        """Return the pairs of ``keys`` in their order, columns of `PAIRS`; None when the index keeps no pairs."""
        files = [self.index.directory / name for name in self.index.info.pairs_files]
        return find_pairs(files, keys) if files else None


@alone
def index_pairs(  # noqa: PLR0913 - keywords, each told of below
    pairs: PairBatches,
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
    rejected: Rejected = lambda _: None,
    watch: Watch = lambda _what, _done, _total: None,
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
        check_modalities(_modalities_of(vectors, encoder), modalities)
    survey = Survey(directory / (PAIRS_FOLDER if keep_pairs else READ_FOLDER), watch)
    asked = _encoder(survey.captions(_prepared(directory, pairs)), encoder, like, needed=vectors is None)
    stored = survey.finish()
    if asked is not None:
        asked.save(directory / encoder_file(asked))
    source = _source(vectors, asked, directory, encoder)
    check_modalities(source.modalities, modalities)
    entries = [stored.captions if name == "text" and source.every_caption else stored.count for name in modalities]
    choice = choose_storage(sum(entries), source.dim, options)
    probes = {name: probes_of(survey.sample, name, source, asked) for name in MODALITIES if name in modalities}
    whole = PartJob(directory, "text", stored, 0, stored.count, choice, options)
    jobs = list(_jobs(whole, probes, shards))
    built = build(jobs, source, watch) if build else build_parts(jobs, source, workers, watch)
    counts = told_rejects(built, rejected)
    parts = tuple(one.info for one in built if one.info is not None)
    _refuse_empty(modalities, parts, counts)
    own = [encoder_file(asked)] if asked else []
    own += _kept_names(stored, keep=keep_pairs)
    info = IndexInfo(
        parts=parts,
        pairs=stored.count,
        dim=source.dim,
        encoder=asked.fingerprint if asked else "",
        encoder_name=asked.name if asked else "",
        options=options,
        why=choice.why,
        rejected=dict(sorted(counts.items())),
        files=described(directory, own) | {name: file for one in built for name, file in one.files.items()},
        versions={"faiss": faiss_version()},
    )
    commit(directory, info)
    return with_seconds(info, time.perf_counter() - started)


def open_index_folder(directory: Path, *, device: str = "", model: str = "") -> IndexFolder:
    """Open an index that `index_pairs` built, with its encoder.

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
        return IndexFolder(index, None)
    encoder = load_encoder(directory, device=device, model=model)
    if encoder is None or encoder.fingerprint != index.info.encoder:
        raise StorageError(f"{directory}: its encoder file is not the encoder of this index. Build the index again.")
    return IndexFolder(index, encoder)


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


def check_encoder(encoder: TextEncoder | None, vectors: PairVectors) -> None:
    """Refuse an encoder that cannot have made ``vectors``, which came from elsewhere.

    Raises:
        UsageError: when their lengths differ, or it is the lexical one, whose vectors exist in its index only.
    """
    if encoder is not None and (encoder.dim != vectors.dim or encoder.name == lexical.NAME):
        raise UsageError(
            f"encoder {encoder.name} of length {encoder.dim} cannot ask for vectors of length {vectors.dim} that another made."
        )


def told_rejects(built: Sequence[PartBuilt], rejected: Rejected) -> Counter[str]:
    """Tell of each pair without a vector, and count them by reason."""
    counts: Counter[str] = Counter()
    for one in built:
        for reject in one.rejects:
            counts[reject.reason] += 1
            rejected(reject)
    return counts


def commit(directory: Path, info: IndexInfo) -> None:
    """Make the folder the index that ``info`` describes, if no key comes twice in it.

    Raises:
        InputError: naming a key that does.
    """
    for modality in info.modalities:
        refuse_repeated(keys_of(directory, info.parts_of(modality)))
    write_sidecar(directory, info)


def keys_of(directory: Path, parts: Sequence[PartInfo]) -> list[KeysOf]:
    """Return the mapped keys of the pairs of parts."""
    found = []
    for folder in (directory / part.name for part in parts):
        captions = map_array(folder / CAPTIONS) if (folder / CAPTIONS).exists() else None
        found.append(KeysOf(folder, map_array(folder / KEYS), captions))
    return found


def faiss_version() -> str:
    """Return the version that shapes the bytes."""
    import faiss

    return str(faiss.__version__)


def _prepared(directory: Path, pairs: PairBatches) -> Iterator[list[Pair]]:
    """Yield the batches; the folder is prepared when the first of them could be read, and the encoder was there."""
    batches = iter(pairs())
    first = next(batches, [])
    prepare_folder(directory)
    yield first
    yield from batches


def _encoder(
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


def _source(
    vectors: PairVectors | None, encoder: TextEncoder | None, directory: Path, options: EncoderOptions | None
) -> PairVectors:
    if vectors is None:
        if encoder is None:
            raise UsageError("neither vectors nor an encoder.")
        options = options or EncoderOptions()
        return EncodedPairs(encoder, directory, device=options.device, model=options.model)
    check_encoder(encoder, vectors)
    return vectors


def _jobs(whole: PartJob, probes: Mapping[Modality, Vectors | None], shards: int) -> Iterator[PartJob]:
    """Yield the parts of each modality that there are sample queries of: ``whole``, with the index's folder, in shards."""
    size = -(-whole.end // shards)
    for modality, queries in probes.items():
        for number, first in enumerate(range(0, whole.end, size)):
            folder, end = whole.folder / part_name(modality, number), min(first + size, whole.end)
            yield replace(whole, folder=folder, modality=modality, first=first, end=end, probes=queries)


def _kept_names(stored: PairFiles, *, keep: bool) -> list[str]:
    """Return the files of the pairs, named from the index's folder; where they shall not be kept, they go."""
    if keep:
        return [f"{PAIRS_FOLDER}/{name}" for name in stored.names]
    remove_folder(stored.folder)
    return []


def _modalities_of(vectors: PairVectors | None, encoder: EncoderOptions | None) -> Sequence[Modality]:
    if vectors is not None:
        return vectors.modalities
    return ("text", "image") if encoder is not None and encoder.of_images else ("text",)


def _refuse_empty(modalities: Sequence[Modality], parts: Sequence[PartInfo], counts: Counter[str]) -> None:
    """Refuse modalities that no part holds, because no pair had a vector of them."""
    held = {part.modality for part in parts}
    for modality in (each for each in modalities if each not in held):
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
        raise InputError(f"no pair has a vector of modality {modality} ({told})", where="index", mend="Leave it out.")
