"""Stage ``shards``: pairs, images and kept texts become WebDataset shards, one job a shard.

Which pairs a shard holds is planned beforehand from the order of the parts and the sizes of their images, so that the
shards do not depend on who writes them. An image that cannot be read is a rejected row; its shard is then smaller than
the others. Sizes are those of the source's images: one that is scaled down or encoded anew takes less, or more.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import MEMBER_SEPARATOR, UnusableImageError, is_url, read_stored_size
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import EXAMPLES, REJECTS
from pairwright.datasets.records import Annotation, Example, Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.datasets.shards.sample_source import load_image
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import (
    MAX_SHARD_BYTES,
    finish_shards,
    shard_name,
    summarize_shards,
    write_shard,
)
from pairwright.flows.config.sections import ShardsSection
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import kept_annotations, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult, json_hash
from pairwright.flows.state.selection import PairSelection, selected_frame, selected_pairs


@dataclass(frozen=True)
class Slice:
    """A run of the chosen pairs of one part: positions ``start`` to ``stop`` among them."""

    part: str
    start: int
    stop: int


TEXTS = 4_096  # bytes of a sample beside its image, about: texts as JSON, headers, padding


def plan_shards(
    chosen: Iterable[tuple[str, Sequence[int]]], samples: int, most: int = MAX_SHARD_BYTES
) -> list[tuple[Slice, ...]]:
    """Return for each shard the slices of parts that it holds.

    Args:
        chosen: (part, bytes of each chosen pair) in order.
        samples: in a shard, at most.
        most: bytes in a shard; one sample always has room.
    """
    shards: list[list[Slice]] = []
    count, size = samples, 0
    for part, sizes in chosen:
        start = 0
        for end, each in enumerate(sizes):
            if count == samples or (count and size + each > most):
                if end > start:
                    shards[-1].append(Slice(part, start, end))
                shards.append([])
                start, count, size = end, 0, 0
            count, size = count + 1, size + each
        if len(sizes) > start:
            shards[-1].append(Slice(part, start, len(sizes)))
    return [tuple(slices) for slices in shards]


@dataclass(frozen=True)
class Packing:
    """What goes into the shards: texts of which stages, images how, which pairs go on, and whether rationales do."""

    stages: tuple[str, ...]
    section: ShardsSection
    choice: PairSelection
    rationales: bool = False


def write_one_shard(root: Path, number: int, slices: Sequence[Slice], packing: Packing) -> JobResult:
    """Write one shard; the unit is a pair."""
    path = root / "shards" / shard_name(number)
    rejects: list[Reject] = []
    samples = _samples(root, slices, packing, rejects)
    info = write_shard(samples, path)
    rejected = rejected_path(root, "shards", path.stem)
    REJECTS.write(rejects, rejected)
    reasons = dict(sorted(Counter(row.reason for row in rejects).items()))
    return JobResult([path, rejected], Counts("pair", info.count + len(rejects), info.count, reasons))


def part_state(root: Path, part: str, packing: Packing) -> str:
    """Return the state of the image files of a part's pairs that go into shards: size and time of change."""
    if not packing.section.images:
        return ""
    frame = selected_frame(root, part, packing.choice)
    files = frame.select(pl.col("image").str.replace(f"(?s){MEMBER_SEPARATOR}.*$", "${1}").unique(maintain_order=True))[
        "image"
    ]
    return json_hash(file_state([path for file in files if file and (path := Path(file)).is_file()]))


def part_sizes(root: Path, part: str, packing: Packing) -> list[int]:
    """Return the bytes, about, of each sample of a part; of an image that is not there none, which packing will tell."""
    return [sample_bytes(image, packing.section) for image in selected_frame(root, part, packing.choice)["image"]]


def sample_bytes(image: str, section: ShardsSection) -> int:
    """Return how many bytes a sample with this image takes, about; see `TEXTS`."""
    if not (image and section.images) or is_url(image):
        return TEXTS
    return TEXTS + read_stored_size(image)


def write_shard_sizes(root: Path) -> JobResult:
    """Write ``sizes.json`` and the check sums over all shards."""
    folder = root / "shards"
    written = finish_shards(folder)
    if not written.count:
        raise InputError(
            "not one image could be read",
            where=str(folder),
            fix="See rejected/shards-*.parquet for the reasons; `images: false` under shards packs texts alone",
        )
    outputs = sorted(path for path in folder.iterdir() if path.suffix != ".tar" and not path.name.startswith("."))
    return JobResult(outputs, Counts("sample", written.count, written.count), summarize_shards(written))


def _samples(root: Path, slices: Sequence[Slice], packing: Packing, rejects: list[Reject]) -> Iterator[Sample]:
    recoding = Recoding(packing.section.image_format, packing.section.longest_side)
    for piece in slices:
        pairs = selected_pairs(root, piece.part, packing.choice)[piece.start : piece.stop]
        texts: dict[str, list[Annotation]] = {}
        for annotation in kept_annotations(root, piece.part, packing.stages):
            texts.setdefault(annotation.key, []).append(annotation)
        rationales: dict[str, list[Example]] = {}
        for example in EXAMPLES.read(rationales_path(root, piece.part)) if packing.rationales else ():
            rationales.setdefault(example.key, []).append(example)
        for pair in track(pairs, "packing", unit="samples"):
            sample = Sample(pair, tuple(texts.get(pair.key, ())), tuple(rationales.get(pair.key, ())))
            if packing.section.images:
                try:
                    sample = load_image(sample, recoding)
                except InputError as error:
                    rejects.append(_unusable(pair, error))
                    continue
            yield sample


def _unusable(pair: Pair, error: InputError) -> Reject:
    other = "not_fetched" if is_url(pair.image) else "bad_image"
    reason = error.reason if isinstance(error, UnusableImageError) else other
    return make_reject(pair.image, reason, error.what, pair.caption)
