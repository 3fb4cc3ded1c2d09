"""A step of LLaVA with 1.05B random weights on one GPU, sharded: seconds, tokens per second, utilization, memory.

    torchrun --nproc-per-node 1 -m benchmarks.trainer.gpu_llava [--sharding fsdp] [--batch 16] [--steps 20] [--tiny]

The run is that of ``pairwright train llava-instruct``: a ViT-L/14 of 336 pixels, frozen, and a Llama of 12 layers, joined by
a new projection, on ColorShape's conversations about an image. ZeRO requires deepspeed. ``--tiny`` shows on a CPU that it
works (there accelerate does not shard by FSDP). Two steps are left out. The disk must have 10 GB. FLOPs of n tokens, of which
padding and layers that are computed again do not count:

    image      tower of `gpu` without its last layer, which LLaVA does not use; forward only
    projection 3 * 2 patches * (vision width * width + width^2)
    text       3 * n * (layers * (8 width^2 + 6 width * inner + 4 n width) + 2 width * vocabulary)
"""

import argparse
import csv
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter as clock

import torch
from accelerate.state import AcceleratorState  # type: ignore[import-untyped]
from transformers import CLIPConfig, CLIPModel, LlamaConfig, LlamaForCausalLM
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from benchmarks.trainer.gpu import demo_shards, device_and_peak, marks_of, tower_flops, words_tokenizer
from pairwright.training.finetuning.run import FinetuningRun, finetune
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import FinetuningRecipe

_AUTO = "train_micro_batch_size_per_gpu: auto, gradient_accumulation_steps: auto, gradient_clipping: auto"
_ZERO = f"trainer.deepspeed={{bf16: {{enabled: auto}}, {_AUTO}, zero_optimization: {{stage: %d}}}}"
SHARDING = {"fsdp": "trainer.fsdp=true", "zero-2": _ZERO % 2, "zero-3": _ZERO % 3}
PATCH, WARM = 14, 2  # pixels, steps


@dataclass(frozen=True)
class Sizes:
    """Sizes of a LLaVA; heads have 64 dimensions."""

    image: int = 336
    vision: tuple[int, int] = (24, 1024)  # layers, width
    text: tuple[int, int, int, int] = (12, 2048, 5504, 32_000)  # layers, width, inner width, vocabulary

    def row_flops(self, tokens: float) -> float:
        """Return the FLOPs of training on a row of ``tokens``, those of its one image included."""
        patches, (depth, seen), (layers, width, inner, words) = (self.image // PATCH) ** 2, self.vision, self.text
        image = tower_flops(depth - 1, seen, patches + 1) + 2 * patches * 3 * PATCH**2 * seen
        projection = 2 * patches * (seen * width + width**2)
        layer = 8 * width**2 + 6 * width * inner + 4 * tokens * width
        return image + 3 * (projection + tokens * (layers * layer + 2 * width * words))


TINY = Sizes(image=28, vision=(2, 64), text=(2, 128, 256, 2000))


def write_parts(shards: str, folder: Path, sizes: Sizes) -> None:
    """Write a CLIP and a Llama of random weights, with a tokenizer of the shards' words."""

    def stack(layers: int, width: int, inner: int) -> dict[str, int]:
        sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": inner}
        return sizes | {"num_attention_heads": width // 64}

    tokenizer, side = words_tokenizer(shards, folder), sizes.image
    tower = stack(*sizes.vision, 4 * sizes.vision[1]) | {"image_size": side, "patch_size": PATCH}
    torch.manual_seed(0)
    clip = CLIPModel(CLIPConfig(vision_config=tower, text_config=stack(1, 64, 64)))
    pixels = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    language = LlamaForCausalLM(LlamaConfig(**stack(*sizes.text[:3]), vocab_size=sizes.text[3], **marks_of(tokenizer)))
    for part, at in ((clip, "clip"), (pixels, "clip"), (language, "language"), (tokenizer, "language")):
        part.save_pretrained(folder / at)


def measure(data: str, folder: Path, asked: argparse.Namespace, sizes: Sizes, peak: float) -> str:
    """Train, and return what was measured; ``peak`` is in TFLOPS."""
    changes = [f"method.language={folder / 'language'}", f"batches.size={asked.batch}", f"schedule.steps={asked.steps}"]
    changes += ["log_every=1", "trainer.save_strategy='no'", "trainer.include_num_input_tokens_seen=non_padding"]
    recipe = read_recipe("llava-instruct", [*changes, SHARDING[asked.sharding], *asked.set])
    assert isinstance(recipe, FinetuningRecipe)
    ends = list[float]()  # of steps: the logged loss waits for the GPU
    out, note = folder / "run", lambda _: ends.append(clock())
    report = finetune(FinetuningRun(recipe, data, str(folder / "clip"), out, on_message=note))
    seen = [float(row["num_input_tokens_seen"]) for row in csv.DictReader((out / "log.csv").open())]
    steps = asked.steps - WARM
    seconds, tokens = (ends[-1] - ends[-1 - steps]) / steps, (seen[-1] - seen[WARM - 1]) / steps
    flops, used = asked.batch * sizes.row_flops(tokens / asked.batch), torch.cuda.max_memory_allocated() / 2**30
    return f"""\
{report.trained:,} parameters trained, {report.frozen:,} frozen; {AcceleratorState().distributed_type.value}
{seconds:.3f} s a step of {asked.batch} rows, {tokens / seconds:,.0f} tokens/s ({tokens / asked.batch:.0f} a row), peak {used:.1f} GiB
{flops / 1e12:.4g} TFLOPs a step, utilization {flops / seconds / peak / 1e12:.1%} of {peak:g} TFLOPS"""


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sharding", choices=SHARDING, default="fsdp")
    parser.add_argument("--batch", type=int, default=16, help="rows")
    parser.add_argument("--steps", type=int, default=20, help=f"more than {WARM}")
    parser.add_argument("--data", default="", help="shards with conversations, an image in each; none: ColorShape's")
    parser.add_argument("--set", nargs="+", default=[], help="further settings, such as gradient_checkpointing=true")
    parser.add_argument("--tiny", action="store_true", help="a model of two narrow layers, which needs no GPU")
    parser.add_argument("--peak-tflops", type=float, default=0.0, help="dense bf16; 0: by the name of the device")
    asked = parser.parse_args()
    if asked.steps <= WARM:
        parser.error(f"--steps must be more than {WARM}, which are left out")
    if os.environ.get("WORLD_SIZE") != "1":
        parser.error("one process of torchrun is needed: torchrun --nproc-per-node 1 -m benchmarks.trainer.gpu_llava")
    known = ("tiny", asked.peak_tflops or 1.0) if asked.tiny else device_and_peak(asked.peak_tflops, "it with --tiny")
    with tempfile.TemporaryDirectory() as name:
        folder, sizes = Path(name), TINY if asked.tiny else Sizes()
        data = asked.data or demo_shards(folder, 1000)
        write_parts(data, folder, sizes)
        print(f"{known[0]}, {measure(data, folder, asked, sizes, known[1])}")


if __name__ == "__main__":
    main()
