"""What an index folder says about itself: ``index.json``, written last, so that its presence means a whole index.

    index.json           how the index was built, its parts, and size and SHA-256 of every other file
    encoder.npz | .json  the encoder that queries need, if any
    pairs/00000.parquet  the indexed pairs, if they were kept, some ten thousand a file
    text-00000/          a *part*: FAISS's index over vectors of captions; image-00000/ over those of images
        vectors.faiss    the vectors
        raw.f16.npy      ivfpq only: the vectors in half precision, that searches are rescored from
        keys.npy         16 bytes an *entry* (a caption or image of a pair): first the entries whose vectors are stored,
                         in order, then the aliases
        captions.npy     for each entry which caption of its pair it is: 0 its own, n the n-th other one; only where
                         a pair has several entries
        aliases.npy      for each alias the number of the stored vector that it is a copy of, ascending
        probes.npz       vectors of sample queries and their true nearest, if any: to tune and to check

A part never changes once it is whole: an addition writes a new one (``text-00000-1``) and then index.json, so that a
kill leaves the old index or the new one. Folders that index.json does not name are leavings, and are cleared away
by the next build or addition.

The same pairs, options and program versions give the same bytes on the same kind of processor. Opening compares sizes,
which finds a torn copy at once; `pairwright index check` compares the checksums.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import StorageError, UsageError

METADATA_FILE = "index.json"
VECTORS_FILE, KEYS_FILE, CAPTIONS_FILE, ALIASES_FILE, GROUND_TRUTH_FILE = (
    "vectors.faiss",
    "keys.npy",
    "captions.npy",
    "aliases.npy",
    "probes.npz",
)
FLOAT16_ROWS_FILE = "raw.f16.npy"
PAIRS_FOLDER, TEMPORARY_PAIRS_FOLDER = "pairs", "pairs-read"  # kept, and only for the time of a build
FORMAT = 3
_READABLE_FORMATS = (2, FORMAT)  # 2 has one caption a pair, and no captions.npy

IndexKind = Literal["flat", "hnsw", "ivfpq"]
VectorStorage = Literal["flat", "fp16", "int8", "ivfpq"]
Modality = Literal["text", "image"]
FileDigests = dict[str, dict[str, Any]]

MODALITIES: tuple[Modality, ...] = ("text", "image")


@dataclass(frozen=True)
class IndexOptions:
    """How to build an index.

    Attributes:
        m: links of a vector at each upper level of the HNSW graph (twice that at the lowest), 2 to 128.
        ef_construction: candidates that are kept while a vector's links are sought; at least ``m``.
        flat_below: parts of fewer captions or images are searched exactly: that takes milliseconds a query, and a graph
            takes about a millisecond a vector to build.
        recall: share of the true ten nearest that a part's effort is raised for, on sample queries, above 0 to 1.
        storage: how a vector is stored: flat (float32), fp16, int8, ivfpq (codes in memory, rows on disk), or auto for
            the form that loses least within ``memory_gib``.
        memory_gib: what the whole index may take in memory, for auto; a fixed default, not this machine's memory, so
            that the same pairs give the same index anywhere.
        near: cosine from which a vector counts as a copy of a stored one, above 0 to 1; 1 for equal ones only.
        threads: to build with. 0 stands for all cores where FAISS gives the same graph for any number of them (from
            1.15.1 on), and for one before; asking an older FAISS for several gives other bytes every time.
    """

    m: int = 32
    ef_construction: int = 200
    flat_below: int = 50_000
    recall: float = 0.95
    storage: Literal["auto", "flat", "fp16", "int8", "ivfpq"] = "auto"
    memory_gib: float = 16.0
    near: float = 0.999
    threads: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 128:
            raise UsageError(f"m {self.m}: has to be from 2 to 128.")
        if self.ef_construction < self.m:
            raise UsageError(f"ef_construction {self.ef_construction}: has to be at least m ({self.m}).")
        if not 0 < self.recall <= 1:
            raise UsageError(f"recall {self.recall}: has to be above 0 and at most 1.")
        if self.storage not in {"auto", "flat", "fp16", "int8", "ivfpq"}:
            raise UsageError(f"storage {self.storage!r}: has to be auto, flat, fp16, int8 or ivfpq.")
        if not self.memory_gib > 0:
            raise UsageError(f"memory_gib {self.memory_gib}: has to be above 0.")
        if not 0 < self.near <= 1:
            raise UsageError(f"near {self.near}: has to be above 0 and at most 1.")
        if self.flat_below < 0 or self.threads < 0:
            raise UsageError("flat_below has to be 0 or more, and so has threads.")


@dataclass(frozen=True)
class PartInfo:
    """What a part is.

    Attributes:
        name: of its folder.
        modality: what its vectors are of.
        kind: flat (exact), hnsw or ivfpq.
        storage: how a vector is stored.
        dim: length of a vector.
        vectors: that are stored.
        duplicates: further captions or images whose vectors equal a stored one to the last bit, kept as aliases.
        near_duplicates: further ones whose vectors are nearly a stored one, kept as aliases.
        m: links a vector; 0 unless hnsw.
        ef_construction: 0 unless hnsw.
        ef_search: candidates that a search keeps by default; 0 unless hnsw.
        nprobe: lists that a search looks into by default; 0 unless ivfpq.
        recall: of the ten nearest of the sample queries at that effort, 0 to 1; 0 when there were no such queries.
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
        """Captions or images that share a stored vector with an earlier one."""
        return self.duplicates + self.near_duplicates

    @property
    def entries(self) -> int:
        """Captions or images that can be found."""
        return self.vectors + self.aliases

    @property
    def effort(self) -> int:
        """What a search spends by default: ef_search or nprobe; 0 when it is exact."""
        return self.ef_search or self.nprobe


@dataclass(frozen=True)
class IndexInfo:
    """What an index is and how it was built.

    Attributes:
        parts: text parts first, each modality in order of the pairs.
        pairs: that were given.
        rejected: reason to how many of them have no vector in a modality that was asked for.
        dim: length of a vector.
        encoder: fingerprint of the encoder; empty when the vectors came from elsewhere.
        encoder_name: empty likewise.
        options: what it was built with, and additions will be.
        why: why the vectors are stored as they are, one line.
        metric: always inner_product, which of unit vectors is the cosine.
        files: path in the folder to size in bytes and SHA-256.
        versions: of the programs that shaped the bytes.
        seconds: of building; 0.0 when opened, since time is not part of the stored bytes.
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
        """What can be searched for."""
        return tuple(name for name in MODALITIES if any(part.modality == name for part in self.parts))

    @property
    def vectors(self) -> int:
        """Stored vectors, all modalities together; so are the counts of duplicates."""
        return sum(part.vectors for part in self.parts)

    @property
    def duplicates(self) -> int:
        """Captions and images whose vectors equal a stored one."""
        return sum(part.duplicates for part in self.parts)

    @property
    def near_duplicates(self) -> int:
        """Captions and images whose vectors are nearly a stored one."""
        return sum(part.near_duplicates for part in self.parts)

    @property
    def captions(self) -> int:
        """Captions that can be found, all captions of a pair counted."""
        return sum(part.entries for part in self.parts_of("text"))

    @property
    def kind(self) -> IndexKind:
        """Of the largest part."""
        return max(self.parts, key=lambda part: part.vectors).kind

    @property
    def storage(self) -> VectorStorage:
        """Of the largest part."""
        return max(self.parts, key=lambda part: part.vectors).storage

    @property
    def ef_search(self) -> int:
        """The highest default of a part; 0 when none is an HNSW graph."""
        return max(part.ef_search for part in self.parts)

    @property
    def nprobe(self) -> int:
        """The highest default of a part; 0 when none is ivfpq."""
        return max(part.nprobe for part in self.parts)

    @property
    def bytes(self) -> int:
        """Size of the files together, without the sidecar."""
        return sum(int(file["bytes"]) for file in self.files.values())

    @property
    def pairs_files(self) -> tuple[str, ...]:
        """Names of the files of kept pairs, in order; empty when they were not kept."""
        return tuple(sorted(name for name in self.files if name.startswith(f"{PAIRS_FOLDER}/")))

    def parts_of(self, modality: Modality) -> tuple[PartInfo, ...]:
        """Return the parts of a modality, in order."""
        return tuple(part for part in self.parts if part.modality == modality)

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright index build --json`` prints."""
        names = (
            "pairs",
            "captions",
            "vectors",
            "duplicates",
            "near_duplicates",
            "rejected",
            "seconds",
            "bytes",
            "kind",
        )
        named = {
            name: getattr(self, name)
            for name in (*names, "storage", "dim", "ef_search", "nprobe", "encoder", "encoder_name")
        }
        return {**named, "parts": len(self.parts), "modalities": list(self.modalities), "why": self.why}


def digest_files(directory: Path, names: Iterable[str]) -> FileDigests:
    """Return size and SHA-256 of the named files of ``directory``."""
    return {name: {"bytes": (directory / name).stat().st_size, "sha256": hash_file(directory / name)} for name in names}


def write_metadata(directory: Path, info: IndexInfo) -> None:
    """Write the sidecar, which makes the index whole, or replaces one index by the next."""
    stored = asdict(info)
    del stored["seconds"], stored["options"]["threads"]
    write_text(directory / METADATA_FILE, json.dumps({"format": FORMAT, **stored}, indent=2, sort_keys=True) + "\n")


def read_metadata(directory: Path) -> IndexInfo:
    """Read the sidecar and compare the sizes of the files.

    Raises:
        StorageError: when there is no whole index, or it is of another version.
    """
    path = directory / METADATA_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.pop("format") not in _READABLE_FORMATS:
            raise StorageError(f"{path}: an index of another version. Build it again.")
        parts = tuple(PartInfo(**part) for part in stored.pop("parts"))
        info = IndexInfo(parts=parts, options=IndexOptions(**stored.pop("options")), **stored)
        sizes = {name: int(file["bytes"]) for name, file in info.files.items()}
    except (FileNotFoundError, NotADirectoryError):
        raise StorageError(
            f"{directory}: no index here, or one that was not finished. Build it: pairwright index build INPUT --out {directory}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise StorageError(f"{path}: not a whole sidecar ({error}). Build the index again.") from None
    if not parts:
        raise StorageError(f"{path}: names no parts. Build the index again.")
    for name, size in sizes.items():
        found = (directory / name).stat().st_size if (directory / name).is_file() else -1
        if found != size:
            state = "is missing" if found < 0 else f"has {found} bytes instead of {size}"
            raise StorageError(f"{directory / name}: {state}. Copy the index again or build it again.")
    return info


def with_seconds(info: IndexInfo, seconds: float) -> IndexInfo:
    """Return ``info`` with the time that it took, in seconds, rounded to milliseconds."""
    return replace(info, seconds=round(seconds, 3))


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
