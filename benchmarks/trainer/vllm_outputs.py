"""Does vLLM open what the trainer writes, and answer with the tokens of transformers?

    PAIRWRIGHT_VLLM=/path/to/vllm python -m benchmarks.trainer.vllm_outputs [llava] [llava-lora] [llava-parts] [qwen] [qwen-lora]

Models of random weights are trained for ten steps on drawn scenes: a LLaVA, as a whole, by LoRA, or assembled of a CLIP and a
Llama, and a Qwen2.5-VL (requires torchvision in this environment, as its processor does). `OUT/model` is asked about two
images by vLLM (``vllm.LLM``, in the environment of the command) and by transformers: the ids of the prompt, image
placeholders included, and of the greedy answer have to be equal. The exit code is 1 if they are not.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image
from transformers import (
    AutoModelForImageTextToText,
    AutoProcessor,
    CLIPConfig,
    CLIPModel,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from benchmarks.llm.real_servers import ENVIRONMENT, vllm_command
from pairwright.training.finetuning.run import FinetuningRun, finetune
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import FinetuningRecipe
from tests.training.finetuning import tiny_vlms
from tests.training.training_cases import shards

WIDTH, SIDE = 64, 32  # heads of 32 dimensions, the smallest that vLLM has
COLOURS = ("red", "blue")
QUESTION, LONGEST, LIMIT_S = "what colour is it ?", 12, 600  # as in ask_vllm.py
STEPS = ("batches.size=8", "batches.workers=0", "optimizer.lr=1e-2", "schedule.steps=10", "schedule.warmup=0")
LORA = ("method.lora.rank=4",)
Ids = list[list[int]]


@dataclass(frozen=True)
class Training:
    """A way to a model: what it starts from (made in a folder), the recipe and changes of its settings."""

    start: Callable[[Path], tuple[str, Sequence[str]]]
    recipe: str
    changes: Sequence[str] = ()


def llava(folder: Path) -> tuple[str, Sequence[str]]:
    """Make a LLaVA."""
    return tiny_vlms.llava(folder / "llava", width=WIDTH), ()


def qwen(folder: Path) -> tuple[str, Sequence[str]]:
    """Make a Qwen2.5-VL with its whole processor, videos included."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLProcessor, Qwen2VLVideoProcessor

    model = tiny_vlms.qwen(folder / "qwen", width=WIDTH)
    known = tiny_vlms.ImageOnlyQwenProcessor.from_pretrained(model)
    AutoProcessor.register(Qwen2_5_VLConfig, Qwen2_5_VLProcessor, exist_ok=True)
    videos = Qwen2VLVideoProcessor(patch_size=4, temporal_patch_size=2, merge_size=2)
    parts = (known.image_processor, known.tokenizer, videos)
    Qwen2_5_VLProcessor(*parts, chat_template=tiny_vlms.QWEN_TEMPLATE).save_pretrained(model)
    return model, ()


def parts(folder: Path) -> tuple[str, Sequence[str]]:
    """Make a CLIP and a Llama."""
    tower: dict[str, Any] = {"hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 3}
    tower |= {"num_attention_heads": 2}
    texts = tower | {"vocab_size": len(tiny_vlms.WORDS), "max_position_embeddings": 32}
    seeing = CLIPConfig(text_config=texts, vision_config=tower | {"image_size": SIDE, "patch_size": 8})
    words = LlamaConfig(**tower, vocab_size=len(tiny_vlms.WORDS), pad_token_id=0, bos_token_id=1, eos_token_id=2)
    clip, language = folder / "clip", folder / "language"
    for model, at in ((CLIPModel(seeing), clip), (LlamaForCausalLM(words), language)):
        model.save_pretrained(at)
        tiny_vlms.tokenizer().save_pretrained(at)
    CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}).save_pretrained(clip)
    return str(clip), (f"method.language={language}",)


TRAININGS = {
    "llava": Training(llava, "llava-instruct"),
    "llava-lora": Training(llava, "llava-instruct", LORA),
    "llava-parts": Training(parts, "llava-align"),
    "qwen": Training(qwen, "vlm-instruct"),
    "qwen-lora": Training(qwen, "vlm-instruct", LORA),
}


def train(training: Training, folder: Path) -> str:
    """Train, and return the folder of the model."""
    torch.manual_seed(0)
    model, changes = training.start(folder)
    recipe = read_recipe(training.recipe, [*STEPS, *changes, *training.changes])
    assert isinstance(recipe, FinetuningRecipe)
    return finetune(FinetuningRun(recipe, shards(folder / "data"), model, folder / "run")).model


def answers_of_transformers(model: str, images: Sequence[Path]) -> list[Ids]:
    """Return ids of prompt and greedy answer for each image."""
    network, processor = AutoModelForImageTextToText.from_pretrained(model), AutoProcessor.from_pretrained(model)
    found = []
    for path in images:
        with Image.open(path) as image:
            content = [{"type": "image", "image": image}, {"type": "text", "text": QUESTION}]
            asked = [{"role": "user", "content": content}]
            given = processor.apply_chat_template(
                asked, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
            )
        prompt = given["input_ids"][0].tolist()
        said = network.generate(**given, max_new_tokens=LONGEST, do_sample=False)[0].tolist()
        found.append([prompt, said[len(prompt) :]])
    return found


def answers_of_vllm(model: str, images: Sequence[Path]) -> list[Ids]:
    """Return the same by vLLM.

    Raises:
        CannotBeUsed: there is no vLLM.
        CalledProcessError: it does not open the model; stderr says why.
    """
    (command,) = vllm_command()
    python = Path(command).with_name("python")
    script = Path(__file__).with_name("ask_vllm.py")
    # In one process, as the random state of others is of no interest.
    env = os.environ | ENVIRONMENT | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, script, model, *images], env=env, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]


def compare(name: str, folder: Path) -> tuple[list[Ids], list[Ids]]:
    """Train one of `TRAININGS`, and return the answers of transformers and of vLLM."""
    images = [folder / f"{colour}.png" for colour in COLOURS]
    for path in images:
        Image.new("RGB", (40, 24), path.stem).save(path)
    model = train(TRAININGS[name], folder)
    return answers_of_transformers(model, images), answers_of_vllm(model, images)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[[], *TRAININGS], metavar="MODEL")
    given = parser.parse_args()
    print("| model | opened by vLLM | same prompt | same answer |\n|---|---|---|---|")
    failed = False
    for name in given.models or TRAININGS:
        with TemporaryDirectory() as folder:
            try:
                expected, found = compare(name, Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"| {name} | no | | |\n{error.stderr[-2000:]}", flush=True)
                failed = True
                continue
        same = [[one[part] for one in expected] == [one[part] for one in found] for part in (0, 1)]
        print(f"| {name} | yes | {same[0]} | {same[1]} |", flush=True)
        failed |= not all(same)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
