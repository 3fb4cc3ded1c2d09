"""Stage ``shards``: pairs, images and kept texts become WebDataset shards, one job a shard.

Which pairs a shard holds is planned beforehand from the order of the parts, so that the shards do not depend
on who writes them. An image that cannot be read is a rejected row; its shard is then smaller than the others.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.exports.source import with_image
from pairwright.datasets.images import UnusableImage, is_url
from pairwright.datasets.recode import Recoding
from pairwright.datasets.records import Annotation, Example, Pair
from pairwright.datasets.rejects import Reject, reject
from pairwright.datasets.samples import Sample
from pairwright.datasets.shards import finish_shards, shard_name, shard_summary, write_shard
from pairwright.datasets.tables import EXAMPLES, REJECTS
from pairwright.flows.chosen import Choice, chosen_frame, chosen_pairs
from pairwright.flows.inputs import file_state
from pairwright.flows.layout import kept_annotations, rationales_path, rejected_path
from pairwright.flows.receipts import Counts, Outcome, hash_of
from pairwright.flows.sections import ShardsSection


@dataclass(frozen=True)
class Slice:
    """A run of the chosen pairs of one part: positions ``start`` to ``stop`` among them."""

    part: str
    start: int
    stop: int


def plan_shards(chosen: Sequence[tuple[str, int]], samples: int) -> list[tuple[Slice, ...]]:
    """Return for each shard the slices of parts that it holds.

    Args:
        chosen: (part, number of chosen pairs) in order.
        samples: in a shard.
    """
    shards: list[list[Slice]] = []
    room = 0
    for part, count in chosen:
        start = 0
        while start < count:
            if room == 0:
                shards.append([])
                room = samples
            taken = min(room, count - start)
            shards[-1].append(Slice(part, start, start + taken))
            start, room = start + taken, room - taken
    return [tuple(slices) for slices in shards]


@dataclass(frozen=True)
class Packing:
    """What goes into the shards: texts of which stages, images how, which pairs go on, and whether rationales do."""

    stages: tuple[str, ...]
    section: ShardsSection
    choice: Choice
    rationales: bool = False


def write_one_shard(root: Path, number: int, slices: Sequence[Slice], packing: Packing) -> Outcome:
    """Write one shard; the unit is a pair."""
    path = root / "shards" / shard_name(number)
    rejects: list[Reject] = []
    samples = _samples(root, slices, packing, rejects)
    info = write_shard(samples, path)
    rejected = rejected_path(root, "shards", path.stem)
    REJECTS.write(rejects, rejected)
    reasons = dict(sorted(Counter(row.reason for row in rejects).items()))
    return Outcome([path, rejected], Counts("pair", info.count + len(rejects), info.count, reasons))


def part_state(root: Path, part: str, packing: Packing) -> tuple[int, str]:
    """Return how many pairs of a part go into shards, and the state of their image files (size and time of change)."""
    frame = chosen_frame(root, part, packing.choice)
    if not packing.section.images:
        return frame.height, ""
    files = frame.select(pl.col("image").str.replace(r"(\.tar)::.*$", "${1}").unique(maintain_order=True))["image"]
    return frame.height, hash_of(file_state([path for file in files if file and (path := Path(file)).is_file()]))


def finish(root: Path) -> Outcome:
    """Write ``sizes.json`` and the check sums over all shards."""
    folder = root / "shards"
    written = finish_shards(folder)
    if not written.count:
        raise InputError(
            "not one image could be read",
            where=str(folder),
            mend="See rejected/shards-*.parquet for the reasons; `images: false` under shards packs texts alone",
        )
    outputs = sorted(path for path in folder.iterdir() if path.suffix != ".tar" and not path.name.startswith("."))
    return Outcome(outputs, Counts("sample", written.count, written.count), shard_summary(written))


def _samples(root: Path, slices: Sequence[Slice], packing: Packing, rejects: list[Reject]) -> Iterator[Sample]:
    recoding = Recoding(format=packing.section.image_format)
    for piece in slices:
        pairs = chosen_pairs(root, piece.part, packing.choice)[piece.start : piece.stop]
        texts: dict[str, list[Annotation]] = {}
        for annotation in kept_annotations(root, piece.part, packing.stages):
            texts.setdefault(annotation.key, []).append(annotation)
        rationales: dict[str, list[Example]] = {}
        for example in EXAMPLES.read(rationales_path(root, piece.part)) if packing.rationales else ():
            rationales.setdefault(example.key, []).append(example)
        for pair in pairs:
            sample = Sample(pair, tuple(texts.get(pair.key, ())), tuple(rationales.get(pair.key, ())))
            if packing.section.images:
                try:
                    sample = with_image(sample, recoding)
                except InputError as error:
                    rejects.append(_unusable(pair, error))
                    continue
            yield sample


def _unusable(pair: Pair, error: InputError) -> Reject:
    other = "not_fetched" if is_url(pair.image) else "bad_image"
    reason = error.reason if isinstance(error, UnusableImage) else other
    return reject(pair.image, reason, error.what, pair.caption)
