"""Evaluation images by perceptual hash, to detect copies of them in a pool (`KnownImages`).

Each known image is stored with the hashes of nine crops of it, so that resized, re-encoded and slightly cropped copies
are within `COPY_DISTANCE` bits of one of them; FAISS compares a pool image with all of them. A featureless image
(`perceptual_hash`) is compared by the SHA-256 of its file instead.

Memory: 0.4 kB per known image, and its name; pool images are not stored. Time: about 1 ms per pool image to hash it,
and 0.1 ms per 10,000 known images to compare it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import decode_image, is_url, open_image
from pairwright.indexes.image_copies.perceptual_hash import (
    COPY_DISTANCE,
    HASH_BITS,
    HASH_BYTES,
    Hashes,
    hash_crops,
    hash_image,
)

_THREADS = 8  # images hashed at a time
_BATCH = 1024  # images hashed before their hashes are collected


@dataclass(frozen=True, slots=True)
class HashedImage:
    """Hashes of one image.

    Attributes:
        hashes: (n, `HASH_BYTES`); empty for a featureless image, and for one that cannot be decoded.
        digest: SHA-256 of the file; empty if it cannot be read.
        decoded: whether its pixels could be read.
    """

    hashes: Hashes = field(default_factory=lambda: np.empty((0, HASH_BYTES), np.uint8))
    digest: bytes = b""
    decoded: bool = False


def hash_images(locators: Iterable[str], *, crops: bool = False) -> list[HashedImage]:
    """Return the hashes of images, in order; ``crops`` adds those of their crops."""
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(lambda locator: _hash_file(locator, crops=crops), locators))


def _hash_file(locator: str, *, crops: bool) -> HashedImage:
    if not locator or is_url(locator):
        return HashedImage()
    try:
        data = open_image(locator)
    except InputError:
        return HashedImage()
    digest = hashlib.sha256(data).digest()
    try:
        image = decode_image(data, locator)
    except InputError:
        return HashedImage(digest=digest)
    if crops:
        return HashedImage(hash_crops(image), digest, decoded=True)
    found = hash_image(image)
    return HashedImage(digest=digest, decoded=True) if found is None else HashedImage(found[None], digest, decoded=True)


@dataclass(frozen=True)
class CopyJudgement:
    """Whether a pool image is a copy of a known image.

    Attributes:
        outcome: ``copy``, ``new``, ``featureless`` (compared by file content only) or ``unreadable`` (not compared).
        of: locator of the known image, for a copy.
        distance: differing bits, for a copy.
    """

    outcome: Literal["copy", "new", "featureless", "unreadable"]
    of: str = ""
    distance: int = 0

    def describe(self) -> str:
        """Return `describe_copy`, or an empty text for an image that is no copy."""
        return describe_copy(self.of, self.distance) if self.outcome == "copy" else ""


def describe_copy(of: str, distance: int) -> str:
    """Return what an image is a copy of, without a final stop."""
    return f"the image is a copy of {of}: {distance} of {HASH_BITS} bits differ"


@dataclass(frozen=True, eq=False)
class KnownImages:
    """Hashes of evaluation images, see `read_known_images`.

    Attributes:
        names: locators of the images.
        hashes: of the images and their crops, (n, `HASH_BYTES`).
        owners: row in ``names`` of each hash, (n,).
        featureless: row in ``names`` by SHA-256, of images without a hash.
        unread: number of images that could not be read.
    """

    names: tuple[str, ...] = ()
    hashes: Hashes = field(default_factory=lambda: np.empty((0, HASH_BYTES), np.uint8))
    owners: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    featureless: Mapping[bytes, int] = field(default_factory=dict)
    unread: int = 0

    def __or__(self, other: "KnownImages") -> "KnownImages":
        """Return the union."""
        if not (self.names and other.names):
            return self if self.names else other
        start = len(self.names)
        later = {digest: row + start for digest, row in other.featureless.items()}
        return KnownImages(
            self.names + other.names,
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.owners, other.owners + np.int32(start)]),
            {**later, **self.featureless},
            self.unread + other.unread,
        )

    def judge(self, images: Sequence[HashedImage]) -> list[CopyJudgement]:
        """Return for each pool image whether it is a copy of a known one, in order."""
        rows = np.concatenate([np.empty((0, HASH_BYTES), np.uint8), *(image.hashes for image in images)])
        nearest = iter(self._find_nearest(rows))
        return [next(nearest) if len(image.hashes) else self._judge_without_hash(image) for image in images]

    def _judge_without_hash(self, image: HashedImage) -> CopyJudgement:
        if not image.decoded:
            return CopyJudgement("unreadable")
        owner = self.featureless.get(image.digest)
        return CopyJudgement("featureless") if owner is None else CopyJudgement("copy", self.names[owner])

    def _find_nearest(self, rows: Hashes) -> list[CopyJudgement]:
        if not len(rows) or not len(self.hashes):
            return [CopyJudgement("new")] * len(rows)
        distances, places = self._index.search(rows, 1)
        return [
            CopyJudgement("copy", self.names[self.owners[place]], distance)
            if distance <= COPY_DISTANCE
            else CopyJudgement("new")
            for distance, place in zip(distances[:, 0].tolist(), places[:, 0].tolist(), strict=True)
        ]

    @cached_property
    def _index(self) -> Any:
        import faiss

        index = faiss.IndexBinaryFlat(HASH_BITS)
        index.add(self.hashes)
        return index


NO_IMAGES = KnownImages()


def read_known_images(locators: Iterable[str]) -> KnownImages:
    """Return the hashes of evaluation images and their crops."""
    names: list[str] = []
    hashes: list[Hashes] = [np.empty((0, HASH_BYTES), np.uint8)]
    featureless: dict[bytes, int] = {}
    unread = 0
    listed = list(dict.fromkeys(locators))
    for start in range(0, len(listed), _BATCH):
        batch = listed[start : start + _BATCH]
        for name, image in zip(batch, hash_images(batch, crops=True), strict=True):
            if not image.decoded:
                unread += 1
                continue
            if not len(image.hashes):
                featureless.setdefault(image.digest, len(names))
            names.append(name)
            hashes.append(image.hashes)
    owners = np.repeat(np.arange(len(names), dtype=np.int32), [len(each) for each in hashes[1:]])
    return KnownImages(tuple(names), np.concatenate(hashes), owners, featureless, unread)
