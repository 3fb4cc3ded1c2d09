"""Copies of images by perceptual hash: found and false alarms by change, and memory for a million images.

    python -m benchmarks.image_copies [--images 2000] [--million 1000000]
    python -m benchmarks.image_copies --clip-model FOLDER [--images 2000]       # by embedding instead

Half of the images are ColorShape scenes, half are drawn (overlapping shapes on a gradient). Known are ``--images`` of
them; each change makes a copy of each. False alarms are counted among as many other images of the same kinds, changed
likewise. Memory is that of a process that holds random hashes of ``--million`` known images with their crops, or of as
many kept images of a pool, and compares 1,000 images.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from benchmarks.process_usage import measured
from pairwright.datasets.colorshape.rendering import render_scene
from pairwright.datasets.colorshape.scenes import make_scene
from pairwright.filters.pairs.near_duplicate_images import NearDuplicateImages
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.image_copies.known_images import HashedImage, KnownImages
from pairwright.indexes.image_copies.perceptual_hash import COPY_DISTANCE, HASH_BYTES, hash_crops, hash_image
from tests.image_variants import CHANGES, draw

HASHES_PER_IMAGE = 10


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--million", type=int, default=1_000_000)
    parser.add_argument("--clip-model", default="", help="folder or hub name, or random")
    parser.add_argument("--hold", choices=["known", "kept"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.clip_model:
        compare_embeddings(chosen.images, chosen.clip_model)
        return
    if chosen.hold:
        hold(chosen.hold, chosen.million)
        return
    compare(chosen.images)
    for what in ("known", "kept"):
        call = ["-m", "benchmarks.image_copies", "--hold", what, "--million", str(chosen.million)]
        run = measured([sys.executable, *call])
        print(f"{run.stdout.strip()}, {run.resident / 2**20:,.0f} MiB resident, {run.anonymous / 2**20:,.0f} anonymous")


def images(count: int, *, others: bool) -> Iterator[Image.Image]:
    """Yield scenes and drawings in turn; ``others`` are of another seed."""
    for at in range(count):
        yield draw(at + 10**6 * others) if at % 2 else render_scene(make_scene(others, at))


def compare(count: int) -> None:
    """Print for each change how many copies are found, and how many other images are taken for copies."""
    crops = [hash_crops(image) for image in images(count, others=False)]
    owners = np.repeat(np.arange(count, dtype=np.int32), [len(each) for each in crops])
    known = KnownImages(tuple(map(str, range(count))), np.concatenate(crops), owners)
    print(
        f"{count:,} known images, {sum(not len(each) for each in crops)} of them featureless; limit {COPY_DISTANCE} bits"
    )
    print(f"{'':<24}{'found':>8}{'scenes':>8}{'drawn':>8}{'whole only':>12}{'wrong':>7}{'false alarms':>14}{'ms':>6}")
    for name, change in {"unchanged": lambda image: image, **CHANGES}.items():
        started = time.process_time()
        hashed = [as_hashed(change(image)) for image in images(count, others=False)]
        spent = (time.process_time() - started) / count * 1000
        named = [each.of for each in known.judge(hashed)]
        right = np.array([of == str(at) for at, of in enumerate(named)])
        first = np.array(
            [
                len(one) and len(copy.hashes) and bits(one[0], copy.hashes[0])
                for one, copy in zip(crops, hashed, strict=True)
            ]
        )
        wrong = sum(bool(of) for of in named) - right.sum()
        alarms = sum(
            each.outcome == "copy"
            for each in known.judge([as_hashed(change(image)) for image in images(count, others=True)])
        )
        shares = [right.mean(), right[::2].mean(), right[1::2].mean(), (first <= COPY_DISTANCE).mean()]
        shown = "".join(f"{share:>{width}.1%}" for share, width in zip(shares, (8, 8, 8, 12), strict=True))
        print(f"{name:<24}{shown}{wrong:>7}{alarms:>14}{spent:>6.1f}", flush=True)


def compare_embeddings(count: int, model: str) -> None:
    """Print for each change how many copies have a cosine above the threshold, and how many other images."""
    with tempfile.TemporaryDirectory() as scratch:
        if model == "random":
            from tests.indexes.tiny_clip import transformers_folder

            transformers_folder(Path(scratch))
            model = scratch
        encoder = ClipEncoder(model, device="cpu")

        def embed(change: Callable[[Image.Image], Image.Image], *, others: bool) -> np.ndarray:
            return encoder.encode_images([change(image) for image in images(count, others=others)])

        known = embed(lambda image: image, others=False)
        threshold = float((embed(lambda image: image, others=True) @ known.T).max())
        print(f"{count:,} known images; threshold {threshold:.4f}\n{'':<24}{'found':>8}{'false alarms':>14}")
        for name, change in {"mirrored": ImageOps.mirror, **CHANGES}.items():
            found = (np.einsum("nd,nd->n", embed(change, others=False), known) > threshold).mean()
            alarms = int(((embed(change, others=True) @ known.T).max(axis=1) > threshold).sum())
            print(f"{name:<24}{found:>8.1%}{alarms:>14}", flush=True)


def as_hashed(image: Image.Image) -> HashedImage:
    """Return the hash of an image in memory."""
    found = hash_image(image)
    return HashedImage(decoded=True) if found is None else HashedImage(found[None], decoded=True)


def bits(one: np.ndarray, other: np.ndarray) -> int:
    """Return in how many bits two hashes differ."""
    return int(np.bitwise_count(one ^ other).sum())


def hold(what: str, count: int) -> None:
    """Hold random hashes, compare 1,000 images with them, and print the time."""
    rng = np.random.default_rng(0)
    asked = [HashedImage(row[None], decoded=True) for row in rng.integers(0, 256, (1000, HASH_BYTES), dtype=np.uint8)]
    if what == "known":
        names = tuple(f"val2017/{at:012d}.jpg" for at in range(count))
        hashes = rng.integers(0, 256, (count * HASHES_PER_IMAGE, HASH_BYTES), dtype=np.uint8)
        known = KnownImages(names, hashes, np.repeat(np.arange(count, dtype=np.int32), HASHES_PER_IMAGE))
        known.judge(asked[:1])  # builds the index
        started = time.process_time()
        assert {each.outcome for each in known.judge(asked)} == {"new"}
        print(f"{count:,} known images with crops: {time.process_time() - started:.2f} ms CPU per image", end="")
        return
    kept = NearDuplicateImages(COPY_DISTANCE)
    for start in range(0, count, 100_000):
        rows = rng.integers(0, 256, (min(100_000, count - start), HASH_BYTES), dtype=np.uint8)
        kept.add(rows, [f"pool/{at:012d}.jpg" for at in range(start, start + len(rows))])
    started = time.process_time()
    assert not any(kept.find_or_add(each.hashes, "x") for each in asked)
    print(f"{count:,} kept images: {time.process_time() - started:.2f} ms CPU per image", end="")


if __name__ == "__main__":
    main()
