"""Stages ``shards`` (WebDataset shards of pairs, images and kept texts, one job per shard) and ``sizes``.

Which pairs go into a shard is planned from the order of the parts and the sizes of their source images, so that shards
do not depend on the number of workers. An image that cannot be read is a rejected row and leaves its shard smaller.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairwright.datasets.build_manifest import shard_paths
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import InputError, StorageError
from pairwright.datasets.images.loading import UnusableImageError, is_stored_file, is_url
from pairwright.datasets.images.recoding import Recoding
from pairwright.datasets.progress import track
from pairwright.datasets.record_tables import EXAMPLES, PAIRS, REJECTS
from pairwright.datasets.records import Annotation, Example, Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.datasets.remote.store_path import StoreListings
from pairwright.datasets.shards.content_counts import ContentCounts, add_counts
from pairwright.datasets.shards.index import index_path
from pairwright.datasets.shards.layout import (
    CHECKSUMS_FILE,
    SIZES_FILE,
    ShardInfo,
    ShardSet,
    read_sizes,
    shard_name,
    summarize_shards,
)
from pairwright.datasets.shards.sample_source import load_image
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.stored_folder import StoredFolder
from pairwright.datasets.shards.writing import MAX_SHARD_BYTES, append_shards, finish_shards, write_shard
from pairwright.flows.stages.generator_stages import generating_stages, selection_of
from pairwright.flows.stages.image_states import image_bytes, survey_images
from pairwright.flows.state.build_versions import finished_manifest
from pairwright.flows.state.layout import kept_annotations, part_name, rationales_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, OutputFile, Receipt
from pairwright.flows.state.selected_pairs import PairSelection, selected_frame, selected_images
from pairwright.flows.state.shard_store import forget_lost_outputs, stored_output

if TYPE_CHECKING:
    from pairwright.flows.config.sections import ShardsSection
    from pairwright.flows.stages.definition import StageRun


@dataclass(frozen=True)
class Slice:
    """The selected pairs of a part from position ``start`` to ``stop``."""

    part: str
    start: int
    stop: int


_READ_AHEAD = 32  # images of a store at a time
TEXT_BYTES = 4_096  # of a sample without its image, about: texts as JSON, headers, padding
_SizesByPart = Iterable[tuple[str, Sequence[int]]]


async def shards_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the jobs of stage ``shards``, one per shard; an increment numbers them after the existing shards."""
    config = run.config
    forget_lost_outputs(run.root, run.name, config.shards.to)
    stages = tuple(stage.name for stage in generating_stages(config))
    packing = Packing(stages, config.shards, selection_of(config), config.rationales is not None)
    states, sizes = await _images_of_parts(run, packing)
    plan = plan_shards(sizes, config.shards.samples, config.shards.megabytes * 2**20)
    return [
        run.job(
            *(write_one_shard, number, slices, packing),
            part=part_name(number),
            state=" ".join(states[each.part] for each in slices),
        )
        for number, slices in enumerate(plan, run.base.manifest["shards"]["files"] if run.base else 0)
    ]


async def _images_of_parts(run: "StageRun", packing: "Packing") -> tuple[dict[str, str], _SizesByPart]:
    """Return the state of the images of each part, and the bytes of each of its samples, about."""
    if not packing.section.images:
        counts = {part: len(selected_images(run.root, part, packing.selection)) for part in run.parts}
        return dict.fromkeys(counts, ""), ((part, [TEXT_BYTES] * count) for part, count in counts.items())
    found = await survey_images(run, packing.selection, with_sizes=True)
    sizes = ((part.part, (part.sizes.astype(np.uint64) + TEXT_BYTES).tolist()) for part in found)
    return {part.part: part.state for part in found}, sizes


def sizes_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``sizes`` in a full build; it reads what the jobs of the shards hand over, not the shards."""
    to = run.config.shards.to
    forget_lost_outputs(run.root, run.name, to)
    return [run.job(write_shard_sizes, written_shards(run.receipts("shards")), to)]


def written_shards(receipts: Sequence[Receipt]) -> tuple[ShardInfo, ...]:
    """Return what the jobs of stage ``shards`` wrote."""
    return tuple(ShardInfo(**receipt.handoff["shard"]) for receipt in receipts)


def plan_shards(sizes_by_part: _SizesByPart, samples: int, max_bytes: int = MAX_SHARD_BYTES) -> list[tuple[Slice, ...]]:
    """Return the slices of parts that each shard contains.

    Args:
        sizes_by_part: (part, bytes of each selected pair) in order.
        samples: per shard, at most.
        max_bytes: per shard; a single larger sample gets a shard of its own.
    """
    shards: list[list[Slice]] = []
    count, size = samples, 0
    for part, sizes in sizes_by_part:
        start = 0
        for end, each in enumerate(sizes):
            if count == samples or (count and size + each > max_bytes):
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
    """The contents of shards: the stages whose texts they have, the settings, the pairs, and whether rationales."""

    stages: tuple[str, ...]
    section: "ShardsSection"
    selection: PairSelection
    rationales: bool = False


def write_one_shard(root: Path, number: int, slices: Sequence[Slice], packing: Packing) -> JobResult:
    """Write one shard, and send it to the store if there is one; the unit is a pair."""
    path = root / "shards" / shard_name(number)
    rejects: list[Reject] = []
    contents = ContentCounts()
    info = write_shard(_counted(_samples(root, slices, packing, rejects), contents), path)
    rejected = rejected_path(root, "shards", path.stem)
    REJECTS.write(rejects, rejected)
    reasons = dict(sorted(Counter(row.reason for row in rejects).items()))
    counts = Counts("pair", info.count + len(rejects), info.count, reasons)
    handoff = {"shard": asdict(info), "contents": contents.as_dict()}
    if not packing.section.to:
        return JobResult([path, index_path(path), rejected], counts, handoff=handoff)
    stored = _send(packing.section.to, info, path)
    return JobResult([rejected], counts, handoff=handoff, stored=stored)


def _send(url: str, info: ShardInfo, path: Path) -> list[OutputFile]:
    """Send a shard and its index to a store, remove them here, and return them as outputs."""
    index = index_path(path)
    outputs = [
        stored_output(f"shards/{path.name}", info.bytes, info.sha256, url),
        stored_output(f"shards/{index.name}", index.stat().st_size, hash_file(index), url),
    ]
    try:
        StoredFolder(url).send(path)
    finally:
        path.unlink()
        index.unlink()
    return outputs


def _counted(samples: Iterable[Sample], contents: ContentCounts) -> Iterator[Sample]:
    """Yield the samples, and count them as a reader of the shard would."""
    for sample in samples:
        contents.add(sample if sample.image is not None else replace(sample, pair=replace(sample.pair, image="")))
        yield sample


def shard_contents(receipts: Sequence[Receipt]) -> dict[str, Any]:
    """Return the counts of what the jobs of stage ``shards`` packed, as `count_contents` of the shards would."""
    return reduce(add_counts, (receipt.handoff["contents"] for receipt in receipts), ContentCounts().as_dict())


def sample_bytes(image: str, section: "ShardsSection", listings: StoreListings | None = None) -> int:
    """Return the approximate bytes of a sample with this image."""
    return TEXT_BYTES + (image_bytes(image, listings) if section.images else 0)


def write_shard_sizes(root: Path, shards: Sequence[ShardInfo], to: str) -> JobResult:
    """Write ``sizes.json`` and the checksums of all shards; the unit is a sample.

    Args:
        root: the build directory.
        shards: all of them.
        to: URL of the folder of a store that has the shards; empty if they are here.
    """
    folder = root / "shards"
    written = finish_shards(folder, shards, kept=not to)
    if not written.count:
        raise InputError(
            "no image could be read",
            where=str(folder),
            fix="See rejected/shards-*.parquet for the reasons, or set `images: false` under shards to pack texts only",
        )
    return sizes_result(written, to, Counts("sample", written.count, written.count))


def sizes_result(written: ShardSet, to: str, counts: Counts) -> JobResult:
    """Return the result of stage ``sizes`` after its files are written; send them to the store if there is one."""
    folder = written.folder
    outputs = [folder / CHECKSUMS_FILE, folder / SIZES_FILE]
    if not to:
        return JobResult(outputs, counts, summarize_shards(written))
    stored = [stored_output(f"shards/{each.name}", each.stat().st_size, hash_file(each), to) for each in outputs]
    StoredFolder(to).finish(folder, written.shards)
    for each in outputs:
        each.unlink()
    with suppress(OSError):  # files that no job of this build wrote, which are removed at its end
        folder.rmdir()
    sizes = {shard.name: shard.count for shard in written.shards}
    return JobResult([], counts, {**summarize_shards(written), "url": to, "sizes": sizes}, stored=stored)


def _samples(root: Path, slices: Sequence[Slice], packing: Packing, rejects: list[Reject]) -> Iterator[Sample]:
    recoding = Recoding(packing.section.image_format, packing.section.longest_side)
    for piece in slices:
        frame = selected_frame(root, piece.part, packing.selection)[piece.start : piece.stop]
        pairs = PAIRS.records(frame)
        keys = [pair.key for pair in pairs]
        texts: dict[str, list[Annotation]] = {}
        for annotation in kept_annotations(root, piece.part, packing.stages, keys):
            texts.setdefault(annotation.key, []).append(annotation)
        rationales: dict[str, list[Example]] = {}
        if packing.rationales:
            examples = EXAMPLES.read_frame(rationales_path(root, piece.part)).filter(pl.col("key").is_in(keys))
            for example in EXAMPLES.records(examples):
                rationales.setdefault(example.key, []).append(example)
        plain = [Sample(pair, tuple(texts.get(pair.key, ())), tuple(rationales.get(pair.key, ()))) for pair in pairs]
        loaded = _with_images(plain, recoding) if packing.section.images else iter(plain)
        for pair, sample in zip(pairs, track(loaded, "packing", len(pairs), "samples"), strict=True):
            if isinstance(sample, InputError):
                rejects.append(_reject_image(pair, sample))
            else:
                yield sample


def _with_images(samples: Sequence[Sample], recoding: Recoding) -> Iterator[Sample | InputError]:
    """Yield the samples with their images, or why there is none; images that are files of a store are read ahead."""

    def load(sample: Sample) -> Sample | InputError:
        try:
            return load_image(sample, recoding)
        except InputError as error:
            return error

    if not any(is_stored_file(sample.pair.image) for sample in samples):
        yield from map(load, samples)
        return
    with ThreadPoolExecutor(_READ_AHEAD) as pool:
        for start in range(0, len(samples), _READ_AHEAD):
            yield from pool.map(load, samples[start : start + _READ_AHEAD])


def _reject_image(pair: Pair, error: InputError) -> Reject:
    other = "not_fetched" if is_url(pair.image) else "bad_image"
    reason = error.reason if isinstance(error, UnusableImageError) else other
    return make_reject(pair.image, reason, error.what, pair.caption)


def new_sizes_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``sizes`` in an incremental build."""
    base = run.increment_base
    written, to = written_shards(run.receipts("shards")), run.config.shards.to
    forget_lost_outputs(run.root, run.name, to)
    image_ext = base.manifest["shards"]["image_ext"]
    return [run.job(write_sizes, base.root, image_ext, written, to, state=base.state)]


def write_sizes(root: Path, home: Path, image_ext: str, new: Sequence[ShardInfo], to: str) -> JobResult:
    """Write ``sizes.json`` and the checksums of all shards, old and new; the unit is a new sample.

    Args:
        root: the folder of the new shards.
        home: the build directory.
        image_ext: of the old shards.
        new: the new shards.
        to: URL of the folder of a store that has the shards; empty if they are here.
    """
    written = append_shards(root / "shards", _finished_shards(home, image_ext), new, kept=not to)
    samples = sum(shard.count for shard in new)
    return sizes_result(written, to, Counts("sample", samples, samples))


def _finished_shards(home: Path, image_ext: str) -> list[ShardInfo]:
    """Return the shards of the finished version in ``home``, by its manifest and sizes."""
    manifest = finished_manifest(home)
    files, stored = manifest["files"], manifest["shards"].get("sizes")
    names = [tar.name for tar in shard_paths(home, files)]
    sizes = read_sizes(home / "shards" / SIZES_FILE) if stored is None else stored
    if sizes is None or not sizes.keys() >= set(names):
        raise StorageError(f"{home / 'shards' / SIZES_FILE}: does not list the shards. Build with --full.")
    entries = [(name, files[f"shards/{name}"]) for name in names]
    return [ShardInfo(name, sizes[name], each["bytes"], each["sha256"], image_ext) for name, each in entries]
