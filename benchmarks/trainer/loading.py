"""Whether loading keeps a training step fed: loading alone, the step alone on tensors at hand, and both together.

    python -m benchmarks.trainer.loading [--workers 0 2] [--size vit-b-32] [--device cuda] [--samples 2000] [--side 480]
    python -m benchmarks.trainer.loading --workers [--openclip FOLDER] [--image photo]

Samples hold a JPEG of 480 x 480 (noise, the worst case for its size, or one with the spectrum of photos), a caption and
three hard negatives. Images are
cropped at random to 224 pixels. A step is CLIP's loss plus that of the row's own negatives (FSC-CLIP, eq. 3-4), forward,
backward and AdamW (bfloat16 on a GPU). *Waiting* is the share of the time that the step waits for the next batch; its first
batch, which starts the workers, is left out, and everything is in the page cache. The first line also tells processor time,
which other programs on the machine change little: samples a second of a step, times that of loading, are the cores needed.

Without numbers of workers: processor time per sample in one process, in turns, medians of the rounds; torch's large tensors
lie in huge pages, as those of `pairwright train` do. With ``--openclip``, a folder of packages that has open_clip_torch and what it imports (``pip install --no-deps --target
FOLDER open_clip_torch torchvision timm ftfy wcwidth pandas python-dateutil pytz six``), its own `get_wds_dataset` loads the
same shards too. It reads captions without negatives, and returns normalized float32 images; ours includes the negatives, and is shown with and without
the normalization, which on a GPU happens there. *Images alone* is what decoding, cropping and resizing take in
the same turns: the least that a loader with this decoder and this kernel can take.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # read by torch at its first tensor
import torch

from benchmarks.shards import make_sample, noisy_jpeg
from benchmarks.trainer.image_decoders import photo_like_jpeg
from pairwright.datasets.shards.index import scan_samples
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import write_shards
from pairwright.training.loading.batches import PairBatch, PairCollator
from pairwright.training.loading.image_transforms import ImageOptions, load_pixels
from pairwright.training.loading.loader import LoadingOptions, ShardLoader
from pairwright.training.loading.shard_index import index_shards
from pairwright.training.loading.tokenization import TextOptions, load_tokenizer
from pairwright.training.objectives.contrastive import clip_loss
from pairwright.training.objectives.hard_negatives import hard_negative_loss
from pairwright.training.tiny_clip import ClipSizes, new_clip, write_word_tokenizer

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
            texts = model.encode_texts(batch.texts.flatten(0, 1)).view(*batch.mask.shape, -1)
            own, edited = texts[:, 0], texts[:, 1:]
            loss = clip_loss(images, own, model.scale)
            loss = loss + hard_negative_loss(images, own, edited, batch.mask[:, 1:], model.scale)
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


def packed(loader: ShardLoader[PairBatch]) -> Iterator[Any]:
    """Yield the batches as workers send them, epoch after epoch: what a core that loads for a GPU does."""
    for epoch in itertools.count():
        for step in range(len(loader)):
            yield loader.batches[epoch, step]


def images_alone(image: bytes, batch: int, crop: float) -> Iterator[None]:
    """Decode, crop and resize an image as often as a batch has rows, again and again."""
    options, rng = ImageOptions(crop=crop), Random(1)
    while True:
        for _ in range(batch):
            load_pixels(image, options, rng, "")
        yield


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


def openclip_batches(folder: str, data: str, samples: int, batch: int) -> Iterator[Any]:
    """Yield the batches of OpenCLIP's own pipeline, epoch after epoch."""
    sys.path.insert(0, folder)
    # Its compiled operators do not load beside a CPU build of torch; importing its transforms asks for their names only.
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from open_clip import get_tokenizer, image_transform
    from open_clip_train import data as pipeline

    # It knows no end marks of tars, which webdataset yields since 0.2.90.
    pipeline.tar_file_expander = partial(pipeline.tar_file_expander, eof_value=None)

    options = SimpleNamespace(
        train_data=data,
        train_num_samples=samples,
        train_data_upsampling_factors=None,
        dataset_resampled=False,
        seed=0,
        workers=0,
        world_size=1,
        batch_size=batch,
    )
    preprocess = image_transform(224, is_train=True)
    data_info = pipeline.get_wds_dataset(options, preprocess, is_train=True, tokenizer=get_tokenizer("ViT-B-32"))
    while True:
        yield from data_info.dataloader


def report_start(data: str, samples: int) -> None:
    """Print what the start of a loader costs: with the indexes beside the shards, and by scanning the shards."""
    folder = Path(data).parent
    size = sum(path.stat().st_size for path in folder.glob("*.index"))
    began = time.process_time()
    index_shards(data, PairCollator(negatives=NEGATIVES).selection)
    indexed = time.process_time() - began
    began = time.process_time()
    for path in sorted(folder.glob("*.tar")):
        scan_samples(path)
    scanned = time.process_time() - began
    print(
        f"start, a thousand samples: {1e6 * indexed / samples:.2f} ms with indexes of {size / samples:.1f} bytes a sample, "
        f"{1e6 * scanned / samples:.1f} ms by scanning\n"
    )


def compare(loaders: dict[str, Iterator[Any]], batch: int, steps: int, rounds: int) -> None:
    """Print the processor time per sample of several loaders, in turns."""
    taken = {name: list[float]() for name in loaders}
    for batches in loaders.values():
        next(batches)
    for _ in range(rounds):
        for name, batches in loaders.items():
            began = time.process_time()
            for _ in range(steps):
                next(batches)
            taken[name].append(1000 * (time.process_time() - began) / (batch * steps))
    slowest = max(map(statistics.median, taken.values()))
    print("Medians of the rounds, in brackets the best round.\n")
    print("| loader | ms of a core a sample | samples/s a core | times the slowest |\n| --- | ---: | ---: | ---: |")
    for name, times in taken.items():
        cost = statistics.median(times)
        least = min(times)
        print(
            f"| {name} | {cost:.2f} ({least:.2f}) | {1000 / cost:,.0f} ({1000 / least:,.0f}) | {slowest / cost:.2f} |"
        )


def measure_training(asked: argparse.Namespace, loader: Callable[[int], ShardLoader[PairBatch]], words: str) -> None:
    """Print the table of loading alone, the step alone, and both together, by workers."""
    device = torch.device(asked.device)
    step = make_step(asked.size, words, device)
    at_hand = next(iter(loader(0)))
    alone, _ = timed(itertools.repeat(at_hand), step, asked.steps)
    began, made_by_one = time.process_time(), loader(0)
    for _ in itertools.islice(made_by_one, asked.steps):
        pass
    cost = (time.process_time() - began) / (asked.batch * min(asked.steps, len(made_by_one)))
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{os.cpu_count()} CPUs"
    print(f"{asked.size}, batches of {asked.batch}, {NEGATIVES} negatives, {where}")
    print(f"step alone: {asked.batch * asked.steps / alone:,.0f} samples/s; loading: {1000 * cost:.1f} ms of a core\n")
    print("| workers | loading alone, samples/s | training, samples/s | of the step alone | waiting |")
    print("| --- | --- | --- | --- | --- |")
    for workers in asked.workers:
        loading, _ = timed(endless(loader(workers)), lambda _: None, asked.steps)
        both, waiting = timed(endless(loader(workers)), step, asked.steps)
        rates = [f"{asked.batch * asked.steps / seconds:,.0f}" for seconds in (loading, both)]
        print(f"| {workers} | {' | '.join(rates)} | {alone / both:.0%} | {waiting / both:.0%} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 2])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--side", type=int, default=480, help="of the JPEGs, in pixels")
    parser.add_argument("--crop", type=float, default=0.9)
    parser.add_argument("--image", choices=("noise", "photo"), default="noise")
    parser.add_argument("--openclip", default="", help="folder of packages with open_clip_torch")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    """Print the table."""
    asked = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        image = photo_like_jpeg(asked.side) if asked.image == "photo" else noisy_jpeg(asked.side)
        made = [sample(number, image) for number in range(asked.samples)]
        data = write_shards(made, Path(folder) / "shards", max_samples=500).pattern
        captions = [text for one in made for text in (one.pair.caption, *(a.text for a in one.annotations))]
        words = str(Path(folder) / "tokenizer")
        write_word_tokenizer(captions, Path(words))

        def loader(workers: int) -> ShardLoader[PairBatch]:
            options = LoadingOptions(asked.batch, ends="repeat", workers=workers, device=asked.device)
            return ShardLoader(
                data, PairCollator(negatives=NEGATIVES), options, TextOptions(words), ImageOptions(crop=asked.crop)
            )

        report_start(data, asked.samples)
        print(f"{asked.image}, {len(image) / 1024:.0f} KiB an image, batches of {asked.batch}\n")
        if asked.workers:
            measure_training(asked, loader, words)
            return
        torch.set_num_threads(1)
        loaders = {
            "pairwright": endless(loader(0)),
            "pairwright, images as bytes": packed(loader(0)),
            "images alone": images_alone(image, asked.batch, asked.crop),
        }
        if asked.openclip:
            loaders["OpenCLIP"] = openclip_batches(asked.openclip, data, asked.samples, asked.batch)
        compare(loaders, asked.batch, asked.steps, asked.rounds)


if __name__ == "__main__":
    main()
