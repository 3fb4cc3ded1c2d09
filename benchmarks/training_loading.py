"""Whether loading keeps a training step fed: loading alone, the step alone on tensors at hand, and both together.

    python benchmarks/training_loading.py [--workers 0 2] [--size vit-b-32] [--device cuda] [--samples 2000] [--side 480]

Samples hold a noisy JPEG of 480 x 480 (noise: the worst case for its size), a caption and three hard negatives. Images are
cropped at random to 224 pixels. A step is CLIP's loss plus that of the row's own negatives (FSC-CLIP, eq. 3-4), forward,
backward and AdamW (bfloat16 on a GPU). *Waiting* is the share of the time that the step waits for the next batch; its first
batch, which starts the workers, is left out, and everything is in the page cache. The first line also tells processor time,
which other programs on the machine change little: samples a second of a step, times that of loading, are the cores needed.
"""

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from shards import make_sample, noisy_jpeg

from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import write_shards
from pairwright.training.loading.batches import PairBatch
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.loader import LoadingOptions, ShardLoader
from pairwright.training.loading.pairs import PairCollator
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer
from pairwright.training.models.random_clip import ClipSizes, new_clip
from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.hard_negatives import hard_negative_loss
from pairwright.training.tiny_clip import write_word_tokenizer

NEGATIVES = 3
SIZES = {
    "small": ClipSizes(image=224, patch=56, width=64, layers=2, heads=2, dim=64, context=77),
    "vit-b-32": ClipSizes(image=224, patch=32, width=768, layers=12, heads=12, dim=512, context=77),
}


def sample(number: int, image: bytes) -> Sample:
    """Return a sample with three negatives."""
    made = make_sample(number, image)
    of = next(one for one in made.annotations if one.kind == "hard_negative")
    texts = [f"a small green star to the {place} of {number} large red circles" for place in ("left", "right", "top")]
    return replace(made, annotations=tuple(replace(of, id=f"{of.id[:-1]}{n}", text=t) for n, t in enumerate(texts)))


def make_step(size: str, tokenizer: str, device: torch.device) -> Callable[[PairBatch], None]:
    """Return a function that trains one step and waits for it."""
    model = new_clip(load_tokenizer(tokenizer), SIZES[size]).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step(batch: PairBatch) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            images = model.encode_images(batch.images)
            every = torch.cat([batch.texts[:, None], batch.negatives], dim=1)
            texts = model.encode_texts(every.flatten(0, 1)).view(*every.shape[:2], -1)
            own, edited = texts[:, 0], texts[:, 1:]
            loss = clip_loss(images, own, model.scale)
            loss = loss + hard_negative_loss(images, own, edited, batch.negatives_mask, model.scale)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return step


def endless(loader: ShardLoader[PairBatch]) -> Iterator[PairBatch]:
    """Yield batches epoch after epoch."""
    while True:
        yield from loader


def timed(batches: Iterator[PairBatch], step: Callable[[PairBatch], None], steps: int) -> tuple[float, float]:
    """Return seconds in all, and of these spent waiting for batches."""
    step(next(batches))
    began, waiting = time.perf_counter(), 0.0
    for _ in range(steps):
        asked = time.perf_counter()
        batch = next(batches)
        waiting += time.perf_counter() - asked
        step(batch)
    return time.perf_counter() - began, waiting


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--side", type=int, default=480, help="of the JPEGs, in pixels")
    parser.add_argument("--crop", type=float, default=0.9)
    asked = parser.parse_args()
    device = torch.device(asked.device)
    with tempfile.TemporaryDirectory() as folder:
        image = noisy_jpeg(asked.side)
        made = [sample(number, image) for number in range(asked.samples)]
        data = write_shards(made, Path(folder) / "shards", max_samples=500).pattern
        captions = [text for one in made for text in (one.pair.caption, *(a.text for a in one.annotations))]
        words = str(Path(folder) / "tokenizer")
        write_word_tokenizer(captions, Path(words))
        step = make_step(asked.size, words, device)

        def loader(workers: int) -> ShardLoader[PairBatch]:
            options = LoadingOptions(asked.batch, ends="repeat", workers=workers, device=asked.device)
            return ShardLoader(
                data, PairCollator(negatives=NEGATIVES), options, TextOptions(words), ImageOptions(crop=asked.crop)
            )

        at_hand = next(iter(loader(0)))
        alone, _ = timed(itertools.repeat(at_hand), step, asked.steps)
        began, made_by_one = time.process_time(), loader(0)
        for _ in itertools.islice(made_by_one, asked.steps):
            pass
        cost = (time.process_time() - began) / (asked.batch * min(asked.steps, len(made_by_one)))
        where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{os.cpu_count()} CPUs"
        print(
            f"{asked.size}, batches of {asked.batch}, {NEGATIVES} negatives, {where}; {len(image) / 1024:.0f} KiB an image"
        )
        print(
            f"step alone: {asked.batch * asked.steps / alone:,.0f} samples/s; loading: {1000 * cost:.1f} ms of a core\n"
        )
        print("| workers | loading alone, samples/s | training, samples/s | of the step alone | waiting |")
        print("| --- | --- | --- | --- | --- |")
        for workers in asked.workers:
            loading, _ = timed(endless(loader(workers)), lambda _: None, asked.steps)
            both, waiting = timed(endless(loader(workers)), step, asked.steps)
            rates = [f"{asked.batch * asked.steps / seconds:,.0f}" for seconds in (loading, both)]
            print(f"| {workers} | {' | '.join(rates)} | {alone / both:.0%} | {waiting / both:.0%} |", flush=True)


if __name__ == "__main__":
    main()
