"""Files of an index folder and its metadata, ``index.json``.

    index.json           build options, parts, and size and SHA-256 of every other file; written last
    encoder.npz | .json  the query encoder, if any
    pairs/00000.parquet  the indexed pairs, if they were kept, 50,000 per file
    text-00000/          a *part*: a FAISS index of caption vectors; image-00000/ of image vectors
        vectors.faiss    the vectors
        raw.f16.npy      ivfpq only: the vectors in half precision, from which searches are rescored
        keys.npy         16 bytes per *entry* (a caption or image of a pair): first the entries whose vectors are
                         stored, in order, then the aliases
        captions.npy     caption index of each entry: 0 the pair's own caption, n the n-th other one; only where a
                         pair has several entries
        aliases.npy      for each alias the number of the stored vector that it duplicates, ascending
        probes.npz       vectors of sample queries and their true nearest neighbours, if any: to tune and to check

A complete part never changes: an addition writes a new one (``text-00000-1``) and then index.json, so an interrupted
addition leaves the old index intact. The next build or addition removes folders that index.json does not list.

The same pairs, options and versions give the same bytes on the same kind of processor. Opening an index compares file
sizes, which detects truncated copies; `pairwright index check` compares the checksums.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.indexes.hnsw.options import IndexOptions

METADATA_FILE = "index.json"
VECTORS_FILE, KEYS_FILE, CAPTIONS_FILE, ALIASES_FILE, GROUND_TRUTH_FILE = (
    "vectors.faiss",
    "keys.npy",
    "captions.npy",
    "aliases.npy",
    "probes.npz",
)
FLOAT16_ROWS_FILE = "raw.f16.npy"
PAIRS_FOLDER, TEMPORARY_PAIRS_FOLDER = "pairs", "pairs-read"  # the latter exists during a build only
FORMAT = 3
_READABLE_FORMATS = (2, FORMAT)  # 2: one caption per pair, without captions.npy

IndexKind = Literal["flat", "hnsw", "ivfpq"]
VectorStorage = Literal["flat", "fp16", "int8", "ivfpq"]
Modality = Literal["text", "image"]
FileDigests = dict[str, dict[str, Any]]

MODALITIES: tuple[Modality, ...] = ("text", "image")


@dataclass(frozen=True)
class PartInfo:
    """Metadata of a part.

    Attributes:
        name: name of its folder.
        modality: text or image.
        kind: flat (exact), hnsw or ivfpq.
        storage: how a vector is stored.
        dim: length of a vector.
        vectors: number of stored vectors.
        duplicates: aliases whose vectors equal a stored one bit by bit.
        near_duplicates: aliases whose vectors are nearly equal to a stored one.
        m: links per vector; 0 unless hnsw.
        ef_construction: as in `IndexOptions`; 0 unless hnsw.
        ef_search: default number of candidates that a search keeps; 0 unless hnsw.
        nprobe: default number of lists that a search scans; 0 unless ivfpq.
        recall: recall@10 of the sample queries at the default effort, 0 to 1; 0 without sample queries.
    """

    name: str
    modality: Modality
    kind: IndexKind
    storage: VectorStorage
    dim: int
    vectors: int
    duplicates: int
    near_duplicates: int
    m: int = 0
    ef_construction: int = 0
    ef_search: int = 0
    nprobe: int = 0
    recall: float = 0.0

    @property
    def aliases(self) -> int:
        """Number of captions or images that share a stored vector with an earlier one."""
        return self.duplicates + self.near_duplicates

    @property
    def entries(self) -> int:
        """Number of searchable captions or images."""
        return self.vectors + self.aliases

    @property
    def effort(self) -> int:
        """Default search effort: ef_search or nprobe; 0 for exact search."""
        return self.ef_search or self.nprobe


@dataclass(frozen=True)
class IndexInfo:
    """Metadata of an index.

    Attributes:
        parts: text parts first, each modality in order of the pairs.
        pairs: number of input pairs.
        rejected: number of pairs without a vector in a requested modality, by reason.
        dim: length of a vector.
        encoder: fingerprint of the encoder; empty for precomputed vectors without an encoder.
        encoder_name: name of the encoder; empty in the same case.
        options: options of the build, used by additions too.
        why: reason for the chosen storage, one line.
        metric: always inner_product, which is the cosine of unit vectors.
        files: size in bytes and SHA-256 of each file, by path in the folder.
        versions: versions of the libraries that determine the bytes.
        seconds: duration of the build; 0.0 for an opened index, since durations are not stored.
    """

    parts: tuple[PartInfo, ...]
    pairs: int
    dim: int
    encoder: str
    encoder_name: str
    options: IndexOptions
    why: str = ""
    rejected: dict[str, int] = field(default_factory=dict)
    metric: str = "inner_product"
    files: FileDigests = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """The searchable modalities."""
        return tuple(name for name in MODALITIES if any(part.modality == name for part in self.parts))

    @property
    def vectors(self) -> int:
        """Number of stored vectors of all modalities."""
        return sum(part.vectors for part in self.parts)

    @property
    def duplicates(self) -> int:
        """Number of captions and images whose vectors equal a stored one."""
        return sum(part.duplicates for part in self.parts)

    @property
    def near_duplicates(self) -> int:
        """Number of captions and images whose vectors are nearly equal to a stored one."""
        return sum(part.near_duplicates for part in self.parts)

    @property
    def captions(self) -> int:
        """Number of searchable captions, counting every caption of a pair."""
        return sum(part.entries for part in self.parts_of("text"))

    @property
    def kind(self) -> IndexKind:
        """Kind of the largest part."""
        return max(self.parts, key=lambda part: part.vectors).kind

    @property
    def storage(self) -> VectorStorage:
        """Storage of the largest part."""
        return max(self.parts, key=lambda part: part.vectors).storage

    @property
    def ef_search(self) -> int:
        """Highest default ef_search of the parts; 0 without HNSW graphs."""
        return max(part.ef_search for part in self.parts)

    @property
    def nprobe(self) -> int:
        """Highest default nprobe of the parts; 0 without ivfpq."""
        return max(part.nprobe for part in self.parts)

    @property
    def bytes(self) -> int:
        """Total size of the files in bytes, without index.json."""
        return sum(int(file["bytes"]) for file in self.files.values())

    @property
    def pairs_files(self) -> tuple[str, ...]:
        """Paths of the Parquet files of the stored pairs, in order; empty when they were not kept."""
        return tuple(sorted(name for name in self.files if name.startswith(f"{PAIRS_FOLDER}/")))

    def parts_of(self, modality: Modality) -> tuple[PartInfo, ...]:
        """Return the parts of a modality, in order."""
        return tuple(part for part in self.parts if part.modality == modality)

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright index build --json`` prints."""
        names = "pairs captions vectors duplicates near_duplicates rejected seconds bytes kind storage dim"
        names += " ef_search nprobe encoder encoder_name"
        values = {name: getattr(self, name) for name in names.split()}
        return {**values, "parts": len(self.parts), "modalities": list(self.modalities), "why": self.why}


def digest_files(directory: Path, names: Iterable[str]) -> FileDigests:
    """Return size and SHA-256 of the files ``names`` in ``directory``."""
    return {name: {"bytes": (directory / name).stat().st_size, "sha256": hash_file(directory / name)} for name in names}


def write_metadata(directory: Path, info: IndexInfo) -> None:
    """Write index.json, which completes a new index or replaces the previous one."""
    stored = asdict(info)
    del stored["seconds"], stored["options"]["threads"]
    write_text(directory / METADATA_FILE, json.dumps({"format": FORMAT, **stored}, indent=2, sort_keys=True) + "\n")


def read_metadata(directory: Path) -> IndexInfo:
    """Read index.json and compare the sizes of the files.

    Raises:
        StorageError: if there is no complete index or its format is not supported.
    """
    path = directory / METADATA_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.pop("format") not in _READABLE_FORMATS:
            raise StorageError(f"{path}: index format of another version. Build the index again.")
        parts = tuple(PartInfo(**part) for part in stored.pop("parts"))
        info = IndexInfo(parts=parts, options=IndexOptions(**stored.pop("options")), **stored)
        sizes = {name: int(file["bytes"]) for name, file in info.files.items()}
    except (FileNotFoundError, NotADirectoryError):
        raise StorageError(
            f"{directory}: no index or an unfinished one. Build it: pairwright index build INPUT --out {directory}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise StorageError(f"{path}: damaged ({error}). Build the index again.") from None
    if not parts:
        raise StorageError(f"{path}: lists no parts. Build the index again.")
    for name, size in sizes.items():
        found = (directory / name).stat().st_size if (directory / name).is_file() else -1
        if found != size:
            state = "is missing" if found < 0 else f"has {found} bytes instead of {size}"
            raise StorageError(f"{directory / name}: {state}. Copy the index again or build it again.")
    return info


def with_seconds(info: IndexInfo, seconds: float) -> IndexInfo:
    """Return ``info`` with the duration of its build in seconds, rounded to milliseconds."""
    return replace(info, seconds=round(seconds, 3))
