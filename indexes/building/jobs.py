"""An index built by jobs that may run on different machines: a plan, a job per part, and the file that completes it.

`plan_index` decides what all parts need (encoder, storage, sample queries) from the survey of the pairs (`survey.py`) and
writes it beside them; `build_planned_part` builds one part from it, and `complete_index` writes ``index.json``.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.indexes.building.build import (
    check_modalities,
    check_no_empty_modality,
    choose_pair_storage,
    choose_vectors,
    commit_index,
    faiss_version,
    fit_or_load_encoder,
)
from pairwright.indexes.building.ingest import make_sample_queries
from pairwright.indexes.building.pair_vectors import PairVectors
from pairwright.indexes.building.part_jobs import PartJob, PartResult, build_part
from pairwright.indexes.building.stored_pairs import StoredPairs
from pairwright.indexes.building.survey import merge_surveys
from pairwright.indexes.encoders.lexical import NAME as LEXICAL
from pairwright.indexes.encoders.lexical import LexicalEncoder
from pairwright.indexes.encoders.protocols import TextEncoder
from pairwright.indexes.encoders.registry import EncoderOptions, encoder_file_name, load_encoder
from pairwright.indexes.hnsw.index_folder import part_name, prepare_folder
from pairwright.indexes.hnsw.metadata import MODALITIES, FileDigests, IndexInfo, Modality, PartInfo, digest_files
from pairwright.indexes.hnsw.options import IndexOptions
from pairwright.indexes.hnsw.storage import StorageChoice

CaptionSource = Callable[[], Iterator[str]]


@dataclass(frozen=True)
class IndexSettings:
    """Settings of an index.

    Attributes:
        encoder: the encoder; with ``vectors``, the one that made them, for queries, or None.
        encoder_from: folder of an index whose encoder is used instead.
        vectors: precomputed vectors of the pairs, or None.
        modalities: modalities to index.
        options: options of the index.
    """

    encoder: EncoderOptions | None
    encoder_from: Path | None
    vectors: PairVectors | None
    modalities: tuple[Modality, ...]
    options: IndexOptions

    @property
    def counts_features(self) -> bool:
        """Whether the encoder is fitted on document frequencies."""
        return self.encoder_from is None and self.encoder is not None and self.encoder.name == LEXICAL


def plan_index(
    directory: Path, pairs: Sequence[Path], surveys: Sequence[Path], settings: IndexSettings, captions: CaptionSource
) -> list[Path]:
    """Prepare the folder of an index and write encoder and plan; return their files.

    Args:
        directory: folder of the index.
        pairs: files of the pairs, all in one folder.
        surveys: files of their surveys.
        settings: of the index.
        captions: returns the captions of the pairs, for an encoder that is fitted on them otherwise.

    Raises:
        UsageError, InputError, MissingResourceError: as `build.build_index_from_pairs`.
    """
    pool = merge_surveys(surveys)
    used = _encoder(settings, pool.frequency, captions)  # before the folder is emptied: it may be in it
    prepare_folder(directory)
    files = []
    if used is not None:
        files.append(directory / encoder_file_name(used))
        used.save(files[0])
    source = choose_vectors(settings.vectors, used, directory, settings.encoder)
    check_modalities(source.modalities, settings.modalities)
    sample = _read_sample(pairs, pool.sample)
    queries = {
        name: make_sample_queries(sample, name, source, used) for name in MODALITIES if name in settings.modalities
    }
    stored = StoredPairs(pairs[0].parent, tuple(path.name for path in pairs), pool.ends, pool.captions, pool.siblings)
    choice = choose_pair_storage(source, stored, settings.modalities, settings.options)
    head = {"choice": asdict(choice), "ends": pool.ends, "captions": pool.captions}
    arrays: dict[str, Any] = {name: rows for name, rows in queries.items() if rows is not None}
    arrays |= {"head": np.frombuffer(json.dumps(head).encode(), np.uint8), "siblings": pool.siblings}
    path = surveys[0].parent / "index-plan.npz"
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)
    return [*files, path]


def build_planned_part(  # noqa: PLR0913, PLR0917 - a part and what it is built from
    directory: Path,
    pairs: Sequence[Path],
    plan: Path,
    settings: IndexSettings,
    modality: Modality,
    number: int,
    shards: int,
    threads: int = 0,
) -> PartResult:
    """Build part ``number`` of ``shards`` of a modality in this process; the bytes do not depend on ``threads``."""
    with np.load(plan, allow_pickle=False) as stored_plan:
        head = json.loads(stored_plan["head"].tobytes())
        siblings, queries = stored_plan["siblings"], stored_plan.get(modality, None)
    names, ends = tuple(path.name for path in pairs), tuple(head["ends"])
    stored = StoredPairs(pairs[0].parent, names, ends, head["captions"], siblings)
    options = settings.encoder or EncoderOptions()
    used = load_encoder(directory, device=options.device, model=options.model)
    source = choose_vectors(settings.vectors, used, directory, settings.encoder)
    size = -(-stored.count // shards)
    first, end = number * size, min((number + 1) * size, stored.count)
    choice, folder = StorageChoice(**head["choice"]), directory / part_name(modality, number)
    job = PartJob(folder, modality, stored, first, end, choice, settings.options, queries)
    return build_part(job, source, threads, ("index", folder.name))


def complete_index(  # noqa: PLR0913, PLR0917 - what completes an index
    directory: Path,
    plan: Path,
    settings: IndexSettings,
    parts: Sequence[PartInfo],
    rejected: Mapping[str, int],
    files: FileDigests,
) -> IndexInfo:
    """Write ``index.json`` of the built ``parts``, with the digests of their ``files``.

    Raises:
        InputError: for a duplicate key, or a modality without vectors.
    """
    with np.load(plan, allow_pickle=False) as stored_plan:
        head = json.loads(stored_plan["head"].tobytes())
    check_no_empty_modality(settings.modalities, parts, Counter(rejected))
    used = load_encoder(directory) if settings.encoder or settings.encoder_from else None
    own = [encoder_file_name(used)] if used else []
    info = IndexInfo(
        parts=tuple(parts),
        pairs=head["ends"][-1],
        dim=head["choice"]["dim"],
        encoder=used.fingerprint if used else "",
        encoder_name=used.name if used else "",
        options=settings.options,
        why=head["choice"]["why"],
        rejected=dict(sorted(rejected.items())),
        files=digest_files(directory, own) | dict(files),
        versions={"faiss": faiss_version()},
    )
    commit_index(directory, info)
    return info


def _encoder(settings: IndexSettings, frequency: Any, captions: CaptionSource) -> TextEncoder | None:
    if settings.counts_features and settings.encoder:
        return LexicalEncoder.of_counts(frequency, dim=settings.encoder.dim, seed=settings.encoder.seed)
    return fit_or_load_encoder(captions(), settings.encoder, settings.encoder_from, needed=settings.vectors is None)


def _read_sample(pairs: Sequence[Path], sample: Sequence[tuple[int, int]]) -> list[Pair]:
    """Return the pairs at (file, row), in this order."""
    rows: dict[int, list[int]] = {}
    for part, row in sample:
        rows.setdefault(part, []).append(row)
    found: dict[tuple[int, int], Pair] = {}
    for part, numbers in rows.items():
        records = PAIRS.records(PAIRS.read_frame(pairs[part])[numbers])
        found |= {(part, row): record for row, record in zip(numbers, records, strict=True)}
    return [found[place] for place in sample]
