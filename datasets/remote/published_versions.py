"""Where a published dataset lies in a store: versions under names of their own, and a pointer to the newest.

    .pairwright                      our mark
    current.json                     the pointer: {"version": NAME, "path": "versions/NAME", "versions": [NAME, ...]}
    versions/NAME/manifest.json      of a complete version, with its shards, card and report beside it

NAME is the number of the version and a hash of its content, so that a version never changes once it is there. A reader
takes the pointer once and stays with its version, whatever is published meanwhile.
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
    """Return the pointer to the first of ``versions``, which are all that are there, newest first."""
    content = {"version": versions[0], "path": f"{VERSIONS_FOLDER}/{versions[0]}", "versions": list(versions)}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_pointer(store: RemoteStore, top: str) -> list[str]:
    """Return the versions that a published dataset has, newest first; none where there is no pointer.

    Args:
        store: where it lies.
        top: its folder there.

    Raises:
        StorageError: when the store refuses, or the pointer is broken.
    """
    path = f"{top}/{POINTER_FILE}"
    if [each.path for each in store.find(path)] != [path]:
        return []
    content = read_remote_json(store, path)
    versions = content.get("versions")
    names = versions if isinstance(versions, list) else []
    if not names or not all(isinstance(name, str) and name and "/" not in name and name != ".." for name in names):
        raise StorageError(f"{store.url(path)}: not a pointer to a version. Publish again.")
    return names


def read_remote_json(store: RemoteStore, path: str) -> dict[str, Any]:
    """Return the JSON object in a file of a store.

    Raises:
        StorageError: when the store refuses, or the file is none.
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
