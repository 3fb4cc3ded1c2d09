"""Stage ``pairs`` of an incremental build: the input is read to its end, and what was not there before becomes parts.

A pair is known by its key, and by a hash of all else that is told of it. One whose key is new, but whose source and source
id (else image) are those of a known pair that is gone, is that pair with another caption: changed, not new. Changed and
removed pairs stand in shards that stay as they are, so they are counted, and a full build mends them.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.flows.stages.pairs import Intake, without_image_field
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult

_SOURCE_ID = pl.when(pl.col("source_id") == "").then(pl.col("image")).otherwise(pl.col("source_id"))
_OTHER = pl.when(_SOURCE_ID == "").then(pl.lit("")).otherwise(pl.col("source") + "\n" + _SOURCE_ID).alias("other")


def read_new_pairs(root: Path, home: Path, known: list[str], intake: Intake) -> JobResult:
    """Write the pairs that stand in none of the ``known`` parts; the unit is a row.

    Args:
        root: where the new parts go.
        home: the build directory, with the known parts.
        known: names of parts; the new ones are numbered after them.
        intake: how; what the known pairs are decides whether all have images.

    Returns:
        The parts; ``parts`` (how many), ``known``, ``changed`` and ``removed`` pairs are among the facts. Broken rows that
        were rejected before are known, too.

    Raises:
        InputError: a broken row, or a pair without an image among others, when the options say stop; a pair with an
            image among others without.
    """
    reading = _NewPairReading(_known_pairs(home, known), _known_rejects(home))
    options, part_size = intake.options, intake.part_size
    pictured = _has_images(home, known) if intake.all_have_images else None
    for batch in read_pairs(options):
        other = [pair for pair in batch.pairs if pictured not in (None, bool(pair.image))]
        if other and (options.on_error == "stop" or not pictured):
            raise _mixed(other[0], options)
        reading.pairs([pair for pair in batch.pairs if pictured in (None, bool(pair.image))])
        reading.rejects([*batch.rejects, *map(without_image_field, other)])
    fresh, facts = reading.end()
    outputs: list[Path] = []
    for number, start in enumerate(range(0, len(fresh), part_size), len(known)):
        part = part_name(number)
        PAIRS.write(fresh[start : start + part_size], pairs_path(root, part))
        REJECTS.write(reading.broken if not start else [], rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
    reasons = Counter(row.reason for row in reading.broken)
    counts = Counts("row", len(fresh) + reasons.total(), len(fresh), dict(sorted(reasons.items())))
    return JobResult(outputs, counts, {"parts": len(outputs) // 2, **facts})


def _has_images(home: Path, parts: list[str]) -> bool | None:
    """Say whether the pairs of a build have images; None where there are none."""
    images = (PAIRS.read_frame(pairs_path(home, part))["image"] for part in parts)
    return next((bool(column[0]) for column in images if len(column)), None)


def _mixed(pair: Pair, options: ReadOptions) -> InputError:
    has, others = ("an", "none") if pair.image else ("no", "one")
    skip = "" if pair.image else "`on_error: skip` under input sets it aside; "
    return InputError(
        f"pair {pair.source_id or pair.key} has {has} image, and those of the build have {others}",
        where=str(options.input),
        fix=f"{skip}with `images: false` under shards, --full builds texts alone",
    )


def _hashed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return key, other name and a hash of all other columns; polars' hashes hold within one process."""
    hashes = [pl.col(name).hash().alias(name) for name in PAIRS.schema if name != "key"]
    return frame.select("key", _OTHER, pl.struct(hashes).hash().alias("hash"))


def _known_pairs(home: Path, parts: list[str]) -> pl.DataFrame:
    frames = [PAIRS.frame([]), *(PAIRS.read_frame(pairs_path(home, part)) for part in parts)]
    return pl.concat([_hashed(frame) for frame in frames])


def _known_rejects(home: Path) -> frozenset[Reject]:
    return frozenset(row for path in (home / "rejected").glob("pairs-*.parquet") for row in REJECTS.read(path))


@dataclass
class _NewPairReading:
    known: pl.DataFrame
    refused: frozenset[Reject]
    new: list[tuple[Pair, str]] = field(default_factory=list)
    broken: list[Reject] = field(default_factory=list)
    changed: int = 0
    seen: list[pl.Series] = field(default_factory=list)

    def pairs(self, pairs: list[Pair]) -> None:
        """Take a batch apart."""
        frame = _hashed(PAIRS.frame(pairs))
        both = frame.join(self.known, on="key", how="left", suffix="_known", maintain_order="left")
        fresh, same = both["hash_known"].is_null(), both["hash"] == both["hash_known"]
        self.new += [(pair, other) for pair, other, is_new in zip(pairs, both["other"], fresh, strict=True) if is_new]
        self.changed += int((~fresh & ~same.fill_null(value=False)).sum())
        self.seen.append(frame["key"])

    def rejects(self, rejects: list[Reject]) -> None:
        """Keep what is broken and was not before."""
        self.broken += [row for row in rejects if row not in self.refused]

    def end(self) -> tuple[list[Pair], dict[str, int]]:
        """Return the new pairs, and how many are known, changed and removed."""
        seen = pl.DataFrame({"key": pl.concat(self.seen) if self.seen else pl.Series([], dtype=pl.String)})
        gone = self.known.join(seen, on="key", how="anti")
        renamed = Counter(gone.filter(pl.col("other") != "")["other"])
        fresh: list[Pair] = []
        again = 0
        for pair, other in self.new:
            if renamed[other] > 0:
                renamed[other] -= 1
                again += 1
            else:
                fresh.append(pair)
        known = self.known.height - gone.height - self.changed
        return fresh, {"known": known, "changed": self.changed + again, "removed": gone.height - again}
