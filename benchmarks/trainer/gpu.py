"""Training CLIP ViT-B/32 from random weights on a GPU: samples per second, model FLOPs utilization, memory.

    python -m benchmarks.trainer.gpu [--batch 4096] [--chunks 0 1024] [--steps 30] [--pairs 20000] [--peak-tflops 989]

The recipe is negclip with three hard negatives, compiled, in bf16, on ColorShape shards (`pairwright demo`). Texts have 77
tokens, missing negatives included, so that every sample costs the same:

    forward FLOPs = image(50 tokens) + 4 * text(77 tokens)
    tower(n tokens) = layers * n * (24 width^2 + 4 n width), and the patch embedding and the projections
    training FLOPs = 3 * forward FLOPs

A multiplication and an addition are two FLOPs; 24 width^2 are the matrices of a layer (Kaplan et al. 2020, table 1, with
feed-forward layers of four widths), 4 n width the scores and sums of its attention, causal or not; the backward pass costs
twice the forward. Utilization is FLOPs * samples per second / peak of the device (Chowdhery et al. 2022, appendix B): the
second forward pass of cached gradients counts as lost time. *waiting* is the share of the time that a step waits for data:
the run is loader-bound where it is not near 0.
"""

import argparse
import gc
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from pairwright.datasets.errors import PairwrightError
from pairwright.training.metrics_log import LogRow

NEGATIVES = 3
IMAGE, PATCH, TOKENS, DIM = 224, 32, 77, 512
VISION, TEXT = (12, 768), (12, 512)  # layers, width
# Dense bf16 by NVIDIA's data sheets, in TFLOPS.
PEAKS = {"H200 NVL": 835, "H200": 989, "H100 NVL": 835, "H100 PCIe": 756, "H100": 989, "A100": 312}
PEAKS |= {"L40S": 362, "L40": 181, "L4": 121, "A10G": 70, "RTX 4090": 165}


def peak_tflops(device: str) -> float:
    """Return the peak of a device by a name in its own, the more specific first; 0 if none is known."""
    return next((peak for name, peak in PEAKS.items() if re.search(rf"\b{name}\b", device)), 0)


def device_and_peak(peak: float, on_a_cpu: str) -> tuple[str, float]:
    """Return the name of the GPU and its peak, 0: by its name; exit without a GPU, or a peak."""
    if not torch.cuda.is_available():
        sys.exit(f"This benchmark requires a CUDA GPU, and torch finds none. On a CPU run {on_a_cpu}.")
    device = torch.cuda.get_device_name()
    if not (peak := peak or peak_tflops(device)):
        sys.exit(f"The peak of {device} is not known: pass --peak-tflops, the dense bf16 figure of its data sheet.")
    return device, peak


def demo_shards(folder: Path, pairs: int) -> str:
    """Write ColorShape's shards and return their folder."""
    command = [sys.executable, "-m", "pairwright", "demo", "--out", str(folder / "demo"), "--pairs", str(pairs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return str(folder / "demo" / "shards")


def tower_flops(layers: int, width: int, tokens: int) -> int:
    """Return the FLOPs of a transformer's forward pass on one sequence."""
    return layers * tokens * (24 * width**2 + 4 * tokens * width)


def training_flops() -> int:
    """Return the FLOPs of a sample: forward and backward."""
    patches = (IMAGE // PATCH) ** 2
    image = tower_flops(*VISION, patches + 1) + 2 * patches * 3 * PATCH**2 * VISION[1] + 2 * VISION[1] * DIM
    text = tower_flops(*TEXT, TOKENS) + 2 * TEXT[1] * DIM
    return 3 * (image + (1 + NEGATIVES) * text)


def words_tokenizer(shards: str, folder: Path) -> Any:
    """Return a tokenizer of the shards' words."""
    from pairwright.training.models.clip import Clip
    from pairwright.training.tiny_clip import write_tiny_clip

    write_tiny_clip(shards, folder / "tiny")
    return Clip.load(str(folder / "tiny")).tokenizer


def marks_of(tokenizer: Any) -> dict[str, int]:
    """Return the ids of its marks, as configs name them."""
    return {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}


def write_model(shards: str, folder: Path) -> None:
    """Write a CLIP of the sizes of ViT-B/32 with random weights and a tokenizer of the shards' words."""
    from transformers import CLIPConfig, CLIPModel

    from pairwright.training.models.clip import Clip

    tokenizer = words_tokenizer(shards, folder)
    torch.manual_seed(0)
    clip = CLIPModel(CLIPConfig(text_config=marks_of(tokenizer)))  # the defaults are ViT-B/32
    Clip(clip, tokenizer).save(folder / "clip")


def train_once(data: str, folder: Path, asked: argparse.Namespace, chunk: int, peak: float) -> str:
    """Train, and return a line of the table; rates are those of the rows after the first, which compiles."""
    from pairwright.training.recipes.reading import read_recipe
    from pairwright.training.recipes.settings import Recipe
    from pairwright.training.trainer import TrainingRun, train

    changes = [f"batches.size={asked.batch}", f"batches.chunk={chunk}", f"method.negatives={NEGATIVES}", "compile=true"]
    changes += [f"schedule.steps={asked.steps}", f"log_every={max(1, asked.steps // 3)}", "save_every=1000000"]
    rows = list[LogRow]()
    gc.collect()  # the model of the run before
    torch.cuda.reset_peak_memory_stats()
    recipe = read_recipe("negclip", changes)
    assert isinstance(recipe, Recipe)
    run = TrainingRun(recipe, data, str(folder / "clip"), folder / f"run-{chunk}", on_row=rows.append)
    name = f"cached, {chunk:,} rows" if chunk else "whole batch"
    try:
        train(run)
    except PairwrightError as error:
        return f"| {name} | {str(error).partition('.')[0]} | | | |"
    rate, waiting = (sum(row[of] for row in rows[1:]) / len(rows[1:]) for of in ("samples_per_second", "waiting"))
    used = torch.cuda.max_memory_allocated() / 2**30
    return f"| {name} | {rate:,.0f} | {rate * training_flops() / peak / 1e12:.1%} | {used:.1f} | {waiting:.0%} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--chunks", type=int, nargs="+", default=[0, 1024], help="rows a pass; 0: the whole batch")
    parser.add_argument("--steps", type=int, default=30, help="2 or more: the first row of the log is left out")
    parser.add_argument("--pairs", type=int, default=20_000, help="of the shards")
    parser.add_argument("--data", default="", help="shards with hard negatives; none: ColorShape's")
    parser.add_argument("--peak-tflops", type=float, default=0.0, help="dense bf16; 0: by the name of the device")
    asked = parser.parse_args()
    if asked.steps < 2:
        parser.error("--steps must be 2 or more: the first row of the log, in which torch compiles, is left out")
    device, peak = device_and_peak(asked.peak_tflops, "python -m benchmarks.trainer.step")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = asked.data or demo_shards(folder, asked.pairs)
        write_model(data, folder)
        print(f"{device}, {peak:g} TFLOPS; {training_flops() / 1e9:.1f} GFLOPs a sample; batch {asked.batch:,}\n")
        print("| gradients | samples/s | utilization | GiB | waiting |\n| --- | --- | --- | --- | --- |")
        for chunk in asked.chunks:
            print(train_once(data, folder, asked, chunk, peak), flush=True)


if __name__ == "__main__":
    main()
