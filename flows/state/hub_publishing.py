"""Publishing of a finished build as a dataset of the Hugging Face Hub: ``hf://OWNER/NAME``.

The large files are uploaded first, in groups, and are not visible; then one commit adds all files with card and manifest and
removes the shards of an earlier version, so readers never see two versions. After a kill the next run uploads what is missing:
the Hub keeps uploaded files by their hash. Unchanged files are not sent again. A version is a commit; the Hub keeps them all, so
``publish_keep`` does not apply.

A new dataset is private. One that has files must have our marker; others' files are never changed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.errors import StorageError
from pairwright.datasets.progress import track
from pairwright.datasets.remote.hub import dataset_of, open_hub, translate_hub_errors
from pairwright.datasets.version_switch import MANIFEST_FILE
from pairwright.flows.state.build_versions import dump_manifest
from pairwright.flows.state.publishing import PublishResult, files_to_publish

_GROUP = 32  # files of an upload
_UNOWNED = {".gitattributes"}  # which the Hub writes into a new dataset


def publish_to_hub(root: Path, manifest: Mapping[str, Any], url: str) -> PublishResult:
    """Publish shards, card, report and manifest of a finished build as a commit.

    Args:
        root: the build directory.
        manifest: of the build.
        url: ``hf://OWNER/NAME``.

    Raises:
        StorageError: if the Hub refuses, or the dataset has files that no build published.
        MissingResourceError: if huggingface_hub is not installed.
    """
    name, api = dataset_of(url), open_hub()
    with translate_hub_errors(name):
        api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
        return _publish(api, name, root, manifest)


def _publish(api: Any, name: str, root: Path, manifest: Mapping[str, Any]) -> PublishResult:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    found = {each.path: each for each in api.list_repo_tree(name, repo_type="dataset", recursive=True)}
    if set(found) - _UNOWNED and BUILD_MARKER not in found:
        raise StorageError(f"hf://{name}: not empty, and not a published dataset. Choose a new name.")
    files = files_to_publish(root, manifest)
    sent = [each for each, entry in files.items() if _hash_of(found.get(each)) != entry["sha256"]]
    added = [CommitOperationAdd(each, root / each) for each in sent]
    groups = [added[at : at + _GROUP] for at in range(0, len(added), _GROUP)]
    for group in track(groups, "publishing", len(groups), "groups of files"):
        api.preupload_lfs_files(name, group, repo_type="dataset")
    stale = [each for each in found if each.startswith("shards/") and "." in each and each not in files]
    last = [
        CommitOperationAdd(BUILD_MARKER, b"\n"),
        CommitOperationAdd(MANIFEST_FILE, dump_manifest({**manifest, "files": files})),
    ]
    operations = [*added, *(CommitOperationDelete(each) for each in stale), *last]
    message = f"Version {manifest['build']['number']} of {manifest.get('name', 'the build')}"
    done = api.create_commit(name, operations, commit_message=message, repo_type="dataset")
    size = sum(files[each]["bytes"] for each in sent)
    return PublishResult(done.oid, f"hf://{name}", len(files), len(sent), 0, len(stale), size)


def _hash_of(file: Any) -> str:
    """Return the SHA-256 of a large file of the Hub; of others, which are always sent, the empty string."""
    return str(file.lfs.sha256) if file is not None and getattr(file, "lfs", None) else ""
