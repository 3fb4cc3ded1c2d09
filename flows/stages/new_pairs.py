"""Stage ``pairs`` of an incremental build: reads the whole input and writes new pairs into new parts.

The pieces of the input are scanned by jobs as in a full build (`pairs.scan_jobs`); one job compares their pairs with the
known ones.

A pair is identified by its key, and compared by a hash of its other fields, without the hits of `retrieve` in ``meta``,
whose ranks change with every index. A pair with a new key but the source and
source id (or image) of a known pair that is gone is a changed pair, not a new one. So is a pair whose caption and image
file name are those of one that is gone: its image was moved to another folder. Changed and removed pairs are in shards
that an increment does not rewrite: they are counted, and a full build applies the changes.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair, compact_json
from pairwright.flows.stages.pairs import (
    Intake,
    PartSpan,
    intake_result,
    read_span,
    reject_without_image,
    rejected_rows,
    scan_jobs,
)
from pairwright.flows.stages.scan import FORMAT, default_part_size
from pairwright.flows.state.layout import pairs_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult, json_hash
from pairwright.indexes.retrieval.hit_ranking import HITS

if TYPE_CHECKING:
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

_SOURCE_ID = pl.when(pl.col("source_id") == "").then(pl.col("image")).otherwise(pl.col("source_id"))
_FILE_NAME = pl.col("image").str.extract(r"([^/:]+)$")
_IDENTITIES = {  # by which a pair that is gone is found among the new ones, in this order; null: none
    "same_source": pl.when(_SOURCE_ID != "").then(pl.struct("source", _SOURCE_ID.alias("id")).hash()),
    "same_file": pl.when(_FILE_NAME.is_not_null()).then(
        pl.struct("source", _FILE_NAME.alias("name"), "caption").hash()
    ),
}


def new_pairs_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``pairs`` in an incremental build: the scan as in a full one, and what is new in it.

    Raises:
        InputError: for what the whole input lacks, such as a valid row.
    """
    base = run.increment_base
    (known,) = yield [run.job(describe_known, base.root, base.parts, part="known", state=base.state)]
    intake = replace(Intake.of(run.config), single_image_format=False)
    intake = replace(intake, options=replace(intake.options, default_source=known.facts["source"]))
    scanned = yield from scan_jobs(run, intake)
    spans = scanned.spans()
    state = json_hash([scanned.state(number, span) for number, span in enumerate(spans)])
    with_images = known.facts["with_images"] if intake.all_have_images else None
    image_format = base.manifest["shards"]["image_ext"] if run.config.single_image_format else ""
    args = (base.root, base.parts, intake, with_images, image_format, spans)
    return [run.job(write_new_pairs, *args, state=f"{state} {base.state}")]


def describe_known(_: Path, home: Path, parts: list[str]) -> JobResult:
    """State what the known pairs have in common.

    The facts: ``source``, empty if they have several; whether they are ``with_images``.
    """
    first = _first_image(home, parts)
    facts = {"source": _known_source(home, parts), "with_images": None if first is None else bool(first)}
    return JobResult([], Counts("row"), facts)


def write_new_pairs(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    home: Path,
    known: list[str],
    intake: Intake,
    with_images: bool | None,  # noqa: FBT001 - a job's argument
    image_format: str,
    spans: list[PartSpan],
) -> JobResult:
    """Write the pairs that are not in the ``known`` parts; the unit is a row.

    Args:
        root: the folder of the new parts.
        home: the build directory, with the known parts.
        known: names of parts; the new ones are numbered after them.
        intake: how the input was read.
        with_images: whether all pairs need an image or must have none, as the known ones; None if either will do.
        image_format: that all new images need, as the packed ones; empty if any will do.
        spans: the scanned input, in order.

    Returns:
        The parts, with their number and the numbers of known, changed and removed pairs among the facts. Rows that
        were rejected before are not rejected again.

    Raises:
        InputError: for a pair without an image among pairs with one, if the options say stop; for a pair with an image
            among pairs without; for images of another format.
    """
    reading = _NewPairReading(_known_pairs(home, known), _known_rejects(home))
    for span in spans:
        pairs, rejects = read_span(root, span)
        fits = pl.lit(value=True) if with_images is None else (pl.col("image") != "") == with_images
        other = PAIRS.records(pairs.filter(~fits))
        if other and (intake.options.on_error == "stop" or not with_images):
            raise _mixed(other[0], intake.options)
        reading.pairs(pairs.filter(fits))
        reading.rejects(pl.concat([rejects, rejected_rows([reject_without_image(pair) for pair in other])]))
    fresh, facts = reading.end()
    formats = Counter(fresh[FORMAT]) if image_format else Counter[str]()
    fresh = fresh.drop(FORMAT)
    if others := formats.keys() - {"", image_format}:
        raise _other_formats({name: formats[name] for name in sorted(others)}, image_format, intake.options)
    broken = pl.concat([rejected_rows([]), *reading.broken])
    stored = broken.select(REJECTS.schema.names()).rechunk()
    part_size = intake.part_size or default_part_size(fresh.height)
    outputs: list[Path] = []
    for number, start in enumerate(range(0, fresh.height, part_size), len(known)):
        part = part_name(number)
        PAIRS.write_frame(fresh[start : start + part_size].rechunk(), pairs_path(root, part))
        REJECTS.write_frame(stored if not start else stored.clear(), rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
    return intake_result(outputs, fresh.height, broken, {"parts": len(outputs) // 2, **facts})


def _first_image(home: Path, parts: list[str]) -> str | None:
    """Return the image of the first pair of a build; None without pairs."""
    images = (PAIRS.read_frame(pairs_path(home, part), ["image"])["image"] for part in parts)
    return next((str(column[0]) for column in images if len(column)), None)


def _known_source(home: Path, parts: list[str]) -> str:
    """Return the source of the known pairs; empty if they have several.

    It is the name of the input unless rows or settings name another. The name is hashed into keys: if the new rows are in
    a file or folder of another name, known rows among them would be new pairs.
    """
    sources = [PAIRS.read_frame(pairs_path(home, part), ["source"])["source"].unique() for part in parts]
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


def _other_formats(others: Mapping[str, int], known: str, options: ReadOptions) -> InputError:
    counts = ", ".join(f"{name} {count:,}" for name, count in others.items())
    return InputError(
        f"new images are of other formats ({counts}) than those of the build ({known})",
        where=str(options.input),
        fix=f"Convert them to {known}, or set `image_format: {known}` under shards and build with --full to recode them",
    )


def _hashed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return key, identities and a hash of all other columns; hashes of polars are comparable within one process only."""
    hashes = [pl.col(name).hash().alias(name) for name in PAIRS.schema if name != "key"]
    compared = frame.with_columns(pl.col("meta").map_elements(_without_hits, return_dtype=pl.String))
    return compared.select("key", pl.struct(hashes).hash().alias("hash"), **_IDENTITIES)


def _without_hits(meta: str) -> str:
    if f'"{HITS}"' not in meta:
        return meta
    return compact_json({name: value for name, value in json.loads(meta).items() if name != HITS})


def _known_pairs(home: Path, parts: list[str]) -> pl.DataFrame:
    frames = [PAIRS.frame([]), *(PAIRS.read_frame(pairs_path(home, part)) for part in parts)]
    return pl.concat([_hashed(frame) for frame in frames])


def _known_rejects(home: Path) -> pl.DataFrame:
    paths = sorted((home / "rejected").glob("pairs-*.parquet"))
    return pl.concat([REJECTS.frame([]), *map(REJECTS.read_frame, paths)])


@dataclass
class _NewPairReading:
    """Separates new pairs from known ones, batch by batch."""

    known: pl.DataFrame
    old_rejects: pl.DataFrame
    new: list[pl.DataFrame] = field(default_factory=list)
    identities: list[tuple[int | None, ...]] = field(default_factory=list)
    broken: list[pl.DataFrame] = field(default_factory=list)
    changed: int = 0
    seen: list[pl.Series] = field(default_factory=list)

    def pairs(self, pairs: pl.DataFrame) -> None:
        """Add a batch of pairs."""
        frame = _hashed(pairs)
        both = frame.join(self.known, on="key", how="left", suffix="_known", maintain_order="left")
        fresh, same = both["hash_known"].is_null(), both["hash"] == both["hash_known"]
        self.new.append(pairs.filter(fresh))
        self.identities += both.filter(fresh).select(*_IDENTITIES).rows()
        self.changed += int((~fresh & ~same.fill_null(value=False)).sum())
        self.seen.append(frame["key"])

    def rejects(self, rejects: pl.DataFrame) -> None:
        """Add the broken rows that were not rejected before.

        The source is not compared: where a broken row does not name one, an increment takes that of the known pairs.
        """
        names = [name for name in REJECTS.schema if name != "source"]
        self.broken.append(rejects.join(self.old_rejects, on=names, how="anti", maintain_order="left"))

    def end(self) -> tuple[pl.DataFrame, dict[str, int]]:
        """Return the new pairs, and the numbers of known, changed and removed pairs."""
        seen = pl.DataFrame({"key": pl.concat(self.seen) if self.seen else pl.Series([], dtype=pl.String)})
        gone = self.known.join(seen, on="key", how="anti")
        rows = self._without_changed(gone.select(*_IDENTITIES).rows())
        taken = len(self.identities) - len(rows)
        known = self.known.height - gone.height - self.changed
        fresh = pl.concat([PAIRS.frame([]).with_columns(pl.lit("").alias(FORMAT)), *self.new])[rows]
        return fresh, {"known": known, "changed": self.changed + taken, "removed": gone.height - taken}

    def _without_changed(self, gone: list[tuple[int | None, ...]]) -> list[int]:
        """Return the rows of the new pairs that are none of the ``gone`` ones, of which each is taken once."""
        fresh, taken = list(range(len(self.identities))), set[int]()
        for place in range(len(_IDENTITIES)):
            rows: dict[int | None, list[int]] = defaultdict(list)
            for row, each in enumerate(gone):
                if each[place] is not None and row not in taken:
                    rows[each[place]].append(row)
            left = []
            for new in fresh:
                if found := rows.get(self.identities[new][place]):
                    taken.add(found.pop())
                else:
                    left.append(new)
            fresh = left
        return fresh
