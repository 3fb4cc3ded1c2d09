"""A folder that is ours to build in, and one build at a time in it.

A build removes files that it cannot account for, so it only works in a folder that was new or empty when it first
came: then it leaves a mark. Subfolders that are symbolic links are refused: their files belong to another folder. The
lock is dropped by the operating system when its holder dies.
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


def claim_folder(root: Path) -> None:
    """Make ``root`` a build directory, unless it is one.

    Raises:
        StorageError: when the folder holds files of somebody else, or a link to them, or cannot be written.
    """
    try:
        if root.is_dir() and not (root / BUILD_MARKER).exists() and any(root.iterdir()):
            raise StorageError(
                f"{root}: holds files, and no build of ours. Choose a new or empty folder with --out: a build removes "
                "what it does not know from its folder."
            )
        root.mkdir(parents=True, exist_ok=True)
        (root / BUILD_MARKER).touch()
    except OSError as error:
        raise _unwritable(root, error) from None
    forbid_symlinked_folders(root, (*OWNED, STAGING_FOLDER))


def _unwritable(root: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{root}: cannot be written ({describe_write_error(error)}). Choose another folder with --out, or mend its permissions."
    )


@contextmanager
def build_lock(root: Path) -> Iterator[None]:
    """Hold the build directory ``root`` for this process.

    Raises:
        StorageError: when another process builds there, or the folder is not ours or cannot be written.
    """
    busy = "another build is running in this folder. Wait for it, or choose another --out."
    with _locked(root, LOCK_FILE, busy):
        yield


@contextmanager
def schedule_lock(root: Path) -> Iterator[None]:
    """Be the only process that serves a schedule for the build directory ``root``; errors as in `exclusive`."""
    with _locked(root, ".serving", "a schedule is served for this folder already. End that one first."):
        yield


@contextmanager
def _locked(root: Path, name: str, busy: str) -> Iterator[None]:
    claim_folder(root)
    try:
        handle = (root / name).open("w")
    except OSError as error:
        raise _unwritable(root, error) from None
    with handle:
        try:
            acquire_lock(handle, root)
        except BlockingIOError:
            raise StorageError(f"{root}: {busy}") from None
        yield
