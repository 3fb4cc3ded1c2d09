"""Shards that a build writes to an object store (`shards: {to: URL}`): claim of the folder, and check of its receipts."""

import secrets
from pathlib import Path

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.shards.stored_folder import StoredFolder
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.state.receipts import OutputFile, read_receipt


def claim_shard_store(config: BuildConfig, root: Path) -> None:
    """Claim the folder of a store for the shards of the build in ``root``, which is locked; do nothing for local shards.

    Raises:
        StorageError: if the folder has other files, or the store refuses or cannot be reached.
        MissingResourceError: if the package of the store is not installed.
    """
    if config.shards.to:
        StoredFolder(config.shards.to).claim(config.name, _build_id(root))


def _build_id(root: Path) -> str:
    """Return the id of a build directory, which is made for its first claim."""
    marker = root / BUILD_MARKER
    known = marker.read_text(encoding="utf-8").strip()
    if not known:
        known = secrets.token_hex(8)
        write_text(marker, known + "\n")
    return known


def stored_output(path: str, size: int, sha256: str, url: str) -> OutputFile:
    """Return an output in the folder ``url`` of a store; ``path`` is its name in a build."""
    return OutputFile(path, size, sha256, f"{url}/{Path(path).name}")


def forget_lost_outputs(root: Path, stage: str, url: str) -> None:
    """Remove the receipts of a stage whose outputs are not, or not unchanged, in the folder ``url``; none for an empty URL."""
    if not url:
        return
    # Receipts first: what other processes send meanwhile is then in the listing.
    paths = sorted((root / "receipts" / stage).glob("*.json"))
    stored = {}
    for path in paths:
        if receipt := read_receipt(root, stage, path.stem):
            stored[path] = [each for each in receipt.outputs if each.url.rpartition("/")[0] == url]
    outputs = [each for some in stored.values() for each in some]
    if not outputs:
        return
    lost = StoredFolder(url).changed({Path(each.path).name: (each.bytes, each.sha256) for each in outputs})
    for path, some in stored.items():
        if any(Path(each.path).name in lost for each in some):
            path.unlink(missing_ok=True)
