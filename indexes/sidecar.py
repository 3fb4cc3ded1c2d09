"""What an index folder says about itself: ``index.json``, written last, so that its presence means a whole index.

    index.json     how the index was built, and size and SHA-256 of each file beside it
    vectors.faiss  the FAISS index over the distinct vectors
    keys.npy       16 bytes a pair: first the pairs whose vectors are stored, in order, then the aliases
    aliases.npy    for each alias the number of the stored vector that it shares, ascending
    probes.npy     vectors of sample queries, if any: ef_search is tuned and recall is checked on them
    encoder.npz    the encoder that the vectors came from, if any

The same pairs, options and program versions give the same bytes on the same kind of processor. Opening compares sizes,
which finds a torn copy at once; `pairwright index check` compares the checksums.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pairwright.datasets.atomic import write_text
from pairwright.datasets.errors import StorageError, UsageError

SIDECAR = "index.json"
VECTORS, KEYS, ALIASES = "vectors.faiss", "keys.npy", "aliases.npy"
RAW = "raw.f16.npy"
ENCODER, PROBES = "encoder.npz", "probes.npy"
FORMAT = 1

Kind = Literal["flat", "hnsw", "ivfpq"]
Storage = Literal["flat", "fp16", "int8", "ivfpq"]


@dataclass(frozen=True)
class IndexOptions:
    """How to build an index.

    Attributes:
        m: links of a vector at each upper level of the HNSW graph (twice that at the lowest), 2 to 128.
        ef_construction: candidates that are kept while a vector's links are sought; at least ``m``.
        flat_below: pools with fewer distinct vectors are searched exactly, without a graph.
        recall: share of the true ten nearest that ``ef_search`` is raised for, on sample queries, above 0 to 1.
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
    flat_below: int = 1000
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
class IndexInfo:
    """What an index is and how it was built.

    Attributes:
        kind: flat (exact) or hnsw.
        dim: length of a vector.
        vectors: distinct vectors that are stored.
        duplicates: further pairs whose vectors equal a stored one to the last bit, kept as aliases.
        m: links a vector; 0 when flat.
        ef_construction: 0 when flat.
        ef_search: candidates that are kept in a search by default; 0 when flat.
        encoder: fingerprint of the encoder; empty when the vectors came from elsewhere.
        metric: always inner_product, which of unit vectors is the cosine.
        files: name to size in bytes and SHA-256.
        versions: of the programs that shaped the bytes.
        seconds: of building; 0.0 when opened, since time is not part of the stored bytes.
    """

    kind: Kind
    dim: int
    vectors: int
    duplicates: int
    m: int
    ef_construction: int
    ef_search: int
    encoder: str
    metric: str = "inner_product"
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def pairs(self) -> int:
        """Pairs that can be found: vectors and their aliases."""
        return self.vectors + self.duplicates

    @property
    def bytes(self) -> int:
        """Size of the files together, without the sidecar."""
        return sum(int(file["bytes"]) for file in self.files.values())

    def summary(self) -> dict[str, Any]:
        """Return what ``pairwright index build --json`` prints."""
        names = ("vectors", "duplicates", "seconds", "bytes", "kind", "dim", "ef_search", "encoder")
        return {name: getattr(self, name) for name in names}


def write_sidecar(directory: Path, info: IndexInfo, names: Sequence[str]) -> IndexInfo:
    """Describe the named files of ``directory`` and write the sidecar, which makes the index whole."""
    files = {name: {"bytes": (directory / name).stat().st_size, "sha256": sha256(directory / name)} for name in names}
    info = replace(info, files=files)
    stored = {"format": FORMAT, **{name: value for name, value in asdict(info).items() if name != "seconds"}}
    write_text(directory / SIDECAR, json.dumps(stored, indent=2, sort_keys=True) + "\n")
    return info


def read_sidecar(directory: Path) -> IndexInfo:
    """Read the sidecar and compare the sizes of the files.

    Raises:
        StorageError: when there is no whole index, or it is of another version.
    """
    path = directory / SIDECAR
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored.pop("format") != FORMAT:
            raise StorageError(f"{path}: an index of another version. Build it again.")
        info = IndexInfo(**stored)
        sizes = {name: int(file["bytes"]) for name, file in info.files.items()}
    except (FileNotFoundError, NotADirectoryError):
        raise StorageError(
            f"{directory}: no index here, or one that was not finished. Build it: pairwright index build INPUT --out {directory}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: not a whole sidecar ({error}). Build the index again.") from None
    for name, size in sizes.items():
        found = (directory / name).stat().st_size if (directory / name).is_file() else -1
        if found != size:
            state = "is missing" if found < 0 else f"has {found} bytes instead of {size}"
            raise StorageError(f"{directory / name}: {state}. Copy the index again or build it again.")
    return info


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
