"""Sample sources of exports: records in memory, a build directory, or shards; each can be iterated repeatedly.

A build directory is read from its ``pairs``, ``annotations`` and ``rationales``, which have the locators of the original
images. Exports that embed images take them from its finished shards, if any, and shard-based exports copy these. If the
build retrieved pairs, only those are samples, in the order of the pairs' parts; pairs whose image it could not pack are
none. Kept annotations are held in memory;
pairs are read part by part.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.build_manifest import is_build, read_manifest, require_manifest_files, shard_paths
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.images.loading import check_image, open_image, select_image_extensions
from pairwright.datasets.images.recoding import NO_RECODING, Recoding, recode_image
from pairwright.datasets.record_tables import ANNOTATIONS, EXAMPLES, PAIRS, REJECTS
from pairwright.datasets.records import Annotation, Example, Pair
from pairwright.datasets.remote.reading import open_table
from pairwright.datasets.shards.index import list_contents
from pairwright.datasets.shards.layout import SIZES_FILE, find_shards
from pairwright.datasets.shards.reading import DUPLICATE_KEY_FIX, read_members, read_shard
from pairwright.datasets.shards.samples import Sample, SampleImage
from pairwright.datasets.version_switch import MANIFEST_FILE


@dataclass(frozen=True)
class SampleSource:
    """The input of an export.

    Attributes:
        samples: starts a new pass; samples from shards have image bytes, others are read on demand.
        shards: finished tars with the same contents in the same order; empty if there are none.
        images_in_shards: whether the shards have images that ``samples`` only locate.
        manifest: of the build; empty if there is none.
        examples: rows of text tasks, from a table of examples; there are no samples then.
    """

    samples: Callable[[], Iterator[Sample]]
    shards: tuple[Path, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    images_in_shards: bool = False

    def samples_with_images(self) -> Iterator[Sample]:
        """Start a new pass over the samples, with the images of the shards if there are any.

        Samples that the shards lack, as their image was rejected, are omitted.

        Raises:
            StorageError: if the shards have other samples, or another order.
        """
        if not self.images_in_shards:
            yield from self.samples()
            return
        packed = chain.from_iterable(map(read_members, self.shards))
        key, members = next(packed, ("", {}))
        for sample in self.samples():
            if sample.pair.key == key:
                ext = next(iter(select_image_extensions(members)), "")
                yield replace(sample, image=members.get(ext), image_ext=ext)
                key, members = next(packed, ("", {}))
        if key:
            raise StorageError(f"{self.shards[0].parent}: sample {key} is not in the order of pairs/. Build again.")


def source_from_records(
    pairs: Sequence[Pair], annotations: Iterable[Annotation] = (), examples: Iterable[Example] = ()
) -> SampleSource:
    """Return records in memory as a source; rejected annotations and examples are omitted."""
    texts: dict[str, list[Annotation]] = defaultdict(list)
    rationales: dict[str, list[Example]] = defaultdict(list)
    for annotation in annotations:
        if annotation.status == "kept":
            texts[annotation.key].append(annotation)
    for example in examples:
        if example.status == "kept" and example.key:
            rationales[example.key].append(example)

    def samples() -> Iterator[Sample]:
        for pair in pairs:
            yield Sample(pair, tuple(texts.get(pair.key, ())), tuple(rationales.get(pair.key, ())))

    return SampleSource(samples)


def add_examples(source: SampleSource, examples: Iterable[Example], matched: set[str]) -> SampleSource:
    """Return ``source`` with kept examples added to the samples with their keys.

    Args:
        source: samples of any kind; shards are written again, as they change.
        examples: those without a key match no sample.
        matched: collects the matched keys while samples are read.
    """
    of_key: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if example.status == "kept" and example.key:
            of_key[example.key].append(example)

    def samples() -> Iterator[Sample]:
        for sample in source.samples():
            added = of_key.get(sample.pair.key, [])
            matched.update(example.key for example in added)
            # Makers recorded in a shard are listed again together with the new ones.
            makers = (*sample.makers, *(example.origin for example in added)) if sample.makers else ()
            yield replace(sample, examples=(*sample.examples, *added), makers=makers)

    return SampleSource(samples, manifest=source.manifest)


def join_sources(sources: Sequence[SampleSource]) -> SampleSource:
    """Return several sources of samples as one, in the given order.

    Raises:
        UsageError: if one of them is a table of examples.
    """
    if any(source.examples for source in sources):
        raise UsageError("a table of rationales has no samples to join. Give it with --rationales.")
    whole = all(source.shards for source in sources)

    def samples() -> Iterator[Sample]:
        return drop_duplicates(sample for source in sources for sample in source.samples())

    return SampleSource(samples, tuple(tar for source in sources for tar in source.shards) if whole else ())


def drop_duplicates(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples, checking that keys are unique.

    Raises:
        InputError: at a repeated key.
    """
    seen: set[str] = set()
    for sample in samples:
        if sample.pair.key in seen:
            raise InputError("a repeated key", where=f"sample {sample.pair.key}", fix=DUPLICATE_KEY_FIX)
        seen.add(sample.pair.key)
        yield sample


def omit_several_images(source: SampleSource, rejected: set[str]) -> SampleSource:
    """Return ``source`` without the samples of several images, for outputs whose rows have one.

    Args:
        source: shards with such samples are written again, others may be copied.
        rejected: collects the keys of these samples while samples are read.
    """

    def samples() -> Iterator[Sample]:
        for sample in source.samples():
            if sample.further_images:
                rejected.add(sample.pair.key)
            else:
                yield sample

    # Shards of a build, which has a manifest, have pairs: one image each.
    several = not source.manifest and any(
        contents.further_images for tar in source.shards for contents in list_contents(tar)
    )
    shards = () if several else source.shards
    return replace(source, samples=samples, shards=shards)


def open_sample_source(path: Path) -> SampleSource:
    """Return a build, one of its published versions, a folder of shards, a tar, a pattern or a table of examples.

    Raises:
        InputError: if ``path`` is none of these.
        StorageError: if the build is unfinished, or one of its files is damaged.
    """
    if is_build(path):
        return _from_build(path)
    if path.suffix == ".parquet":
        return SampleSource(lambda: iter(()), examples=tuple(EXAMPLES.read(path)))
    if (path / MANIFEST_FILE).is_file() and (path / "shards" / SIZES_FILE).is_file():
        return _from_published(path)
    return _from_shards(find_shards(path))


def _from_published(folder: Path) -> SampleSource:
    manifest = read_manifest(folder)
    require_manifest_files(folder, manifest, ("shards/",))
    return replace(_from_shards(find_shards(folder / "shards")), manifest=manifest)


def _from_shards(tars: Sequence[Path]) -> SampleSource:
    def samples() -> Iterator[Sample]:
        for tar in tars:
            yield from read_shard(tar)

    return SampleSource(samples, tuple(tars))


def _from_build(folder: Path) -> SampleSource:
    manifest = read_manifest(folder)
    parts = sorted((folder / "pairs").glob("*.parquet"))
    if not parts:
        raise InputError("no Parquet parts in pairs/", where=str(folder), fix="Finish the build first.")
    stored = bool(manifest.get("shards", {}).get("url"))
    # Shards on disk are optional after a build and may be deleted.
    packed = not stored and (folder / "shards" / SIZES_FILE).is_file()
    require_manifest_files(
        folder, manifest, ("pairs/", "annotations/", "rationales/", "retrieval/keys", *["shards/"] * packed)
    )
    shards = tuple(
        find_shards(folder / "shards") if packed else shard_paths(folder, manifest["files"]) if stored else ()
    )

    def samples() -> Iterator[Sample]:
        kept, chosen = _kept_annotations(folder), _retrieved_keys(folder / "retrieval" / "keys.parquet")
        unpacked = _rejected_images(folder)
        for part in parts:
            chosen_pairs = (pair for pair in PAIRS.read(part) if chosen is None or pair.key in chosen)
            pairs = [pair for pair in chosen_pairs if pair.image not in unpacked]
            wanted = kept.filter(pl.col("key").is_in([pair.key for pair in pairs]))
            rationales = folder / "rationales" / part.name
            examples = EXAMPLES.read(rationales) if rationales.is_file() else ()
            yield from source_from_records(pairs, ANNOTATIONS.records(wanted), examples).samples()

    has_images = bool(shards and manifest.get("contents", {}).get("with_image"))
    return SampleSource(samples, shards, manifest, images_in_shards=has_images)


def _retrieved_keys(path: Path) -> frozenset[str] | None:
    """Return the keys that retrieval selected; None if the build retrieved nothing."""
    if not path.is_file():
        return None
    try:
        return frozenset(pl.read_parquet(open_table(path), columns=["key"])["key"])
    except pl.exceptions.PolarsError:
        raise StorageError(f"{path}: not a Parquet file with a column key. Run the build again.") from None


def count_unpacked_images(path: Path) -> int:
    """Return how many images a build could not pack, whose pairs are no samples; 0 for other inputs."""
    return len(_rejected_images(path))


def _rejected_images(folder: Path) -> frozenset[str]:
    """Return the images that the build could not pack; their pairs are no samples."""
    rejected = [REJECTS.read_frame(path) for path in (folder / "rejected").glob("shards-*.parquet")]
    return frozenset(image for frame in rejected for image in frame["place"] if image)


def _kept_annotations(folder: Path) -> pl.DataFrame:
    parts = sorted((folder / "annotations").glob("*.parquet"))
    frames = [ANNOTATIONS.read_frame(part).filter(pl.col("status") == "kept") for part in parts]
    return pl.concat(frames) if frames else ANNOTATIONS.frame([])


def load_image(sample: Sample, recoding: Recoding = NO_RECODING) -> Sample:
    """Return ``sample`` with the bytes of its images, read by their locators and recoded.

    Raises:
        InputError: if an image is missing, a URL, or invalid.
    """
    locator = sample.pair.image
    if not locator:
        return sample
    raw = sample.image if sample.image is not None else open_image(locator)
    data, ext = recode_image(raw, recoding, locator)
    if recoding.longest_side and data is not raw:
        width, height, _ = check_image(data, where=locator)
        sample = replace(sample, pair=replace(sample.pair, width=width, height=height))
    further = tuple(load_sample_image(each, recoding) for each in sample.further_images)
    return replace(sample, image=data, image_ext=ext, further_images=further)


def load_sample_image(image: SampleImage, recoding: Recoding = NO_RECODING) -> SampleImage:
    """Return an image of a sample with its bytes; errors as in `load_image`."""
    raw = image.data if image.data is not None else open_image(image.locator)
    return SampleImage(image.locator, *recode_image(raw, recoding, image.locator))
