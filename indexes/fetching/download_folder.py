"""The folder that downloads live in: URL to image, filled by passes, each in a folder of its own.

```
images/
  fetch.json                what every image here was made with
  pass-00000/               one run of img2dataset
    urls.parquet            what it was asked for
    shards/00000.tar ...    what it wrote: per image a picture and a .json
    outcomes.parquet        one row a URL: fetched, failed or lost, with its place or its reason
    sealed.json             written last: sizes of the tars
```

img2dataset resumes by shard numbers, which hold only while input and shard size stay as they were, and takes a torn shard
for none at all; so nothing is ever resumed inside a pass. A pass that was killed is *settled* when the folder is opened
next: a torn tar is cut behind its last whole image and closed, every image is checked, and what has no outcome is asked
for by the next pass. A sealed pass whose tars have other sizes than they had is settled again.

One command at a time works in a folder: it holds a lock that ends with its process.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.errors import InputError, StorageError, UsageError, describe_write_error
from pairwright.datasets.file_locks import acquire_lock
from pairwright.datasets.images.loading import UnusableImageError, check_image
from pairwright.datasets.tar_index import TarMember, iter_tar_members
from pairwright.indexes.fetching.failure_reasons import LOST_MESSAGE, classify_failure

FORMAT = 1
SETTINGS_FILE = "fetch.json"
OUTCOME_SCHEMA = pl.Schema(
    {
        "url": pl.String(),
        "state": pl.String(),  # fetched, failed, lost
        "image": pl.String(),  # shard.tar::member, from the folder; empty unless fetched
        "width": pl.Int32(),
        "height": pl.Int32(),
        "bytes": pl.Int64(),
        "reason": pl.String(),
        "detail": pl.String(),
        "passing": pl.Boolean(),
        "sha256": pl.String(),  # of the file as the server sent it; empty unless fetched
    }
)
_TAR_END = bytes(1024)
_TAR_BLOCK = 512

OutcomeRow = tuple[str, str, str, int, int, int, str, str, bool, str]


@dataclass(frozen=True, slots=True)
class FetchPass:
    """One run of img2dataset and what it left."""

    folder: Path

    @property
    def urls(self) -> Path:
        """Parquet of one column ``url``: what was asked for."""
        return self.folder / "urls.parquet"

    @property
    def shards(self) -> Path:
        """Where img2dataset writes."""
        return self.folder / "shards"

    @property
    def is_sealed(self) -> bool:
        """Say whether its outcomes are written and its tars are as they were then."""
        try:
            sealed = json.loads((self.folder / "sealed.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return (self.folder / "outcomes.parquet").exists() and bool(sealed.get("tars") == self._sizes())

    def _sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in sorted(self.shards.glob("*.tar"))}

    def outcomes(self) -> pl.DataFrame:
        """Return the frame of `OUTCOME_SCHEMA`.

        Raises:
            StorageError: when the file is not whole.
        """
        path = self.folder / "outcomes.parquet"
        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            what = str(error).partition("\n")[0]
            raise StorageError(f"{path}: not whole ({what}). Delete it and run again.") from None
        if frame.schema != OUTCOME_SCHEMA:
            raise StorageError(f"{path}: written by another version. Fetch into another folder with --out.")
        return frame

    def settle(self, *, ended: bool) -> pl.DataFrame:
        """Repair what img2dataset left, and write down every outcome.

        Args:
            ended: the run came to its end or was given up, so that a URL without an outcome is lost; else it was
                interrupted, and such a URL has no row.

        Returns:
            The frame of `OUTCOME_SCHEMA`, in the order asked.
        """
        found: dict[str, OutcomeRow] = {}
        for row in self._failures():
            found[row[0]] = row
        for tar in sorted(self.shards.glob("*.tar")):
            for row in repair_tar(tar, self.folder.name):
                if row[1] == "fetched" or row[0] not in found:
                    found[row[0]] = row
        asked = _read_urls(self.urls)
        rows = [found[url] if url in found else _lost_row(url) for url in asked if ended or url in found]
        frame = pl.DataFrame(rows, schema=OUTCOME_SCHEMA, orient="row")
        with replace_atomically(self.folder / "outcomes.parquet") as temporary:
            frame.write_parquet(temporary)
        write_text(self.folder / "sealed.json", json.dumps({"tars": self._sizes()}))
        return frame

    def _failures(self) -> Iterator[OutcomeRow]:
        """Yield what the tables beside the shards, and an earlier seal, say of failures; torn tables say nothing."""
        for table in sorted(self.shards.glob("*.parquet")):
            with suppress(OSError, pl.exceptions.PolarsError):
                told = pl.read_parquet(table, columns=["url", "status", "error_message"])
                for url, status, message in told.filter(pl.col("status") != "success").iter_rows():
                    yield _failed_row(url, *classify_failure(message or "", status))
        with suppress(StorageError):
            yield from self.outcomes().filter(pl.col("state") != "fetched").iter_rows()


def _failed_row(url: str, reason: str, detail: str, passing: bool) -> OutcomeRow:  # noqa: FBT001 - as `explain` gives them
    return (url, "failed", "", 0, 0, 0, reason, detail, passing, "")


def _lost_row(url: str) -> OutcomeRow:
    return (url, "lost", "", 0, 0, 0, "download_failed", LOST_MESSAGE, True, "")


def _read_urls(path: Path) -> list[str]:
    try:
        return pl.read_parquet(path)["url"].to_list()
    except (OSError, pl.exceptions.PolarsError):
        return []  # killed before anything was asked


def repair_tar(path: Path, folder: str) -> list[OutcomeRow]:
    """Return the outcomes that a tar of img2dataset holds, after cutting off a torn end.

    Args:
        path: the tar. It is removed when it holds no whole image at all and is torn.
        folder: name of the pass, for the places.

    Returns:
        A row of `OUTCOME_SCHEMA` for each picture with its .json: fetched, or failed as bad_image.
    """
    rows: list[OutcomeRow] = []
    picture: TarMember | None = None
    end, whole = 0, True
    try:
        with path.open("rb") as handle:
            for found in iter_tar_members(path):
                if not isinstance(found, TarMember):
                    whole = False
                    break
                if not found.name.endswith(".json"):
                    picture = found
                    continue
                if picture is not None:
                    rows.append(_image_row(handle, found, picture, f"{folder}/shards/{path.name}"))
                    end = found.offset + -(-found.size // _TAR_BLOCK) * _TAR_BLOCK
                picture = None
    except InputError:
        whole = False
    if not whole:
        _truncate_tar(path, end)
    return rows


def _image_row(handle: Any, description: TarMember, picture: TarMember, shard: str) -> OutcomeRow:
    try:
        told = json.loads(_read_member(handle, description))
    except ValueError as error:
        raise InputError(f"its description is damaged ({error})", where=shard, fix="Fetch it again.") from None
    place = f"{shard}::{picture.name}"
    try:
        width, height, _ = check_image(_read_member(handle, picture), "header", place)
    except UnusableImageError as flaw:
        return _failed_row(told["url"], flaw.reason, f"what was stored {flaw.what}", passing=False)
    return (told["url"], "fetched", place, width, height, picture.size, "", "", False, told.get("sha256") or "")


def _read_member(handle: Any, member: TarMember) -> bytes:
    handle.seek(member.offset)
    data: bytes = handle.read(member.size)
    return data


def _truncate_tar(path: Path, end: int) -> None:
    if not end:
        path.unlink()
        return
    with path.open("r+b") as handle:
        handle.truncate(end)
        handle.seek(end)
        handle.write(_TAR_END)
        os.fsync(handle.fileno())


class DownloadFolder:
    """A folder of downloads, opened by `open_download_folder`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def passes(self) -> list[FetchPass]:
        """Return the passes in order."""
        return [FetchPass(path) for path in sorted(self.root.glob("pass-*")) if path.is_dir()]

    def settle(self) -> int:
        """Settle the passes that were interrupted or changed; return how many."""
        open_ = [one for one in self.passes() if not one.is_sealed]
        for one in open_:
            one.settle(ended=False)
        return len(open_)

    def outcomes(self) -> pl.DataFrame:
        """Return one row a URL: its first image, or else its last failure; with ``tries``, how often it was asked.

        Raises:
            StorageError: when a file of the folder is damaged.
        """
        frames = [one.outcomes() for one in self.passes()]
        every = pl.concat([pl.DataFrame(schema=OUTCOME_SCHEMA), *frames]).with_row_index("order")
        tries = every.group_by("url").len("tries")
        rank = pl.when(pl.col("state") == "fetched").then(0).otherwise(1)
        newest = (
            pl.when(pl.col("state") == "fetched")
            .then(pl.col("order").cast(pl.Int64))
            .otherwise(-pl.col("order").cast(pl.Int64))
        )
        best = every.sort("url", rank, newest).unique("url", keep="first", maintain_order=True)
        return best.join(tries, on="url").drop("order")

    def begin(self, urls: list[str]) -> FetchPass:
        """Make the folder of the next pass, asked for ``urls``."""
        number = 1 + max((int(one.folder.name.partition("-")[2]) for one in self.passes()), default=-1)
        new = FetchPass(self.root / f"pass-{number:05d}")
        new.shards.mkdir(parents=True)
        with replace_atomically(new.urls) as temporary:
            pl.DataFrame({"url": urls}, schema={"url": pl.String()}).write_parquet(temporary)
        return new


@contextmanager
def open_download_folder(root: Path, settings: dict[str, Any]) -> Iterator[DownloadFolder]:
    """Open a folder of downloads, or make it; nobody else works in it meanwhile.

    Args:
        root: the folder; new, empty, or of an earlier fetch.
        settings: what images are made with; a folder holds images of one kind.

    Raises:
        UsageError: when the folder holds images made with other settings.
        StorageError: when it holds files of somebody else, cannot be written, or is in use.
    """
    _check_folder(root, settings)
    with (root / ".lock").open("w") as handle:
        try:
            acquire_lock(handle, root)
        except BlockingIOError:
            raise StorageError(f"{root}: another fetch is running in this folder. Wait for it.") from None
        folder = DownloadFolder(root)
        yield folder


def _check_folder(root: Path, settings: dict[str, Any]) -> None:
    path = root / SETTINGS_FILE
    wanted = {"format": FORMAT, **settings}
    try:
        if not path.exists():
            if root.is_dir() and any(not path.name.startswith(".") for path in root.iterdir()):
                raise StorageError(
                    f"{root}: holds files, and no downloads of ours. Choose a new or empty folder: --out."
                )
            write_text(path, json.dumps(wanted, indent=1) + "\n")
            return
        stored = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(
            f"{root}: cannot be written ({describe_write_error(error)}). Choose another --out."
        ) from None
    except ValueError:
        raise StorageError(f"{path}: damaged. Restore it, or fetch into another folder with --out.") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise StorageError(f"{path}: written by another version. Fetch into another folder with --out.")
    differing = [
        f"{name} was {stored.get(name)}, now {value}" for name, value in wanted.items() if stored.get(name) != value
    ]
    if differing:
        raise UsageError(
            f"{root}: holds images that were made with other settings ({'; '.join(differing)}). "
            "Give the same settings, or another folder with --out."
        )
