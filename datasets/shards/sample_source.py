"""Where an export reads from: records in memory, a build directory, or shards. All give samples, as often as asked.

A build directory is read from its ``pairs``, ``annotations`` and ``rationales``, which know the places of the original images; its
finished shards, if any, are what shard-based exports copy. Where the build retrieved, only the pairs that it chose are
samples. They come in the order of the pairs' parts. Kept annotations are held in memory; pairs are read part by part.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.build_manifest import is_build, read_manifest, require_manifest_files
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.datasets.images.loading import check_image, open_image
from pairwright.datasets.images.recoding import NO_RECODING, Recoding, recode_image
from pairwright.datasets.record_tables import ANNOTATIONS, EXAMPLES, PAIRS
from pairwright.datasets.records import Annotation, Example, Pair
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import DUPLICATE_KEY_FIX, SIZES_FILE, find_shards, read_shard


@dataclass(frozen=True)
class SampleSource:
    """What an export reads.

    Attributes:
        samples: called for a fresh pass; image bytes are there when they come from shards, else read on demand.
        shards: finished tars with the same contents; empty when there are none.
        manifest: of the build; empty when there is none.
        examples: rows of text tasks that stand alone, from a table of examples; there are no samples then.
    """

    samples: Callable[[], Iterator[Sample]]
    shards: tuple[Path, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


def source_from_records(
    pairs: Sequence[Pair], annotations: Iterable[Annotation] = (), examples: Iterable[Example] = ()
) -> SampleSource:
    """Return records in memory as a source; rejected annotations and examples are left out."""
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
    """Return ``source`` with kept examples added to the samples that have their keys.

    Args:
        source: samples of any kind; shards are written anew, since they change.
        examples: those without a key belong to no sample.
        matched: gets the keys that were found, while the samples are read.
    """
    of_key: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if example.status == "kept" and example.key:
            of_key[example.key].append(example)

    def samples() -> Iterator[Sample]:
        for sample in source.samples():
            added = of_key.get(sample.pair.key, [])
            matched.update(example.key for example in added)
            # Origins of all its texts, where a shard has told them, are told again with the new ones.
            makers = (*sample.makers, *(example.origin for example in added)) if sample.makers else ()
            yield replace(sample, examples=(*sample.examples, *added), makers=makers)

    return SampleSource(samples, manifest=source.manifest)


def join_sources(sources: Sequence[SampleSource]) -> SampleSource:
    """Return several sources of samples as one, in the order in which they are given.

    Raises:
        UsageError: when one of them is a table of examples.
    """
    if any(source.examples for source in sources):
        raise UsageError("a table of rationales has no samples to join. Give it with --rationales.")
    whole = all(source.shards for source in sources)

    def samples() -> Iterator[Sample]:
        return drop_duplicates(sample for source in sources for sample in source.samples())

    return SampleSource(samples, tuple(tar for source in sources for tar in source.shards) if whole else ())


def drop_duplicates(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples.

    Raises:
        InputError: at a key that came before.
    """
    seen: set[str] = set()
    for sample in samples:
        if sample.pair.key in seen:
            raise InputError("a key that came before", where=f"sample {sample.pair.key}", fix=DUPLICATE_KEY_FIX)
        seen.add(sample.pair.key)
        yield sample


def open_sample_source(path: Path) -> SampleSource:
    """Return a build directory, a folder of shards, one tar or a brace pattern as a source; or a table of examples.

    Raises:
        InputError: when ``path`` is none of these.
        StorageError: when the build is unfinished, or a file of it is torn.
    """
    if is_build(path):
        return _from_build(path)
    if path.suffix == ".parquet":
        return SampleSource(lambda: iter(()), examples=tuple(EXAMPLES.read(path)))
    return _from_shards(find_shards(path))


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
    packed = (folder / "shards" / SIZES_FILE).is_file()  # who needs no pictures may have removed them, all together
    require_manifest_files(
        folder, manifest, ("pairs/", "annotations/", "rationales/", "retrieval/keys", *["shards/"] * packed)
    )
    shards = tuple(find_shards(folder / "shards")) if packed else ()

    def samples() -> Iterator[Sample]:
        kept, chosen = _kept_annotations(folder), _retrieved_keys(folder / "retrieval" / "keys.parquet")
        for part in parts:
            pairs = [pair for pair in PAIRS.read(part) if chosen is None or pair.key in chosen]
            wanted = kept.filter(pl.col("key").is_in([pair.key for pair in pairs]))
            rationales = folder / "rationales" / part.name
            examples = EXAMPLES.read(rationales) if rationales.is_file() else ()
            yield from source_from_records(pairs, ANNOTATIONS.records(wanted), examples).samples()

    return SampleSource(samples, shards, manifest)


def _retrieved_keys(path: Path) -> frozenset[str] | None:
    """Return the keys that retrieval chose; None when the build retrieved nothing."""
    if not path.is_file():
        return None
    try:
        return frozenset(pl.read_parquet(path, columns=["key"])["key"])
    except pl.exceptions.PolarsError:
        raise StorageError(f"{path}: not a Parquet file with a column key. Run the build again.") from None


def _kept_annotations(folder: Path) -> pl.DataFrame:
    parts = sorted((folder / "annotations").glob("*.parquet"))
    frames = [ANNOTATIONS.read_frame(part).filter(pl.col("status") == "kept") for part in parts]
    return pl.concat(frames) if frames else ANNOTATIONS.frame([])


def load_image(sample: Sample, recoding: Recoding = NO_RECODING) -> Sample:
    """Return ``sample`` with the bytes of its image, opened where its pair says and recoded as asked.

    Raises:
        InputError: when the image is missing, a URL, or no image.
    """
    locator = sample.pair.image
    if not locator:
        return sample
    raw = sample.image if sample.image is not None else open_image(locator)
    data, ext = recode_image(raw, recoding, locator)
    if recoding.longest_side and data is not raw:
        width, height, _ = check_image(data, where=locator)
        sample = replace(sample, pair=replace(sample.pair, width=width, height=height))
    return replace(sample, image=data, image_ext=ext)
