"""Exclusion of evaluation data from retrieval, to prevent leakage into training.

A pair is excluded if it matches an evaluation set in any of these fields:

key      pair key (`records.pair_key`)
id       source id; only on request, since two datasets may both count from 1
url      URL of the image, ignoring scheme, port, case of the host, percent-encoding and fragment
caption  any caption of the image, ignoring case, punctuation, spaces and Unicode form
image    SHA-256 of the image file, computed, or stored by img2dataset as ``sha256`` of the downloaded file, which also
         matches resized copies
copy     perceptual hash of the image, which resized, re-encoded and slightly cropped copies share; only for images that
         `read_image_exclusion` reads

Limits: a re-encoded image has another SHA-256; only ``copy`` finds it, and has to decode every image. Images that are not local (URLs) cannot be compared by content; such
pairs are counted as ``uncompared``: check again after fetching. Short captions occur under many images ("a dog"):
excluding all of them costs some pairs, but is safe.

Memory: about 100 bytes per entry.
"""

import hashlib
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote_to_bytes, urlsplit

import polars as pl

from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, is_url, open_image
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.readers.text_files import read_text_bytes
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import COPY_OF_EVALUATION_IMAGE, Reject, make_reject
from pairwright.datasets.suggestions import require_known
from pairwright.indexes.image_copies.known_images import NO_IMAGES, KnownImages, hash_images, read_known_images

MatchField = Literal["key", "id", "url", "caption", "image", "copy"]
PairLookup = Callable[[Sequence[str]], pl.DataFrame]
"""Returns the pairs of keys as a frame with at least `MATCH_COLUMNS`, in any order."""

MATCH_FIELDS: tuple[MatchField, ...] = get_args(MatchField)
LISTED_FIELDS: tuple[MatchField, ...] = MATCH_FIELDS[:-1]  # that a caller may choose
DEFAULT_MATCH_FIELDS: tuple[MatchField, ...] = ("key", "url", "caption", "image")
_JUDGEMENT_SCHEMA = pl.Schema(
    {"key": pl.String(), "by": pl.String(), "copy_of": pl.String(), "uncompared": pl.Boolean()}
)
NO_EXCLUDED_PAIRS = pl.DataFrame(schema={"key": pl.String, "by": pl.String, "copy_of": pl.String})
MATCH_COLUMNS = ("key", "source_id", "image", "caption", "captions", "meta")

_PAIRS_PER_LOOKUP = 100_000  # pairs looked up at a time
_HASH_THREADS = 8  # files hashed at a time
_HASH, _KEY = re.compile(r"[0-9a-fA-F]{64}"), re.compile(r"[0-9a-f]{32}")
_FIELD_DESCRIPTIONS: Mapping[str, str] = {
    "key": "the pair itself",
    "id": "its source id",
    "url": "the URL of its image",
    "caption": "one of its captions",
    "image": "its image file",
}


@dataclass(frozen=True)
class Exclusion:
    """Values of evaluation sets to exclude, see `read_exclusion`.

    Attributes:
        entries: normalised values by match field.
        unread: number of images that could not be read and hashed.
        skipped: rows and captions without a pair, which exclude nothing.
        images: images whose copies are excluded.
    """

    entries: Mapping[MatchField, frozenset[str]] = field(default_factory=dict)
    unread: int = 0
    skipped: SkipCounts = field(default_factory=SkipCounts)
    images: KnownImages = NO_IMAGES

    def __or__(self, other: "Exclusion") -> "Exclusion":
        """Return the union."""
        kinds = [by for by in MATCH_FIELDS if by in self.entries or by in other.entries]
        joined = {by: self.entries.get(by, frozenset()) | other.entries.get(by, frozenset()) for by in kinds}
        return Exclusion(joined, self.unread + other.unread, self.skipped + other.skipped, self.images | other.images)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of values by match field."""
        images = {"copy": len(self.images.names)} if self.images.names else {}
        return {by: len(values) for by, values in self.entries.items() if values} | images

    def judge(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Return for each pair whether it is excluded.

        Args:
            pairs: frame with `MATCH_COLUMNS`; each pair once.

        Returns:
            Columns key, by (the first matching field of `MATCH_FIELDS`; empty if not excluded), copy_of (for ``copy``:
            which image it is a copy of, and how near) and uncompared (whether its image could not be compared by
            content), in the order of ``pairs``.
        """
        by, copy_of = [""] * pairs.height, [""] * pairs.height
        uncompared = [False] * pairs.height
        wanted = self.entries.get("image", frozenset())
        reading: list[tuple[int, str]] = []
        for row, pair in enumerate(pairs.select(MATCH_COLUMNS).iter_rows(named=True)):
            by[row] = self._match_field(pair)
            if not by[row] and (self.images.names or (wanted and not _meta_hashes(pair["meta"]))):
                reading.append((row, pair["image"]))
        for (row, image), found in zip(reading, self._read_images([image for _, image in reading]), strict=True):
            uncompared[row] = bool(image) and not found.compared
            if found.digest in wanted:
                by[row] = "image"
            elif found.copy_of:
                by[row], copy_of[row] = "copy", found.copy_of
        # An empty frame needs explicit types.
        columns = {"key": pairs["key"], "by": by, "copy_of": copy_of, "uncompared": uncompared}
        return pl.DataFrame(columns, schema=_JUDGEMENT_SCHEMA)

    def _read_images(self, locators: Sequence[str]) -> "list[_ReadImage]":
        """Compare the contents of images."""
        if self.images.names:
            hashed = hash_images(locators)
            return [
                _ReadImage(image.digest.hex(), image.decoded, found.describe())
                for image, found in zip(hashed, self.images.judge(hashed), strict=True)
            ]
        with ThreadPoolExecutor(_HASH_THREADS) as threads:
            return [_ReadImage(digest, bool(digest)) for digest in threads.map(_hash_image, locators)]

    def _match_field(self, pair: Mapping[str, Any]) -> str:
        """Return the first field in which a pair matches, without reading its image file."""
        for by in MATCH_FIELDS:
            values = self.entries.get(by)
            if values and not values.isdisjoint(_match_values(by, pair)):
                return by
        return ""


@dataclass(frozen=True, slots=True)
class _ReadImage:
    """SHA-256 of an image, whether it could be compared, and what it is a copy of."""

    digest: str
    compared: bool
    copy_of: str = ""


def _match_values(by: MatchField, pair: Mapping[str, Any]) -> Iterable[str]:
    """Return the normalised values of a pair in a match field."""
    match by:
        case "key":
            return [pair["key"]]
        case "id":
            return [pair["source_id"]] if pair["source_id"] else []
        case "url":
            found = [pair["image"], *_meta_values("url", pair["meta"])]
            return [normalise_url(url) for url in found if is_url(url)]
        case "caption":
            return map(normalise_caption, [pair["caption"], *pair["captions"]])
        case "image":
            return _meta_hashes(pair["meta"])
        case "copy":
            return []


def normalise_caption(text: str) -> str:
    """Normalise a caption: NFKC, case folded, without punctuation and repeated spaces."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.translate(_PUNCTUATION).split()) or " ".join(folded.split())


class _PunctuationTable(dict[int, str | int]):
    """Translation table for captions: punctuation becomes a space, invisible marks are removed."""

    def __missing__(self, point: int) -> str | int:
        category = unicodedata.category(chr(point))
        kept = "" if category == "Cf" else " " if category[0] in "PZC" or category == "Sk" else point
        self[point] = kept
        return kept


_PUNCTUATION = _PunctuationTable()


def normalise_url(url: str) -> str:
    """Normalise a URL so that equivalent forms are equal; an invalid URL stays unchanged."""
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").rstrip(".").encode("idna").decode() if parts.hostname else ""
        port = parts.port
    except ValueError:  # includes UnicodeError of a host
        return url.strip()
    scheme = "http" if parts.scheme == "https" else parts.scheme
    at = "" if port in (None, 80, 443) and scheme == "http" else f":{port}"
    path = _percent_encode(parts.path) or "/"
    if "/." in path:
        path = posixpath.normpath(path) + ("/" if path.endswith(("/", "/.", "/..")) else "")
    query = f"?{_percent_encode(parts.query)}" if parts.query else ""
    return f"{scheme}://{host}{at}{path}{query}"


def _percent_encode(part: str) -> str:
    return quote(unquote_to_bytes(part), safe="/?&=+;:@,!$'()*~")


def read_exclusion(path: str, *, by: Iterable[MatchField] = DEFAULT_MATCH_FIELDS) -> Exclusion:
    """Read an evaluation set: a ``.txt`` of lines, a folder of images, or any input of pairs.

    Args:
        path: path of the input. A ``.txt`` is read by `exclusion_from_lines`. In a folder of images every image counts,
            with or without a caption.
        by: match fields.

    Raises:
        UsageError: if ``by`` has an unknown field.
        InputError: if the input cannot be read or has no values of the match fields.
    """
    chosen = _check_fields(by)
    place = Path(path)
    if place.suffix.lower() == ".txt":
        found = exclusion_from_lines(_read_lines(place), by=chosen)
    else:
        reading = ReadOptions(path, verify_images="off", on_error="skip", option_names=WITHOUT_OPTIONS)
        found = Exclusion()
        pictures = list(_list_images(place)) if place.is_dir() else []
        if pictures and "image" in chosen:
            found = exclusion_from_images(pictures)
        try:
            skipped = SkipCounts()
            found |= exclusion_from_pairs(_read_pair_batches(reading, skipped), by=chosen, hashing=not pictures)
            found = replace(found, skipped=skipped)
        except InputError:
            if not pictures:  # images without captions hold no pairs
                raise
    if not found.sizes:
        raise InputError(
            "nothing to exclude by", where=path, fix=f"It needs values for at least one of: {', '.join(chosen)}."
        )
    return found


def read_image_exclusion(path: str) -> Exclusion:
    """Read the images of an evaluation set, whose copies are excluded: a folder of images, or any input of pairs.

    Raises:
        InputError: if the input has no readable image.
    """
    place = Path(path)
    listed = list(map(str, _list_images(place))) if place.is_dir() else []
    skipped = SkipCounts()
    if not listed:
        reading = ReadOptions(path, verify_images="off", on_error="skip", option_names=WITHOUT_OPTIONS)
        listed = [pair.image for pairs in _read_pair_batches(reading, skipped) for pair in pairs if pair.image]
    images = read_known_images(listed)
    if not images.names:
        raise InputError("no readable image", where=path, fix="It needs local images whose copies are excluded.")
    return Exclusion(unread=images.unread, skipped=skipped, images=images)


def read_exclusions(
    paths: Sequence[str], by: Iterable[MatchField] = DEFAULT_MATCH_FIELDS, images: Sequence[str] = ()
) -> Exclusion | None:
    """Return the union of several evaluation sets; None without any.

    Args:
        paths: each read by `read_exclusion`.
        by: match fields of ``paths``.
        images: each read by `read_image_exclusion`.
    """
    chosen = _check_fields(by)
    found = [*(read_exclusion(path, by=chosen) for path in paths), *map(read_image_exclusion, images)]
    return reduce(or_, found) if found else None


def exclusion_from_pairs(
    batches: Iterable[Sequence[Pair]], *, by: Iterable[MatchField] = DEFAULT_MATCH_FIELDS, hashing: bool = True
) -> Exclusion:
    """Return the exclusion of pairs.

    Args:
        batches: batches of pairs.
        by: match fields.
        hashing: hash local images, and count the others as ``unread``; otherwise use only hashes stored in `meta`.
    """
    chosen = _check_fields(by)
    entries: dict[MatchField, set[str]] = {kind: set() for kind in chosen}
    unread = 0
    for batch in batches:
        for pair in batch:
            row = {name: getattr(pair, name) for name in MATCH_COLUMNS}
            for kind in chosen:
                entries[kind].update(_match_values(kind, row))
        if hashing and "image" in entries:
            named = list(dict.fromkeys(pair.image for pair in batch if pair.image and not _meta_hashes(pair.meta)))
            with ThreadPoolExecutor(_HASH_THREADS) as threads:
                hashes = list(threads.map(_hash_image, named))
            entries["image"].update(filter(None, hashes))
            unread += sum(not digest for digest in hashes)
    return Exclusion({kind: frozenset(values) for kind, values in entries.items()}, unread)


def exclusion_from_lines(lines: Iterable[str], *, by: Iterable[MatchField] = DEFAULT_MATCH_FIELDS) -> Exclusion:
    """Return the exclusion of plain lines: URLs, SHA-256 (64 hexadecimal digits), pair keys (32), or else captions.

    With ``id`` but not ``caption`` in ``by``, other lines are source ids. Lines of fields that are not in ``by`` are
    skipped.
    """
    chosen = _check_fields(by)
    other: MatchField = "id" if "id" in chosen and "caption" not in chosen else "caption"
    entries: dict[MatchField, set[str]] = {kind: set() for kind in chosen}
    for line in filter(None, map(str.strip, lines)):
        kind, value = other, normalise_caption(line) if other == "caption" else line
        if is_url(line):
            kind, value = "url", normalise_url(line)
        elif _HASH.fullmatch(line):
            kind, value = "image", line.lower()
        elif _KEY.fullmatch(line):
            kind, value = "key", line
        if kind in entries:
            entries[kind].add(value)
    return Exclusion({kind: frozenset(values) for kind, values in entries.items()})


def exclusion_from_images(paths: Iterable[Path]) -> Exclusion:
    """Return the exclusion of image files by hash; unreadable files are counted as ``unread``."""
    with ThreadPoolExecutor(_HASH_THREADS) as threads:
        hashes = list(threads.map(_hash_image, map(str, paths)))
    return Exclusion({"image": frozenset(filter(None, hashes))}, sum(not digest for digest in hashes))


@dataclass
class ExclusionFilter:
    """Judges the pairs found by searches, each once.

    Attributes:
        exclusion: values to exclude.
        pairs: lookup of pairs by key.
        judged: columns key, by, copy_of, uncompared, as returned by `Exclusion.judge`.
    """

    exclusion: Exclusion
    pairs: PairLookup
    judged: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_JUDGEMENT_SCHEMA))

    def judge_new(self, keys: pl.Series) -> None:
        """Judge the distinct ``keys`` that were not judged before.

        Raises:
            StorageError: if a pair is not stored.
        """
        new = keys.to_frame("key").join(self.judged, on="key", how="anti", maintain_order="left")["key"]
        for start in range(0, len(new), _PAIRS_PER_LOOKUP):
            batch = new.slice(start, _PAIRS_PER_LOOKUP)
            found = self.pairs(batch.to_list()).select(MATCH_COLUMNS).unique("key")
            pairs = batch.to_frame().join(found, on="key", maintain_order="left")
            if pairs.height < len(batch):
                raise StorageError(
                    f"{len(batch) - pairs.height} of the found pairs are not stored in the index, so they cannot be "
                    "checked against the exclusion. Build the index again and keep its pairs."
                )
            self.judged = self.judged.vstack(self.exclusion.judge(pairs))

    @property
    def excluded(self) -> pl.DataFrame:
        """Excluded pairs: columns key, by and copy_of, ordered by key."""
        return self.judged.filter(pl.col("by") != "").select("key", "by", "copy_of").sort("key")

    @property
    def uncompared(self) -> int:
        """Number of other pairs whose images could not be compared by content."""
        return int(self.judged.filter(pl.col("by") == "")["uncompared"].sum())


def make_exclusion_rejects(excluded: pl.DataFrame, pairs: PairLookup) -> list[Reject]:
    """Return a reject for each excluded pair.

    Args:
        excluded: columns key, by and copy_of.
        pairs: lookup of their captions.
    """
    found = pairs(excluded["key"].to_list()).select("key", "caption")
    columns = excluded.select("key", "by", "copy_of")
    rows = columns.join(found, on="key", how="left", maintain_order="left").fill_null("").iter_rows()
    return [
        make_reject(f"pair {key}", COPY_OF_EVALUATION_IMAGE, copy_of, caption)
        if copy_of
        else make_reject(f"pair {key}", "excluded", f"the evaluation set holds {_FIELD_DESCRIPTIONS[by]}", caption)
        for key, by, copy_of, caption in rows
    ]


def count_by_field(excluded: pl.DataFrame) -> dict[str, int]:
    """Return the number of excluded pairs by match field."""
    counts = Counter(excluded["by"].to_list())
    return {by: counts[by] for by in MATCH_FIELDS if counts[by]}


def _check_fields(by: Iterable[MatchField]) -> tuple[MatchField, ...]:
    asked = set(by)
    require_known("cannot exclude by", asked or ["nothing"], LISTED_FIELDS)
    return tuple(kind for kind in LISTED_FIELDS if kind in asked)


def _read_pair_batches(reading: ReadOptions, skipped: SkipCounts) -> Iterator[Sequence[Pair]]:
    """Yield the pairs of an input and count the skipped rows."""
    for batch in read_pairs(reading):
        skipped.add(batch.rejects)
        yield batch.pairs


def _read_lines(path: Path) -> Iterable[str]:
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    try:
        return read_text_bytes(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8", where=str(path), fix="Save the file as UTF-8.") from None


def _list_images(folder: Path) -> Iterable[Path]:
    return (path for path in walk_files(folder) if path.suffix.lower() in IMAGE_SUFFIXES and path.name[0] != ".")


def _hash_image(locator: str) -> str:
    """Return the SHA-256 of a local image, else an empty text."""
    if not locator or is_url(locator):
        return ""
    try:
        return hashlib.sha256(open_image(locator)).hexdigest()
    except InputError:
        return ""


_META_PATTERNS = {name: re.compile(rf'"{name}":"((?:[^"\\]|\\.)*)"') for name in ("sha256", "url")}


def _meta_values(name: str, meta: str) -> list[str]:
    """Return the values of ``name`` in a meta JSON, by pattern: parsing every row would be slow."""
    return [match.replace("\\/", "/") for match in _META_PATTERNS[name].findall(meta)]


def _meta_hashes(meta: str) -> list[str]:
    return [value.lower() for value in _meta_values("sha256", meta) if _HASH.fullmatch(value)]
