"""Claims on build directories: a marker, and locks for one build or the parts of one build, and one schedule at a time.

A build removes files that none of its jobs wrote, so it only works in a folder with its marker, which it creates in a new
or empty folder. Subfolders must not be symbolic links: their files belong to another folder. The operating system
releases a lock when its process dies.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.directories import forbid_symlinked_folders
from pairwright.datasets.errors import StorageError, describe_write_error
from pairwright.datasets.file_locks import acquire_lock
from pairwright.datasets.version_switch import LOCK_FILE, STAGING_FOLDER
from pairwright.flows.state.layout import OWNED

ANSWERS_LOCK = ".answers.lock"  # of the process that sends the requests of a build (`flows/llm/answer_service.py`)
_PART_LOCK, _SETUP_LOCK = ".part-", ".setup"


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
    forbid_symlinked_folders(root, (*OWNED, STAGING_FOLDER))


def _unwritable(root: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{root}: is not writable ({describe_write_error(error)}). Check its permissions, or choose another folder with --out."
    )


@contextmanager
def build_lock(root: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock the build directory ``root`` for a build of all parts.

    Args:
        root: the build directory.
        wait: wait for the processes that build there.

    Raises:
        StorageError: when another process builds there; also as `claim_folder`.
    """
    busy = "another build is running in this folder. Wait for it, or choose another --out."
    with _locked(root, LOCK_FILE, busy, wait=wait):
        yield


@contextmanager
def part_lock(root: Path, part: str) -> Iterator[None]:
    """Lock the build directory ``root`` for one of several processes that each build a share of the jobs.

    They hold one lock together, which a build of all parts needs for itself, and each a lock on its own share, so that none
    runs twice.

    Args:
        root: the build directory.
        part: name of the share.

    Raises:
        StorageError: when a build of all parts runs there, or the same share; also as `claim_folder`.
    """
    busy = "a build of all parts is running in this folder. Wait for it, or choose another --out."
    twice = f"part {part} is being built by another process. Give each process another part."
    with _locked(root, LOCK_FILE, busy, shared=True), _locked(root, f"{_PART_LOCK}{part.replace('/', '-of-')}", twice):
        yield


@contextmanager
def setup_lock(root: Path) -> Iterator[None]:
    """Let one process at a time prepare the build directory ``root``; wait for the others."""
    with _locked(root, _SETUP_LOCK, "", wait=True):
        yield


def remove_lock_files(root: Path) -> None:
    """Remove the lock files of the parts of a finished build.

    Call it under `build_lock`, which no process that builds a part can hold at the same time.
    """
    for path in (root / _SETUP_LOCK, root / ANSWERS_LOCK, *root.glob(f"{_PART_LOCK}*-of-*")):
        path.unlink(missing_ok=True)


@contextmanager
def schedule_lock(root: Path) -> Iterator[None]:
    """Lock the build directory ``root`` for a schedule; errors as in `build_lock`."""
    with _locked(root, ".serving", "a schedule is served for this folder already. End that one first."):
        yield


@contextmanager
def _locked(root: Path, name: str, busy: str, *, shared: bool = False, wait: bool = False) -> Iterator[None]:
    claim_folder(root)
    try:
        handle = (root / name).open("a+")
    except OSError as error:
        raise _unwritable(root, error) from None
    with handle:
        try:
            acquire_lock(handle, root, shared=shared, wait=wait)
        except BlockingIOError:
            raise StorageError(f"{root}: {busy}") from None
        yield
