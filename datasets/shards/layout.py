"""Folder of shards in the WebDataset layout: its names and side files, and how its shards are found.

A dataset is a folder of ``00000.tar``, ``00001.tar`` ... without gaps, each with an index (`index.py`), with ``sizes.json``
(tar to number of samples, for OpenCLIP-style loaders) and ``SHA256SUMS`` (for ``sha256sum -c``). Trainers take brace notation,
``{00000..00009}.tar``. `writing.py` and `reading.py` write and read shards; contents of a sample: `samples.py`; the tar
format: `ustar.py`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import orjson

from pairwright.datasets.build_manifest import stored_shards
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import StoreListings
from pairwright.datasets.version_switch import complete_pending_switch

SIZES_FILE = "sizes.json"
CHECKSUMS_FILE = "SHA256SUMS"

_NUMBERED = re.compile(r"\d{5}\.tar")
_BRACES = re.compile(r"(?P<head>.*)\{(?P<first>\d+)\.\.(?P<last>\d+)\}(?P<tail>.*)")


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """Metadata of a written shard.

    Attributes:
        name: file name.
        count: number of samples.
        bytes: file size.
        sha256: of the file, in hex.
        image_ext: of its images; empty for text-only or no samples.
    """

    name: str
    count: int
    bytes: int
    sha256: str
    image_ext: str


@dataclass(frozen=True, slots=True)
class ShardSet:
    """A finished folder of shards.

    Attributes:
        folder: their folder.
        shards: in order.
        pattern: their brace notation with the folder; empty if there are no shards.
    """

    folder: Path
    shards: tuple[ShardInfo, ...]
    pattern: str

    @property
    def count(self) -> int:
        """Return the total number of samples."""
        return sum(shard.count for shard in self.shards)


def shard_name(number: int) -> str:
    """Return the file name of shard ``number``, from 0."""
    if not 0 <= number <= 99_999:
        raise UsageError(f"shard number {number} has more than five digits. Make shards larger.")
    return f"{number:05d}.tar"


def list_numbered_shards(folder: Path) -> list[str]:
    """Return the names of a folder's ``00000.tar`` ..., in order."""
    return sorted(path.name for path in folder.glob("*.tar") if _NUMBERED.fullmatch(path.name))


def read_sizes(path: Path) -> dict[str, int] | None:
    """Return the contents of a ``sizes.json``: samples by shard; None if it cannot be read."""
    try:
        return decode_sizes(path.read_bytes())
    except (OSError, StorageError):  # StorageError: of a store
        return None


def decode_sizes(content: bytes) -> dict[str, int] | None:
    """Return the contents of a ``sizes.json``, as `read_sizes`."""
    try:
        sizes = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return sizes if isinstance(sizes, dict) else None


def format_brace_pattern(folder: Path, shards: int) -> str:
    """Return the brace notation of all shards of a folder: ``folder/{00000..00009}.tar``."""
    if shards == 0:
        return ""
    if shards == 1:
        return str(folder / shard_name(0))
    return str(folder / f"{{{0:05d}..{shards - 1:05d}}}.tar")


def describe_shard_shortage(shards: int, samples: int, readers: int) -> str:
    """Return why there are too few shards for loaders that give each reader whole ones; empty if there are enough.

    Args:
        shards: number of shards.
        samples: number of samples in them.
        readers: workers x ranks of the training run; each takes a share of the shards, and one without a shard fails
            (OpenCLIP) or reads nothing (webdataset).
    """
    if shards >= readers:
        return ""
    problem = (
        f"{shards:,} shards for {readers:,} readers (workers x ranks): loaders that share out whole shards, such as "
    )
    each = samples // readers
    fix = (
        f"Write them again with at most {each:,} samples each"
        if each
        else "There are fewer samples than readers: use fewer"
    )
    return f"{problem}webdataset and OpenCLIP, leave some without data. {fix}."


def summarize_shards(shards: ShardSet) -> dict[str, str | int]:
    """Return a manifest's entry for a finished folder; ``folder`` and ``pattern`` are names without their parent path."""
    return {
        "folder": shards.folder.name,
        "pattern": Path(shards.pattern).name,
        "files": len(shards.shards),
        "samples": shards.count,
        "bytes": sum(shard.bytes for shard in shards.shards),
        "image_ext": next((shard.image_ext for shard in shards.shards if shard.count), ""),
    }


def shards_folder(dataset: Path) -> Path:
    """Return the folder with the tars of a dataset: ``shards`` of a build, ``data`` of an export, else the path itself."""
    shards = dataset / "shards"
    found = (folder for folder in (shards, dataset / "data", dataset) if any(folder.glob("*.tar")))
    return next(found, shards if shards.is_dir() else dataset)


def find_shards(source: Path, *, whole: bool = True) -> list[Path]:
    """Return the tars that a folder, a tar or a brace pattern names, in order.

    Args:
        source: folder, tar or pattern.
        whole: require all shards that the folder's sizes list.

    Raises:
        InputError: if there are none, or one of them is missing.
    """
    if not is_remote(source):  # of a build whose version is being replaced
        complete_pending_switch((source if source.is_dir() else source.parent).parent)
    braces = _BRACES.fullmatch(str(source))
    if braces:
        width = len(braces["first"])
        numbers = range(int(braces["first"]), int(braces["last"]) + 1)
        listings = StoreListings()
        tars = [listings.path(f"{braces['head']}{number:0{width}d}{braces['tail']}") for number in numbers]
    else:
        tars = sorted(source.glob("*.tar")) if source.is_dir() else [source]
    missing = [tar for tar in tars if not tar.is_file()]
    own = stored_shards(source) if not tars else ""
    if own or (not tars and (source / "shards").is_dir()):
        raise InputError("no .tar in it", where=str(source), fix=f"Give its shards: {own or source / 'shards'}.")
    if not tars:
        raise _no_shards_error(source, "no .tar in it")
    if whole and source.is_dir():
        _require_listed_shards(source, {tar.name for tar in tars})
    if missing:
        several = f"{len(missing)} of {len(tars)} shards missing, first {missing[0]}"
        raise _no_shards_error(source, several if braces else "no such file")
    if not (source.is_dir() or braces or source.suffix == ".tar"):
        raise _no_shards_error(source, "not a .tar")
    return tars


def _require_listed_shards(folder: Path, found: set[str]) -> None:
    """Require the shards that a folder's sizes list; without them, the rest would look complete."""
    sizes = read_sizes(folder / SIZES_FILE) or {}  # without, the number is unknown; `verify` reports broken files
    gone = sorted(set(sizes) - found)
    if gone:
        raise InputError(
            f"{len(gone)} of {len(sizes)} shards that {SIZES_FILE} lists are missing, first {gone[0]}",
            where=str(folder),
            fix=f"Copy them again. To read only the others, name them: {folder / '{00000..00009}.tar'}.",
        )


def _no_shards_error(source: Path, what: str) -> InputError:
    return InputError(what, where=str(source), fix="Give a build, a folder of shards, a .tar, or {00000..00009}.tar.")
