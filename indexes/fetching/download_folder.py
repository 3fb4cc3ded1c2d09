"""Download folder: images by URL, filled by passes.

```
images/
  fetch.json                settings of all images
  pass-00000/               one run of img2dataset
    urls.parquet            requested URLs
    shards/00000.tar ...    output: an image file and a .json per image
    outcomes.parquet        one row per URL: fetched, failed or lost, with its location or reason
    sealed.json             written last: sizes of the tars
```

img2dataset resumes by shard number, which requires unchanged input and shard size, and ignores truncated shards; so a
pass is never resumed. An interrupted pass is *settled* when the folder is opened next: a truncated tar is cut after its
last complete image, every image is checked, and URLs without an outcome are requested by the next pass. A sealed pass
whose tars have changed in size is settled again.

A folder is locked by the process that works in it.
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
        "image": pl.String(),  # shard.tar::member, relative to the folder; empty unless fetched
        "width": pl.Int32(),
        "height": pl.Int32(),
        "bytes": pl.Int64(),
        "reason": pl.String(),
        "detail": pl.String(),
        "passing": pl.Boolean(),  # a transient failure
        "sha256": pl.String(),  # of the downloaded file; empty unless fetched
    }
)
_TAR_END = bytes(1024)
_TAR_BLOCK = 512

OutcomeRow = tuple[str, str, str, int, int, int, str, str, bool, str]


@dataclass(frozen=True, slots=True)
class FetchPass:
    """A run of img2dataset and its output."""

    folder: Path

    @property
    def urls(self) -> Path:
        """Parquet of the requested URLs, one column ``url``."""
        return self.folder / "urls.parquet"

    @property
    def shards(self) -> Path:
        """Output folder of img2dataset."""
        return self.folder / "shards"

    @property
    def is_sealed(self) -> bool:
        """Whether its outcomes are written and its tars have not changed since."""
        try:
            sealed = json.loads((self.folder / "sealed.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return (self.folder / "outcomes.parquet").exists() and bool(sealed.get("tars") == self._sizes())

    def _sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in sorted(self.shards.glob("*.tar"))}

    def outcomes(self) -> pl.DataFrame:
        """Return the outcomes, a frame of `OUTCOME_SCHEMA`.

        Raises:
            StorageError: if the file is damaged.
        """
        path = self.folder / "outcomes.parquet"
        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            what = str(error).partition("\n")[0]
            raise StorageError(f"{path}: damaged ({what}). Delete it and run again.") from None
        if frame.schema != OUTCOME_SCHEMA:
            raise StorageError(f"{path}: written by another version. Fetch into another folder with --out.")
        return frame

    def settle(self, *, ended: bool) -> pl.DataFrame:
        """Repair the output of img2dataset and write the outcomes.

        Args:
            ended: the run ended or was stopped, so URLs without an outcome are lost; otherwise it was interrupted, and
                such URLs get no row.

        Returns:
            The outcomes in the order of the URLs, a frame of `OUTCOME_SCHEMA`.
        """
        found: dict[str, OutcomeRow] = {}
        for row in self._failures():
            found[row[0]] = row
        for tar in sorted(self.shards.glob("*.tar")):
            for row in repair_tar(tar, self.folder.name):
                if row[1] == "fetched" or row[0] not in found:
                    found[row[0]] = row
        urls = _read_urls(self.urls)
        rows = [found[url] if url in found else _lost_row(url) for url in urls if ended or url in found]
        frame = pl.DataFrame(rows, schema=OUTCOME_SCHEMA, orient="row")
        with replace_atomically(self.folder / "outcomes.parquet") as temporary:
            frame.write_parquet(temporary)
        write_text(self.folder / "sealed.json", json.dumps({"tars": self._sizes()}))
        return frame

    def _failures(self) -> Iterator[OutcomeRow]:
        """Yield failures from the tables of the shards and earlier outcomes; damaged tables are skipped."""
        for table in sorted(self.shards.glob("*.parquet")):
            with suppress(OSError, pl.exceptions.PolarsError):
                statuses = pl.read_parquet(table, columns=["url", "status", "error_message"])
                for url, status, message in statuses.filter(pl.col("status") != "success").iter_rows():
                    yield _failed_row(url, *classify_failure(message or "", status))
        with suppress(StorageError):
            yield from self.outcomes().filter(pl.col("state") != "fetched").iter_rows()


def _failed_row(url: str, reason: str, detail: str, transient: bool) -> OutcomeRow:  # noqa: FBT001 - as from `classify_failure`
    return (url, "failed", "", 0, 0, 0, reason, detail, transient, "")


def _lost_row(url: str) -> OutcomeRow:
    return (url, "lost", "", 0, 0, 0, "download_failed", LOST_MESSAGE, True, "")


def _read_urls(path: Path) -> list[str]:
    try:
        return pl.read_parquet(path)["url"].to_list()
    except (OSError, pl.exceptions.PolarsError):
        return []  # killed before the first request


def repair_tar(path: Path, folder: str) -> list[OutcomeRow]:
    """Cut off a truncated end of a tar of img2dataset and return its outcomes.

    Args:
        path: the tar; removed if it is truncated before its first complete image.
        folder: name of the pass, for the locations of images.

    Returns:
        A row of `OUTCOME_SCHEMA` for each image with its .json: fetched, or failed as bad_image.
    """
    rows: list[OutcomeRow] = []
    image: TarMember | None = None
    end, complete = 0, True
    try:
        with path.open("rb") as handle:
            for found in iter_tar_members(path):
                if not isinstance(found, TarMember):
                    complete = False
                    break
                if not found.name.endswith(".json"):
                    image = found
                    continue
                if image is not None:
                    rows.append(_image_row(handle, found, image, f"{folder}/shards/{path.name}"))
                    end = found.offset + -(-found.size // _TAR_BLOCK) * _TAR_BLOCK
                image = None
    except InputError:
        complete = False
    if not complete:
        _truncate_tar(path, end)
    return rows


def _image_row(handle: Any, description: TarMember, image: TarMember, shard: str) -> OutcomeRow:
    try:
        facts = json.loads(_read_member(handle, description))
    except ValueError as error:
        raise InputError(f"damaged metadata of an image ({error})", where=shard, fix="Fetch it again.") from None
    place = f"{shard}::{image.name}"
    try:
        width, height, _ = check_image(_read_member(handle, image), "header", place)
    except UnusableImageError as flaw:
        return _failed_row(facts["url"], flaw.reason, f"the stored image {flaw.what}", transient=False)
    return (facts["url"], "fetched", place, width, height, image.size, "", "", False, facts.get("sha256") or "")


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
        """Settle interrupted or changed passes; return their number."""
        unsealed = [one for one in self.passes() if not one.is_sealed]
        for one in unsealed:
            one.settle(ended=False)
        return len(unsealed)

    def outcomes(self) -> pl.DataFrame:
        """Return one row per URL: its first image, or else its last failure; ``tries`` counts its requests.

        Raises:
            StorageError: if a file of the folder is damaged.
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
        """Create the folder of the next pass for ``urls``."""
        number = 1 + max((int(one.folder.name.partition("-")[2]) for one in self.passes()), default=-1)
        new = FetchPass(self.root / f"pass-{number:05d}")
        new.shards.mkdir(parents=True)
        with replace_atomically(new.urls) as temporary:
            pl.DataFrame({"url": urls}, schema={"url": pl.String()}).write_parquet(temporary)
        return new


@contextmanager
def open_download_folder(root: Path, settings: dict[str, Any]) -> Iterator[DownloadFolder]:
    """Open or create a download folder and lock it within the block.

    Args:
        root: the folder; new, empty, or of an earlier fetch.
        settings: settings of all images in the folder.

    Raises:
        UsageError: if the folder holds images with other settings.
        StorageError: if it holds other files, cannot be written, or is in use.
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
                    f"{root}: holds files other than downloads. Choose a new or empty folder with --out."
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
            f"{root}: holds images with other settings ({'; '.join(differing)}). "
            "Use the same settings, or another folder with --out."
        )
