"""Claims on build directories: a marker, and locks for one build or the parts of one build, and one schedule at a time.

A build removes files that none of its jobs wrote, so it only works in a folder with its marker, which it creates in a new
or empty folder. Subfolders must not be symbolic links: their files belong to another folder. The operating system
releases a lock when its process dies.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.directories import forbid_symlinked_folders
from pairwright.datasets.errors import StorageError, describe_write_error
from pairwright.datasets.file_locks import acquire_lock
from pairwright.datasets.version_switch import LOCK_FILE, STAGING_FOLDER
from pairwright.flows.state.layout import ANSWERS_ADDRESS, OWNED_FOLDERS, PARTS_SETUP, SHARED_MARK

ANSWERS_LOCK = ".answers.lock"  # of the process that sends the requests of a build (`flows/llm/answer_service.py`)
_PART_LOCK, _SETUP_LOCK = ".part-", ".setup"
_POLL_S = 1.0  # between attempts to get a lock that another process holds


class FolderBusyError(StorageError):
    """Another process holds a lock on the build directory."""


def claim_folder(root: Path) -> None:
    """Make ``root`` a build directory, unless it is one.

    Raises:
        StorageError: when the folder contains other files or a symbolic link, or is not writable.
    """
    try:
        if root.is_dir() and not (root / BUILD_MARKER).exists() and any(root.iterdir()):
            raise StorageError(
                f"{root}: not empty, and not a build directory. Choose a new or empty folder with --out: a build removes "
                "unknown files from its folder."
            )
        root.mkdir(parents=True, exist_ok=True)
        (root / BUILD_MARKER).touch()
    except OSError as error:
        raise _unwritable(root, error) from None
    forbid_symlinked_folders(root, (*OWNED_FOLDERS, STAGING_FOLDER))


def _unwritable(root: Path, error: OSError) -> StorageError:
    if root.exists() and not root.is_dir():
        return StorageError(f"{root}: is a file, not a folder. Choose another folder with --out.")
    return StorageError(
        f"{root}: is not writable ({describe_write_error(error)}). Check its permissions, or choose another folder with --out."
    )


@contextmanager
def build_lock(root: Path) -> Iterator[None]:
    """Lock the build directory ``root`` for a build of all parts.

    Raises:
        FolderBusyError: when another process builds there.
        StorageError: as `claim_folder`.
    """
    busy = "another build is running in this folder. Wait for it, or choose another --out."
    with _locked(root, LOCK_FILE, busy):
        yield


@contextmanager
def parts_lock(root: Path) -> Iterator[None]:
    """Lock the build directory ``root`` for processes that each build a share of the jobs.

    They hold the lock together, and a build of all parts needs it for itself.

    Raises:
        FolderBusyError: when a build of all parts runs there.
        StorageError: as `claim_folder`.
    """
    busy = "a build of all parts is running in this folder. Wait for it, or choose another --out."
    with _locked(root, LOCK_FILE, busy, shared=True):
        yield


@contextmanager
def part_lock(root: Path, part: str) -> Iterator[None]:
    """Lock a share of the jobs, so that none runs twice; call it under `parts_lock` and `setup_lock`.

    Args:
        root: the build directory.
        part: name of the share.

    Raises:
        FolderBusyError: when another process builds the same share.
        StorageError: as `claim_folder`.
    """
    twice = f"part {part} is being built by another process. Give each process another part."
    with _locked(root, f"{_PART_LOCK}{part.replace('/', '-of-')}", twice):
        yield


@contextmanager
def setup_lock(root: Path) -> Iterator[None]:
    """Let one process at a time prepare the build directory ``root``.

    Raises:
        FolderBusyError: when another process does.
        StorageError: as `claim_folder`.
    """
    with _locked(root, _SETUP_LOCK, "another process prepares this folder. Wait for it."):
        yield


async def enter_when_free(
    stack: ExitStack, lock: Callable[[], AbstractContextManager[None]], busy: Callable[[], None]
) -> None:
    """Enter a lock on ``stack`` as soon as no other process holds it; a signal can end the wait.

    Args:
        stack: that leaves the lock.
        lock: makes the lock; called for each attempt.
        busy: called once if another process holds it.
    """
    waits = False
    while True:
        try:
            stack.enter_context(lock())
        except FolderBusyError:
            if not waits:
                busy()
            waits = True
            await asyncio.sleep(_POLL_S)
        else:
            return


def running_parts(root: Path, but: str) -> list[str]:
    """Return the shares that other processes build now; call it under `setup_lock`.

    Args:
        root: the build directory.
        but: name of the share of this process.
    """
    found = []
    for path in sorted(root.glob(f"{_PART_LOCK}*-of-*")):
        part = path.name.removeprefix(_PART_LOCK).replace("-of-", "/")
        try:
            with path.open("a+") as handle:
                acquire_lock(handle, root)
        except BlockingIOError:
            found.append(part)
    return [part for part in found if part != but]


def remove_lock_files(root: Path) -> None:
    """Remove the files of a finished build that its processes used among each other, and temporary files of killed ones.

    Call it under `build_lock`, which no process that builds a part can hold at the same time.
    """
    names = (_SETUP_LOCK, ANSWERS_LOCK, ANSWERS_ADDRESS, SHARED_MARK, PARTS_SETUP)
    patterns = (f"{_PART_LOCK}*-of-*", ".*.tmp-*", "manifests/.*.tmp-*")
    for path in (*(root / name for name in names), *(path for pattern in patterns for path in root.glob(pattern))):
        path.unlink(missing_ok=True)


@contextmanager
def schedule_lock(root: Path) -> Iterator[None]:
    """Lock the build directory ``root`` for a schedule; errors as in `build_lock`."""
    with _locked(root, ".serving", "a schedule is served for this folder already. End that one first."):
        yield


@contextmanager
def _locked(root: Path, name: str, busy: str, *, shared: bool = False) -> Iterator[None]:
    claim_folder(root)
    try:
        handle = (root / name).open("a+")
    except OSError as error:
        raise _unwritable(root, error) from None
    with handle:
        try:
            acquire_lock(handle, root, shared=shared)
        except BlockingIOError:
            raise FolderBusyError(f"{root}: {busy}") from None
        yield
