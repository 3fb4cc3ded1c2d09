"""Layout of a published dataset in an object store: named versions, and a pointer to the one that readers get.

    .pairwright                      marker
    current.json                     the pointer: {"version": NAME, "path": "versions/NAME", "versions": [NAME, ...]}
    versions/NAME/manifest.json      of a complete version, next to its shards, card and report

NAME is the number of the version and a hash of its content, so that a version never changes. A reader reads the pointer
once and stays with its version, even if another is published meanwhile. Whoever writes the name of an older version into
`path` of the pointer rolls back, until a build publishes again.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from pairwright.datasets.errors import StorageError
from pairwright.datasets.remote.object_store import RemoteStore

POINTER_FILE, VERSIONS_FOLDER = "current.json", "versions"


def encode_pointer(versions: Sequence[str]) -> bytes:
    """Return the pointer to the first of ``versions``, which are all existing ones, newest first."""
    content = {"version": versions[0], "path": f"{VERSIONS_FOLDER}/{versions[0]}", "versions": list(versions)}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_pointer(store: RemoteStore, top: str) -> list[str]:
    """Return the versions of a published dataset, the one in use first, then the newest; empty without a pointer.

    Args:
        store: its store.
        top: its folder there.

    Raises:
        StorageError: if the store refuses, or the pointer is invalid.
    """
    path = f"{top}/{POINTER_FILE}"
    if [each.path for each in store.find(path)] != [path]:
        return []
    content = read_remote_json(store, path)
    versions = content.get("versions")
    names = versions if isinstance(versions, list) else []
    current = str(content.get("path", next(iter(names), ""))).removeprefix(f"{VERSIONS_FOLDER}/")
    valid = all(isinstance(name, str) and name and "/" not in name and name != ".." for name in names)
    if not valid or current not in names:
        raise StorageError(f"{store.url(path)}: not a pointer to one of its versions. Publish again.")
    return [current, *(name for name in names if name != current)]


def read_remote_json(store: RemoteStore, path: str) -> dict[str, Any]:
    """Return the JSON object in a file of a store.

    Raises:
        StorageError: if the store refuses, or the file is not a JSON object.
    """
    with TemporaryDirectory() as folder:
        store.get(path, Path(folder) / "file")
        try:
            content = orjson.loads((Path(folder) / "file").read_bytes())
        except orjson.JSONDecodeError:
            content = None
    if not isinstance(content, dict):
        raise StorageError(f"{store.url(path)}: not a JSON object. Publish again.")
    return content
