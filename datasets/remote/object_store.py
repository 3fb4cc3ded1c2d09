"""Files in object stores (``s3://``, ``gs://``, ``memory://`` and ``file://``) through fsspec.

Credentials come from the usual places of each service (AWS_ACCESS_KEY_ID, a profile, a role,
GOOGLE_APPLICATION_CREDENTIALS, ...), and so does the address of another S3 server (AWS_ENDPOINT_URL). They are never part
of a URL: one with a user or a query is refused. Error messages of services are shown with secrets removed.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError, MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.datasets.redaction import REDACTED, redact

T = TypeVar("T")

FSSPEC_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "file": "", "memory": ""}
_INSTALLED_AS = {"s3": "'pairwright[remote]'"}
_URL = re.compile(rf"(?P<scheme>{'|'.join(FSSPEC_PACKAGES)}):/{{1,3}}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")
_PERMANENT = (FileNotFoundError, PermissionError, IsADirectoryError)
_PATIENCE_S = 60.0  # after which nothing is tried again
_SHORT = 6  # shorter values are too common to be redacted


@dataclass(frozen=True)
class StoredFile:
    """A file of a store.

    Attributes:
        path: in the store.
        size: in bytes.
        time: of the last change, in seconds since 1970; S3 has whole seconds.
        version: differs between contents (S3's ETag); empty if the store has none.
    """

    path: str
    size: int
    time: float
    version: str = ""

    @property
    def time_ns(self) -> int:
        """The time in nanoseconds, in whole milliseconds: finer than stores report, and not rounded by file systems."""
        return round(self.time * 1000) * 1_000_000


@dataclass(frozen=True)
class RemoteStore:
    """Files of one URL scheme.

    Attributes:
        scheme: a key of `FSSPEC_PACKAGES`.
        files: fsspec's file system.
    """

    scheme: str
    files: Any

    def url(self, path: str) -> str:
        """Return the URL of a path of this store."""
        return f"{self.scheme}://{path}"

    def find(self, path: str, pauses: Sequence[float] = ()) -> list[StoredFile]:
        """Return the file ``path``, or all files below the folder of that name, by path; empty if there are none.

        Args:
            path: in the store.
            pauses: as in `attempt`.

        Raises:
            StorageError: with bucket and key, and the fix.
        """
        found = self.attempt(path, lambda: self.files.find(path, detail=True), pauses)
        found = [
            StoredFile(name, int(info["size"]), _seconds(info), _version(info))
            for name, info in found.items()
            if info["type"] == "file"
        ]
        return sorted(found, key=lambda each: each.path)

    def get(self, path: str, local: Path) -> None:
        """Copy a file to this machine; errors as in `find`."""
        with self.translate_errors(path):
            self.files.get_file(path, str(local))

    def put(self, local: Path, path: str, pauses: Sequence[float] = ()) -> None:
        """Copy a file into the store, where it appears when complete; errors as in `find`.

        Args:
            local: the file.
            path: in the store.
            pauses: as in `attempt`.
        """
        self.attempt(path, lambda: self._put(local, path), pauses)

    def _put(self, local: Path, path: str) -> None:
        if self.scheme == "file":
            with replace_atomically(Path(path)) as temporary:
                shutil.copyfile(local, temporary)
        else:
            self.files.put_file(str(local), path)

    def attempt(self, path: str, call: Callable[[], T], pauses: Sequence[float]) -> T:
        """Return what ``call`` returns, which is tried again after each pause; errors as in `find`.

        Args:
            path: what it is about, for messages.
            call: raises an exception of fsspec or the service, whose own attempts may take minutes.
            pauses: in seconds.
        """
        started = time.monotonic()
        with self.translate_errors(path):
            for pause in pauses:
                try:
                    return call()
                except _PERMANENT:
                    raise
                except Exception as error:
                    if type(error).__name__ == "FileExpired":  # of s3fs: the object was replaced
                        raise StorageError(
                            f"{self.url(path)}: replaced while it was read. Start again when it no longer changes."
                        ) from None
                    if time.monotonic() - started > _PATIENCE_S:
                        raise
                time.sleep(pause)
            return call()

    def copy(self, path: str, to: str) -> None:
        """Copy a file inside the store, where it appears when complete; errors as in `find`."""
        with self.translate_errors(path):
            if self.scheme == "file":
                with replace_atomically(Path(to)) as temporary:
                    shutil.copyfile(path, temporary)
            else:
                self.files.cp_file(path, to)

    def remove(self, path: str) -> None:
        """Remove a file if it exists; errors as in `find`."""
        with self.translate_errors(path):
            try:
                self.files.rm_file(path)
            except FileNotFoundError:
                return

    @contextmanager
    def translate_errors(self, path: str) -> Iterator[None]:
        """Translate what a service raises into `StorageError`."""
        try:
            yield
        except PairwrightError:
            raise
        except Exception as error:  # noqa: BLE001 - each service has its own exceptions
            raise StorageError(
                f"{self.url(path)}: {_describe_error(error)}. {_suggest_fix(error, self.scheme)}"
            ) from None


def is_remote(written: str | Path) -> bool:
    """Return whether a path is a URL of a store, including the ``s3:/bucket`` that `Path` makes of one."""
    return _URL.match(str(written)) is not None


def split_url(written: str | Path) -> tuple[str, str]:
    """Return scheme and path of a URL of a store, the path without a trailing slash.

    Raises:
        UsageError: for another URL, or one with a user or a query, or without a bucket.
    """
    parts = _URL.match(str(written))
    if parts is None:
        raise UsageError(f"{written}: give a URL of {', '.join(f'{scheme}://' for scheme in FSSPEC_PACKAGES)}.")
    scheme, rest = parts["scheme"].lower(), parts["rest"].rstrip("/")
    if "@" in rest.partition("/")[0] or "?" in rest or "#" in rest:
        raise UsageError(
            f"a URL of {scheme}:// must have no user and no query: set credentials in the environment. Give {scheme}://BUCKET/KEY."
        )
    if not rest or ".." in PurePosixPath(rest).parts:
        raise UsageError(f"{written}: give {scheme}://BUCKET/KEY, without `..`.")
    return scheme, "/" + rest.lstrip("/") if scheme in {"file", "memory"} else rest


def folder_url(written: str) -> str:
    """Return the URL of a folder of a store in one way of writing it: without trailing, double and ``.`` segments.

    Raises:
        UsageError: as in `split_url`, and for a brace pattern.
    """
    scheme, path = split_url(written)
    if "{" in path or "}" in path:
        raise UsageError(f"{written}: braces name several files. Give the URL of one folder.")
    return f"{scheme}://{PurePosixPath(path)}"


def open_store(written: str | Path) -> tuple[RemoteStore, str]:
    """Return the store of a URL, and the path there, without a trailing slash.

    Raises:
        UsageError: as in `split_url`.
        StorageError: if the service refuses.
        MissingResourceError: if the package for the scheme is not installed.
    """
    scheme, path = split_url(written)
    import fsspec

    try:
        files = fsspec.filesystem(scheme, use_listings_cache=False)
    except (ImportError, ValueError):
        raise MissingResourceError(
            f"{scheme}:// needs {FSSPEC_PACKAGES[scheme]}. Run: pip install {_INSTALLED_AS.get(scheme, FSSPEC_PACKAGES[scheme])}"
        ) from None
    except Exception as error:  # noqa: BLE001 - as in `translate_errors`
        raise StorageError(f"{scheme}://{path}: {_describe_error(error)}. {_suggest_fix(error, scheme)}") from None
    return RemoteStore(scheme, files), path


def not_found_error(store: RemoteStore, path: str) -> InputError:
    """Return the error for a missing file or folder."""
    return InputError("no such file or folder", where=store.url(path), fix="Check bucket and key.")


def _seconds(info: dict[str, Any]) -> float:
    for name in ("LastModified", "updated", "mtime", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, str):
            return datetime.fromisoformat(value).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0


def _version(info: dict[str, Any]) -> str:
    named = (info.get(name) for name in ("ETag", "etag"))  # S3, Google Cloud Storage
    return next((str(value).strip('"') for value in named if value), "")


def _describe_error(error: Exception) -> str:
    """Return the message of a service in one line and without secrets."""
    line = " ".join(str(error).split())[:300] or "no reason given"
    text = str(redact(f"{type(error).__name__}: {line}"))
    for name, value in os.environ.items():
        if _SECRET.search(name.upper()) and len(value) >= _SHORT:
            text = text.replace(value, REDACTED)
    return text.rstrip(".")


def _suggest_fix(error: Exception, scheme: str) -> str:
    text = f"{type(error).__name__} {error}".lower()
    named = {
        "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role",
        "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    }
    if isinstance(error, FileNotFoundError) or "nosuchbucket" in text or "does not exist" in text:
        return "Check bucket and key."
    if isinstance(error, PermissionError) or any(
        word in text for word in ("credential", "denied", "forbidden", "access key")
    ):
        return f"Check the credentials ({named.get(scheme, 'of this user')}) and their permissions."
    if isinstance(error, OSError) and scheme == "file":
        return "Fix that and start again."
    where = " and AWS_ENDPOINT_URL" if scheme == "s3" else ""
    return f"Check the network{where}, and start again: complete files are not copied again."
