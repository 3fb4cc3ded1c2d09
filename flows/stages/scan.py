"""First half of stage ``pairs``: the pieces of the input are read, each by a job of its own, and their pairs numbered.

``scan/PIECE.npy`` has the first 64 bits of the key of each pair. The pairs and rejected rows of a piece lie beside it
until the stage ends; a part that has to be written again later reads its pieces again.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, compress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.images.loading import (
    UnusableImageError,
    check_image_at,
    image_format_by_name,
    is_url,
    short_format_name,
)
from pairwright.datasets.progress import open_step
from pairwright.datasets.readers.key_set import hash_prefixes
from pairwright.datasets.readers.pairs import ReadOptions, duplicate_reject, make_row_key
from pairwright.datasets.readers.pieces import Piece, PieceBatch, PieceSummary, count_lines, read_piece
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.rejects import NEVER_FATAL_REASONS
from pairwright.flows.state.layout import captions_path
from pairwright.flows.state.receipts import Counts, JobResult, json_hash

_KEYS_AT_ONCE = 2**24  # whose repetitions are looked for in memory
_REJECTS = pl.Schema([*REJECTS.schema.items(), ("before", pl.UInt32()), ("part", pl.String())])
FORMAT = "image_format"
"""The column of scanned pairs with the format of the image, by its bytes; by its name if images are not opened."""
REPEATS = pl.Schema([("position", pl.UInt64()), ("key", pl.String()), *REJECTS.schema.items()])


@dataclass(frozen=True)
class PieceSource:
    """A piece of the input, and how it is read.

    Attributes:
        name: of its files.
        options: of the reader.
        piece: of the input; None for the pairs of stage ``captions``, which are not compared with others.
        lines_before: lines of the file before a part of it.
        captioned: whether pairs without a caption are dropped, since stage ``captions`` wrote theirs.
    """

    name: str
    options: ReadOptions
    piece: Piece | None
    lines_before: int = 0
    captioned: bool = False

    def path(self, root: Path, suffix: str) -> Path:
        """Return a file of the piece."""
        return root / "scan" / f"{self.name}{suffix}"

    def pairs(self, root: Path) -> pl.LazyFrame:
        """Return its pairs, with their ``place`` and `FORMAT`; a piece whose file was removed is read again."""
        path = self.path(root, ".parquet")
        if not path.is_file():
            self.write(root)
        return pl.scan_parquet(path)

    def rejects(self, root: Path) -> pl.DataFrame:
        """Return its rejected rows, with the number of pairs ``before`` each and the rejected ``part`` of the row."""
        path = self.path(root, "-rejects.parquet")
        if not path.is_file():
            self.write(root)
        return pl.read_parquet(path)

    def write(self, root: Path) -> tuple[PieceSummary, list[NDArray[np.uint64]], dict[str, Any]]:
        """Read the piece and write its pairs and rejected rows; return summary, keys and facts."""
        import pyarrow.parquet as pq

        summary, keys, rejects = PieceSummary(), list[NDArray[np.uint64]](), [pl.DataFrame(schema=_REJECTS)]
        formats, count, without_image, urls = Counter[str](), 0, 0, 0
        first = _with_places(PieceBatch([], [], [], [], []))
        with (
            replace_atomically(self.path(root, ".parquet")) as temporary,
            pq.ParquetWriter(temporary, first.to_arrow(compat_level=pl.CompatLevel.oldest()).schema) as writer,
            open_step("reading", unit="rows") as done,
        ):
            for batch in self._batches(root, summary):
                table = _with_places(batch)
                writer.write_table(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
                keys.append(hash_prefixes([pair.key for pair in batch.pairs]))
                if batch.rejects:
                    before = pl.Series("before", batch.pairs_before, pl.UInt32) + count
                    part = pl.Series("part", [reject.part for reject in batch.rejects], pl.String)
                    rejects.append(REJECTS.frame(batch.rejects).with_columns(before, part))
                count += len(batch.pairs)
                without_image += sum(not pair.image for pair in batch.pairs)
                urls += sum(is_url(pair.image) for pair in batch.pairs)
                formats.update(filter(None, batch.formats))
                done.advance(len(batch.pairs) + sum(reject.part == "row" for reject in batch.rejects))
        with replace_atomically(self.path(root, "-rejects.parquet")) as temporary:
            pl.concat(rejects).write_parquet(temporary)
        facts = {
            "pairs": count,
            "without_image": without_image,
            "urls": urls,
            "image_formats": dict(formats),
            "content": _digest(self.path(root, ".parquet"), self.path(root, "-rejects.parquet")),
        }
        return summary, keys, facts

    def _batches(self, root: Path, summary: PieceSummary) -> Iterator[PieceBatch]:
        if self.piece is None:
            pairs = list(PAIRS.read(captions_path(root)))
            summary.candidates = summary.kept = len(pairs)
            yield PieceBatch(pairs, [""] * len(pairs), [self._image_format(pair.image) for pair in pairs], [], [])
            return
        for batch in read_piece(self.options, self.piece, summary, self.lines_before):
            yield _captioned_only(batch) if self.captioned else batch

    def _image_format(self, image: str) -> str:
        """Return the format of the image of a pair that no reader opened, as `ReadBatch.image_formats` does."""
        if self.options.verify_images != "off":
            with suppress(UnusableImageError):
                return short_format_name(check_image_at(image)[2])
        return image_format_by_name(image)


def _captioned_only(batch: PieceBatch) -> PieceBatch:
    """Return a batch without the pairs that have no caption."""
    has = [bool(pair.caption) for pair in batch.pairs]
    before = [0, *accumulate(has)]
    return PieceBatch(
        list(compress(batch.pairs, has)),
        list(compress(batch.places, has)),
        list(compress(batch.formats, has)),
        batch.rejects,
        [before[number] for number in batch.pairs_before],
    )


def scan_piece(root: Path, source: PieceSource) -> JobResult:
    """Read a piece; the facts have its summary, counts and a hash of its content."""
    summary, keys, facts = source.write(root)
    path = source.path(root, ".npy")
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.save(handle, np.concatenate([np.empty(0, np.uint64), *keys]))
    return JobResult([path], Counts("row"), {**facts, "summary": summary.as_json()})


def count_piece_lines(_: Path, piece: Piece) -> JobResult:
    """Count the lines of a part of a file."""
    return JobResult([], Counts("row"), {"lines": count_lines(piece)})


def repeats_path(root: Path) -> Path:
    """Return the file of the pairs whose key came before in another piece."""
    return root / "scan" / "repeats.parquet"


def number_pairs(root: Path, sources: Sequence[PieceSource], part_size: int) -> JobResult:
    """Find the keys that occur in several pieces, and divide the pairs that are left into parts.

    The facts: ``pairs`` that are left, those of them ``without_image``, the position in all pieces together at which
    each part ``starts``, and by part a hash of its ``repeats``.

    Raises:
        InputError: for a repeated key, if the options say stop.
    """
    counts = [len(_load_keys(root, source)) for source in sources]
    offsets = np.cumsum([0, *counts])
    repeats = _repeats(root, sources, offsets)
    gone = repeats.filter(pl.col("reason") != "")
    with replace_atomically(repeats_path(root)) as temporary:
        repeats.select(REPEATS.names()).write_parquet(temporary, row_group_size=2**16)
    positions = gone["position"].to_numpy().astype(np.int64)
    kept = int(offsets[-1]) - len(positions)
    size = part_size or default_part_size(kept)
    last = np.arange(size, kept, size) - 1  # number of the last pair of each part but the last
    starts = [0, *(last + np.searchsorted(positions - np.arange(len(positions)), last, side="right") + 1).tolist()]
    part_of = np.searchsorted(starts, repeats["position"].to_numpy(), side="right") - 1
    by_part = repeats.select(REPEATS.names()).with_columns(part=part_of).partition_by("part", as_dict=True)
    facts = {
        "pairs": kept,
        "repeats_without_image": gone.filter(pl.col("image") == "").height,
        "starts": starts,
        "repeats": {str(part): json_hash(rows.rows()) for (part,), rows in by_part.items()},
        "reasons": dict(gone.group_by("reason").len().sort("reason").iter_rows()),
    }
    return JobResult([repeats_path(root)], Counts("row"), facts)


def _repeats(root: Path, sources: Sequence[PieceSource], offsets: NDArray[np.int64]) -> pl.DataFrame:
    """Return the pairs whose key came before: `REPEATS` and ``image``; without a reason, they are kept with ``key``.

    Raises:
        InputError: for the first that is rejected, if the options say stop.
    """
    keys = [_load_keys(root, source) if source.piece else np.empty(0, np.uint64) for source in sources]
    positions = _repeated_positions(keys, offsets)
    found = [pl.DataFrame(schema=pl.Schema([*REPEATS.items(), ("image", pl.String())]))]
    known: set[int] | None = None
    for number, source in enumerate(sources):
        rows = positions[(positions >= offsets[number]) & (positions < offsets[number + 1])]
        if not len(rows):
            continue
        local = pl.Series(rows - offsets[number], dtype=pl.UInt32)
        frame = source.pairs(root).with_row_index("row").filter(pl.col("row").is_in(local.implode())).collect()
        pairs = PAIRS.records(frame.select(PAIRS.schema.names()))
        others = [make_row_key(pair) for pair in pairs]
        if known is None and any(others):
            known = {int(key) for each in keys for key in each}
        lines = []
        for position, place, pair, other in zip(rows.tolist(), frame["place"], pairs, others, strict=True):
            if other and (known is not None) and (prefix := int(hash_prefixes([other])[0])) not in known:
                known.add(prefix)
                lines.append((position, other, "", "", "", "", "", pair.image))
                continue
            reject = duplicate_reject(place, pair, cleaned=source.options.clean_captions)
            if source.options.on_error == "stop" and reject.reason not in NEVER_FATAL_REASONS:
                raise reject.error(source.options.option_names)
            fields = (reject.place, reject.reason, reject.detail, reject.excerpt, reject.source)
            lines.append((position, "", *fields, pair.image))
        found.append(pl.DataFrame(lines, schema=found[0].schema, orient="row"))
    return pl.concat(found)


def _repeated_positions(keys: Sequence[NDArray[np.uint64]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions, ascending, of all keys but the first of each value; in memory are `_KEYS_AT_ONCE` at most."""
    bits = max(0, (int(offsets[-1]) // _KEYS_AT_ONCE).bit_length())
    found = [np.empty(0, np.int64)]
    for bucket in range(2**bits):
        values, places = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for each, offset in zip(keys, offsets[:-1], strict=True):
            chosen = np.flatnonzero(each >> np.uint64(64 - bits) == bucket) if bits else np.arange(len(each))
            values.append(np.asarray(each[chosen]))
            places.append(chosen + offset)
        every, at = np.concatenate(values), np.concatenate(places)
        order = np.argsort(every, kind="stable")
        found.append(at[order[1:][every[order[1:]] == every[order[:-1]]]])
    return np.sort(np.concatenate(found))


def default_part_size(pairs: int) -> int:
    """Return the pairs of a part by the number of all pairs: 8 times its square root, from 250 to 50,000, in tens.

    So 4,000 pairs are 8 parts, 100,000 are 40, ten million 396 and 400 million 8,000.
    """
    return int(min(max(round(8 * pairs**0.5, -1), 250), 50_000))


def _load_keys(root: Path, source: PieceSource) -> NDArray[np.uint64]:
    keys: NDArray[np.uint64] = np.load(source.path(root, ".npy"), mmap_mode="r", allow_pickle=False)
    return keys


def _with_places(batch: PieceBatch) -> pl.DataFrame:
    columns = {"place": batch.places, FORMAT: batch.formats}
    return PAIRS.frame(batch.pairs).with_columns(
        **{name: pl.Series(values, dtype=pl.String) for name, values in columns.items()}
    )


def _digest(*paths: Path) -> str:
    hasher = hashlib.sha256()
    for path in paths:
        with path.open("rb") as handle:
            hasher.update(hashlib.file_digest(handle, "sha256").digest())
    return hasher.hexdigest()
