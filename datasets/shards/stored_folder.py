"""Folder of shards in an object store, to which a build sends each shard when it is complete.

    .pairwright-shards    marker: which build writes here
    00000.tar             a shard
    00000.tar.index       its index (`index.py`); sent after the shard, removed before the shard is replaced
    SHA256SUMS sizes.json sent when all shards are there, removed before one of these is replaced

So an index, which has the checksum of its tar, is the proof of a complete shard, and ``sizes.json`` that of a complete
set. Stores show a file when it is complete; a killed upload leaves nothing that can be listed.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from pairwright.datasets.build_manifest import BUILD_MARKER
from pairwright.datasets.errors import StorageError
from pairwright.datasets.remote.object_store import RemoteStore, open_store
from pairwright.datasets.remote.reading import read_ranges
from pairwright.datasets.shards.index import index_path
from pairwright.datasets.shards.layout import CHECKSUMS_FILE, SIZES_FILE, ShardInfo, decode_sizes

OWNER_FILE = ".pairwright-shards"
_NUMBERED = re.compile(r"\d{5}\.tar(\.index)?")
_METADATA = (SIZES_FILE, CHECKSUMS_FILE)
_PAUSES = (1.0, 4.0, 16.0)  # seconds between attempts to send a file
_READ_AT_A_TIME = 256


@dataclass(frozen=True)
class StoredFolder:
    """A folder of shards in an object store, by its URL without a trailing slash.

    All methods raise StorageError if the store refuses or cannot be reached, with the file and the fix.
    """

    url: str

    @cached_property
    def _place(self) -> tuple[RemoteStore, str]:
        return open_store(self.url)

    def claim(self, name: str, owner: str) -> None:
        """Write the marker of a build into the folder, which also shows that it can be written to.

        Args:
            name: of the build.
            owner: its id.

        Raises:
            StorageError: if the folder has files of others.
        """
        found = self._list()
        if found and OWNER_FILE not in found:
            raise StorageError(
                f"{self.url}: not empty, and not a folder of a build's shards. Choose an empty folder for `to` under shards."
            )
        before = _decode_marker(self._read([OWNER_FILE], found)[OWNER_FILE]) if found else {}
        if found and before.get("id") != owner:
            raise StorageError(
                f"{self.url}: has the shards of another build directory ({before.get('build')}). Choose another folder for "
                f"`to` under shards. Only if that directory is lost and this one takes its place, write its id "
                f"{before.get('id')} into the file {BUILD_MARKER} of this one."
            )
        marker = orjson.dumps({"build": name, "id": owner}, option=orjson.OPT_APPEND_NEWLINE)
        with TemporaryDirectory() as folder:
            (path := Path(folder) / OWNER_FILE).write_bytes(marker)
            self._put(path)

    def send(self, tar: Path) -> None:
        """Send a shard and its index from disk, unless they are there."""
        index = index_path(tar)
        found = self._stat([tar.name, index.name, *_METADATA])
        if found.get(tar.name) == tar.stat().st_size and self._has(index, found):
            return
        described = SIZES_FILE not in found or tar.name in self._sizes(found)  # those that follow a whole set are not
        self._remove(name for name in (*_METADATA * described, index.name) if name in found)
        self._put(tar)
        self._put(index)

    def finish(self, folder: Path, shards: Sequence[ShardInfo]) -> None:
        """Send sizes and checksums of all shards, and remove the shards of an earlier, larger set.

        Args:
            folder: with ``sizes.json`` and ``SHA256SUMS``.
            shards: those of the folder.

        Raises:
            StorageError: if one of the shards is not there any more.
        """
        found = self._list()
        for shard in shards:
            if found.get(shard.name) != shard.bytes:
                raise StorageError(
                    f"{self.url}/{shard.name}: was removed or replaced during the build. Start the same build again."
                )
        kept = {name for shard in shards for name in (shard.name, index_path(Path(shard.name)).name)}
        stale = sorted(name for name in found if _NUMBERED.fullmatch(name) and name not in kept)
        for path in (folder / CHECKSUMS_FILE, folder / SIZES_FILE):
            if not self._has(path, found):
                self._put(path)
        self._remove(stale)

    def changed(self, files: Mapping[str, tuple[int, str]]) -> set[str]:
        """Return the names of the files that are not, or not unchanged, in the folder.

        Args:
            files: bytes and SHA-256 in hex by name. Of tars only the size is compared, since their indexes have the rest.
        """
        found = self._list()
        changed = {name for name, (size, _) in files.items() if found.get(name) != size}
        small = [name for name in files if name not in changed and not name.endswith(".tar")]
        for start in range(0, len(small), _READ_AT_A_TIME):
            some = small[start : start + _READ_AT_A_TIME]
            contents = self._read(some, found)
            changed |= {name for name in some if hashlib.sha256(contents[name]).hexdigest() != files[name][1]}
        return changed

    def _list(self) -> dict[str, int]:
        """Return the size of each file below the folder by its name there."""
        store, top = self._place
        # An empty file of the folder's own name is how consoles of S3 create a folder.
        files = [each for each in store.find(top, _PAUSES) if each.path != top or each.size]
        return {each.path.removeprefix(top).lstrip("/"): each.size for each in files}

    def _stat(self, names: Iterable[str]) -> dict[str, int]:
        """Return the sizes of those of the files that are there."""
        store, top = self._place
        found = {name: store.find(f"{top}/{name}", _PAUSES) for name in names}
        return {name: each[0].size for name, each in found.items() if each and each[0].path == f"{top}/{name}"}

    def _sizes(self, found: Mapping[str, int]) -> dict[str, int]:
        """Return the samples of the shards that ``sizes.json`` lists."""
        return decode_sizes(self._read([SIZES_FILE], found)[SIZES_FILE]) or {}

    def _has(self, path: Path, found: Mapping[str, int]) -> bool:
        """Return whether the folder has a small file with the content of a local one."""
        content = path.read_bytes()
        return found.get(path.name) == len(content) and self._read([path.name], found)[path.name] == content

    def _read(self, names: Sequence[str], found: Mapping[str, int]) -> dict[str, bytes]:
        contents = read_ranges([(f"{self.url}/{name}", 0, found[name]) for name in names])
        return dict(zip(names, contents, strict=True))

    def _put(self, path: Path) -> None:
        store, top = self._place
        store.put(path, f"{top}/{path.name}", _PAUSES)

    def _remove(self, names: Iterable[str]) -> None:
        store, top = self._place
        for name in names:
            store.remove(f"{top}/{name}")


def _decode_marker(content: bytes) -> dict[str, str]:
    try:
        marker = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return marker if isinstance(marker, dict) else {}
