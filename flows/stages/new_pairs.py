"""Stage ``pairs`` of an incremental build: reads the whole input and writes new pairs into new parts.

A pair is identified by its key, and compared by a hash of its other fields. A pair with a new key but the source and
source id (or image) of a known pair that is gone is a changed pair, not a new one. So is a pair whose caption and image
file name are those of one that is gone: its image was moved to another folder. Changed and removed pairs are in shards
that an increment does not rewrite: they are counted, and a full build applies the changes.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.flows.stages.pairs import Intake, intake_result, reject_without_image
from pairwright.flows.stages.scan import default_part_size
from pairwright.flows.state.inputs import input_state
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Job, JobResult

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

_SOURCE_ID = pl.when(pl.col("source_id") == "").then(pl.col("image")).otherwise(pl.col("source_id"))
_FILE_NAME = pl.col("image").str.extract(r"([^/:]+)$")
_IDENTITIES = {  # by which a pair that is gone is found among the new ones, in this order; null: none
    "same_source": pl.when(_SOURCE_ID != "").then(pl.struct("source", _SOURCE_ID.alias("id")).hash()),
    "same_file": pl.when(_FILE_NAME.is_not_null()).then(
        pl.struct("source", _FILE_NAME.alias("name"), "caption").hash()
    ),
}


def new_pairs_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``pairs`` in an incremental build."""
    base = run.increment_base
    intake = replace(Intake.of(run.config), single_image_format=False)
    state = f"{input_state(run.config.input)} {base.state}"
    return [run.job(read_new_pairs, base.root, base.parts, intake, state=state)]


def read_new_pairs(root: Path, home: Path, known: list[str], intake: Intake) -> JobResult:
    """Write the pairs that are not in the ``known`` parts; the unit is a row.

    Args:
        root: the folder of the new parts.
        home: the build directory, with the known parts.
        known: names of parts; the new ones are numbered after them.
        intake: how the input is read; the known pairs decide whether all have images.

    Returns:
        The parts, with their number and the numbers of known, changed and removed pairs among the facts. Rows that
        were rejected before are not rejected again.

    Raises:
        InputError: for a broken row, or a pair without an image among pairs with one, if the options say stop; for a
            pair with an image among pairs without.
    """
    reading = _NewPairReading(_known_pairs(home, known), _known_rejects(home))
    options = replace(intake.options, default_source=_known_source(home, known))
    intake = replace(intake, options=options)
    with_images = _has_images(home, known) if intake.all_have_images else None
    for batch in intake.batches(root):
        other = [pair for pair in batch.pairs if with_images not in (None, bool(pair.image))]
        if other and (options.on_error == "stop" or not with_images):
            raise _mixed(other[0], options)
        reading.pairs([pair for pair in batch.pairs if with_images in (None, bool(pair.image))])
        reading.rejects([*batch.rejects, *map(reject_without_image, other)])
    fresh, facts = reading.end()
    part_size = intake.part_size or default_part_size(len(fresh))
    outputs: list[Path] = []
    for number, start in enumerate(range(0, len(fresh), part_size), len(known)):
        part = part_name(number)
        PAIRS.write(fresh[start : start + part_size], pairs_path(root, part))
        REJECTS.write(reading.broken if not start else [], rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
    skipped = SkipCounts()
    skipped.add(reading.broken)
    return intake_result(outputs, len(fresh), skipped, {"parts": len(outputs) // 2, **facts})


def _has_images(home: Path, parts: list[str]) -> bool | None:
    """Return whether the pairs of a build have images; None without pairs."""
    images = (PAIRS.read_frame(pairs_path(home, part))["image"] for part in parts)
    return next((bool(column[0]) for column in images if len(column)), None)


def _known_source(home: Path, parts: list[str]) -> str:
    """Return the source of the known pairs; empty if they have several.

    It is the name of the input unless rows or settings name another. The name is hashed into keys: if the new rows are in
    a file or folder of another name, known rows among them would be new pairs.
    """
    sources = [PAIRS.read_frame(pairs_path(home, part))["source"].unique() for part in parts]
    found = {source for column in sources for source in column}
    return found.pop() if len(found) == 1 else ""


def _mixed(pair: Pair, options: ReadOptions) -> InputError:
    has, others = ("an", "none") if pair.image else ("no", "one")
    skip = "" if pair.image else " `on_error: skip` under input to reject it, or"
    return InputError(
        f"pair {pair.source_id or pair.key} has {has} image, and the pairs of the build have {others}",
        where=str(options.input),
        fix=f"Set{skip} `images: false` under shards and build with --full to pack texts only",
    )


def _hashed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return key, identities and a hash of all other columns; hashes of polars are comparable within one process only."""
    hashes = [pl.col(name).hash().alias(name) for name in PAIRS.schema if name != "key"]
    return frame.select("key", pl.struct(hashes).hash().alias("hash"), **_IDENTITIES)


def _known_pairs(home: Path, parts: list[str]) -> pl.DataFrame:
    frames = [PAIRS.frame([]), *(PAIRS.read_frame(pairs_path(home, part)) for part in parts)]
    return pl.concat([_hashed(frame) for frame in frames])


def _known_rejects(home: Path) -> frozenset[Reject]:
    return frozenset(row for path in (home / "rejected").glob("pairs-*.parquet") for row in REJECTS.read(path))


@dataclass
class _NewPairReading:
    """Separates new pairs from known ones, batch by batch."""

    known: pl.DataFrame
    old_rejects: frozenset[Reject]
    new: list[tuple[Pair, tuple[int | None, ...]]] = field(default_factory=list)
    broken: list[Reject] = field(default_factory=list)
    changed: int = 0
    seen: list[pl.Series] = field(default_factory=list)

    def pairs(self, pairs: list[Pair]) -> None:
        """Add a batch of pairs."""
        frame = _hashed(PAIRS.frame(pairs))
        both = frame.join(self.known, on="key", how="left", suffix="_known", maintain_order="left")
        fresh, same = both["hash_known"].is_null(), both["hash"] == both["hash_known"]
        identities = both.select(*_IDENTITIES).rows()
        self.new += [(pair, each) for pair, each, is_new in zip(pairs, identities, fresh, strict=True) if is_new]
        self.changed += int((~fresh & ~same.fill_null(value=False)).sum())
        self.seen.append(frame["key"])

    def rejects(self, rejects: list[Reject]) -> None:
        """Add the broken rows that were not rejected before."""
        self.broken += [row for row in rejects if row not in self.old_rejects]

    def end(self) -> tuple[list[Pair], dict[str, int]]:
        """Return the new pairs, and the numbers of known, changed and removed pairs."""
        seen = pl.DataFrame({"key": pl.concat(self.seen) if self.seen else pl.Series([], dtype=pl.String)})
        gone = self.known.join(seen, on="key", how="anti")
        fresh, taken = self._without_changed(gone.select(*_IDENTITIES).rows())
        known = self.known.height - gone.height - self.changed
        return fresh, {"known": known, "changed": self.changed + taken, "removed": gone.height - taken}

    def _without_changed(self, gone: list[tuple[int | None, ...]]) -> tuple[list[Pair], int]:
        """Return the new pairs that are none of the ``gone`` ones, of which each is taken once, and the number taken."""
        fresh, taken = self.new, set[int]()
        for place in range(len(_IDENTITIES)):
            rows: dict[int | None, list[int]] = defaultdict(list)
            for row, each in enumerate(gone):
                if each[place] is not None and row not in taken:
                    rows[each[place]].append(row)
            left = []
            for pair, each in fresh:
                if found := rows.get(each[place]):
                    taken.add(found.pop())
                else:
                    left.append((pair, each))
            fresh = left
        return [pair for pair, _ in fresh], len(taken)
