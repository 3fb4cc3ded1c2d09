"""Plan of a finetuning run without training it: parameters, memory per GPU, steps, and the data rate that the GPUs need.

The network is built from its config on torch's meta device, so neither weights nor a GPU are needed.

Memory is what AdamW in mixed precision holds (ZeRO: Rajbhandari et al. 2020, section 3) and the activations of a
transformer with memory-efficient attention (Korthikanti et al. 2022, section 4: 34 bytes per token and unit of width in a
layer, 2 with checkpoints, and one layer computed again), in 16 bits. DeepSpeed in 16 bits holds the model in 16 bits, and
float32 weights with the moments. Not counted: fragmentation, buffers of NCCL, and the allocator's reserve, for which a tenth
of the memory should stay free.

The rate follows from 2 FLOP per token and parameter in the forward pass, the same for gradients of activations, the same for
gradients of trained weights, and the forward pass again with checkpointing, at the share of the peak that
``hardware.utilization`` assumes.
"""

from dataclasses import dataclass
from typing import Any

from accelerate.utils.deepspeed import HfDeepSpeedConfig  # type: ignore[import-untyped]
from torch import nn

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.training.finetuning.arguments import check_planned_arguments, divide_batch, explain_refusals
from pairwright.training.finetuning.conversations import ConversationCollator
from pairwright.training.finetuning.dataset import RowCollator, open_dataset, read_rows
from pairwright.training.finetuning.networks import build_meta_network, freeze_untrained, sharded_layer_names
from pairwright.training.loading.rationales import RationaleCollator, check_training_data
from pairwright.training.loading.shard_index import StoredSample
from pairwright.training.models.registry import model_folder
from pairwright.training.models.trainable_parameters import count_parameters
from pairwright.training.recipes.settings import ConversationMethod, FinetuningRecipe, StepByStepMethod

_GB = 10**9
_CHARACTERS_PER_TOKEN = 4
_SAMPLED_ROWS = 500
_ADAM_BYTES = 8  # two moments in float32
_LAYER_BYTES, _CHECKPOINT_BYTES = 34, 2  # per token and unit of width, in 16 bits
_LOGIT_BYTES = 10  # 16 bits, their float32 copy, and its gradient


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Memory per GPU, in GB (10^9 bytes)."""

    weights: float  # with the 16-bit copy that autocast or a sharded layer needs
    gradients: float  # of trained parameters
    optimizer: float  # moments of AdamW; of DeepSpeed in 16 bits also float32 weights
    activations: float  # of per_device rows of max_tokens tokens, with the logits
    offloaded: float = 0.0  # not in `total`: what ZeRO keeps in the machine's memory, or on its disk, for each GPU

    @property
    def total(self) -> float:
        """Sum of all parts on the GPU."""
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True, slots=True)
class FinetuningPlan:
    """Plan of a run."""

    model: str  # class of the network
    trained: int  # parameters
    frozen: int
    gpus: int
    sharding: str  # none, zero-1, zero-2 or full (FSDP, ZeRO-3)
    per_device: int  # rows of a forward pass
    accumulation: int  # forward passes of a step
    tokens: int  # per row, images included: mean of the data, at most batches.max_tokens
    image_tokens: int  # of these for each image
    images: float  # per row: mean of the data
    memory: MemoryEstimate  # per GPU, for rows of batches.max_tokens tokens
    memory_gb: float  # what a GPU has
    rows: int  # of the data per epoch
    steps: int
    step_seconds: float  # at the assumed utilization
    rows_per_second: float  # that the loader must give over all processes
    tokens_per_second: float

    def lines(self) -> list[str]:
        """Return the plan as text."""
        memory, total = self.memory, self.memory.total
        fits = "fits" if total <= 0.9 * self.memory_gb else "does NOT fit with a tenth to spare"
        offloaded = f"; offloaded {memory.offloaded:.1f}" if memory.offloaded else ""
        several = "" if self.images in {0.0, 1.0} else f"; {self.images:.1f} images a row"
        batch = f"{count_phrase(self.gpus, 'GPU')} x {count_phrase(self.per_device, 'row')} x {self.accumulation} accumulated"
        return f"""\
{self.model}
  parameters   {self.trained:,} trained; {self.frozen:,} frozen
  batch        {batch}, sharding: {self.sharding}
  memory       {total:.1f} GB per GPU of {self.memory_gb:g} GB: {fits}
               weights {memory.weights:.1f}, gradients {memory.gradients:.1f}, optimizer {memory.optimizer:.1f}, \
activations {memory.activations:.1f}{offloaded}
  steps        {self.steps:,} ({self.rows:,} rows an epoch), about {self.step_seconds:.2f} s each
  loader       {self.rows_per_second:,.1f} rows/s, {self.tokens_per_second:,.0f} tokens/s over all processes \
({self.tokens:,} tokens a row, {self.image_tokens:,} of an image{several})""".splitlines()


def make_plan(recipe: FinetuningRecipe, data: str, model: str, validation: str = "") -> FinetuningPlan:
    """Return the plan of a run from the config of ``model`` and the texts of ``data``; refuses what a run would."""
    for one in filter(None, (data, validation)):
        check_training_data(one)
    sketch = build_meta_network(recipe, model_folder(model))
    check_planned_arguments(recipe, sketch, validated=bool(validation))
    sharding = sharding_of(recipe)
    network: Any = freeze_untrained(sketch, recipe.method)
    sizes, gpus = count_parameters(network), recipe.hardware.gpus
    batch = divide_batch(recipe, gpus)
    collator: RowCollator
    if isinstance(recipe.method, StepByStepMethod):
        collator = RationaleCollator(recipe.method.objectives)
    else:
        collator = ConversationCollator(None, frozenset(), recipe.method.types)
    dataset = open_dataset(data, collator)
    some = range(0, len(dataset), max(1, len(dataset) // _SAMPLED_ROWS))
    sampled = [sample for _, sample in read_rows(dataset, some)]
    usable = [sample for sample in sampled if isinstance(sample, StoredSample)]
    characters = sum(map(collator.length, usable)) / len(sampled)
    images = sum(1 + len(one.further_images) for one in usable if one.image) / len(sampled)
    image_tokens = _image_tokens(network.config) if isinstance(recipe.method, ConversationMethod) else 0
    tokens = max(
        1, min(recipe.batches.max_tokens, round(characters / _CHARACTERS_PER_TOKEN) + round(images * image_tokens))
    )
    rows = len(dataset)
    steps = recipe.schedule.steps or recipe.schedule.epochs * -(-rows // recipe.batches.size)
    passes = 3 if recipe.gradient_checkpointing else 2  # forward, gradients of activations, and forward again
    flop = tokens * recipe.batches.size * 2 * (passes * (sizes.trained + sizes.frozen) + sizes.trained)
    seconds = flop / (gpus * recipe.hardware.tflops * 1e12 * recipe.hardware.utilization)
    each = batch["per_device_train_batch_size"]
    return FinetuningPlan(
        model=type(sketch).__name__,
        trained=sizes.trained,
        frozen=sizes.frozen,
        gpus=gpus,
        sharding=sharding,
        per_device=each,
        accumulation=batch["gradient_accumulation_steps"],
        tokens=tokens,
        image_tokens=image_tokens,
        images=images,
        memory=_memory(network, recipe, each, sharding, max(1.0, images)),
        memory_gb=recipe.hardware.memory_gb,
        rows=rows,
        steps=steps,
        step_seconds=seconds,
        rows_per_second=recipe.batches.size / seconds,
        tokens_per_second=tokens * recipe.batches.size / seconds,
    )


def sharding_of(recipe: FinetuningRecipe) -> str:
    """Return how the recipe's trainer settings shard the model."""
    if recipe.trainer.get("fsdp"):
        return "full"
    stage = _zero_setting(recipe, "stage", 0)
    if stage not in range(4):
        raise UsageError("trainer.deepspeed: zero_optimization.stage must be 0, 1, 2 or 3.")
    return ("none", "zero-1", "zero-2", "full")[stage]


def _zero_setting(recipe: FinetuningRecipe, name: str, default: Any = None) -> Any:
    """Return a setting of the DeepSpeed config's ``zero_optimization``."""
    if not (config := recipe.trainer.get("deepspeed")):
        return default
    with explain_refusals():
        return HfDeepSpeedConfig(config).get_value(f"zero_optimization.{name}", default)


def _image_tokens(config: Any) -> int:
    """Return the tokens of an image: the config's, or those of a square image of the vision tower's size."""
    known = getattr(config, "image_seq_length", None) or getattr(config, "mm_tokens_per_image", None)
    if known:
        return int(known)
    vision = config.vision_config
    side = getattr(vision, "image_size", None) or 448  # towers of any resolution: a common size
    merged = getattr(vision, "spatial_merge_size", 1)
    return int(side // (vision.patch_size * merged)) ** 2


def _memory(network: nn.Module, recipe: FinetuningRecipe, rows: int, sharding: str, images: float) -> MemoryEstimate:
    sizes = count_parameters(network)
    parameters = sizes.trained + sizes.frozen
    engine = bool(recipe.trainer.get("deepspeed")) and recipe.precision != "fp32"  # DeepSpeed's mixed precision
    wide = 2 if engine or recipe.method.weights == "bf16" else 4
    held: dict[str, float] = {
        "weights": wide * parameters,
        "gradients": wide * sizes.trained,
        "optimizer": (_ADAM_BYTES + 4 * engine) * sizes.trained,
    }
    for name, kinds in _SHARDED.items():
        held[name] /= recipe.hardware.gpus if sharding in kinds else 1
    offloaded = 0.0
    for option, names in _OFFLOADED.items():
        if _zero_setting(recipe, f"{option}.device") in {"cpu", "nvme"}:
            moved = [name for name in names if sharding in _SHARDED[name]]  # whole gradients and weights stay
            offloaded += sum(held[name] for name in moved)
            held |= dict.fromkeys(moved, 0.0)
    copies = 0 if recipe.precision == "fp32" or wide == 2 else 2 * parameters
    if sharding == "full":
        copies = 2 * 2 * _largest_layer(network)  # one layer computing, one on its way
    return MemoryEstimate(
        weights=(held["weights"] + copies) / _GB,
        gradients=held["gradients"] / _GB,
        optimizer=held["optimizer"] / _GB,
        activations=_activations(network, recipe, rows, images) / _GB,
        offloaded=offloaded / _GB,
    )


_SHARDED = {
    "weights": ("full",),
    "gradients": ("full", "zero-2"),
    "optimizer": ("full", "zero-2", "zero-1"),
}
_OFFLOADED = {"offload_optimizer": ("gradients", "optimizer"), "offload_param": ("weights",)}


def _largest_layer(network: nn.Module) -> int:
    layers = set(sharded_layer_names(network))
    sizes = [
        sum(one.numel() for one in module.parameters())
        for module in network.modules()
        if type(module).__name__ in layers
    ]
    # What is in no such layer is one piece: embeddings and the output layer.
    rest = sum(one.numel() for one in network.parameters()) - sum(sizes)
    return max([rest, *sizes])


def _activations(network: Any, recipe: FinetuningRecipe, rows: int, images: float) -> float:
    """Return the bytes of activations and logits: of the text model, and of a vision tower that is trained."""
    text = network.config.get_text_config()
    precise = 2 if recipe.precision == "fp32" else 1
    tokens = rows * recipe.batches.max_tokens

    def stack(tokens: int, layers: int, width: int) -> int:
        each = layers * _CHECKPOINT_BYTES + _LAYER_BYTES if recipe.gradient_checkpointing else layers * _LAYER_BYTES
        return tokens * width * each

    found = stack(tokens, text.num_hidden_layers, text.hidden_size)
    vision = getattr(network.config, "vision_config", None)
    if vision is not None and any(
        "vision" in name or "visual" in name for name, one in network.named_parameters() if one.requires_grad
    ):
        depth = getattr(vision, "num_hidden_layers", None) or vision.depth
        merged = getattr(vision, "spatial_merge_size", 1) ** 2
        patches = round(rows * images * merged * _image_tokens(network.config))
        found += stack(patches, depth, vision.hidden_size)
    return float(precise * found + _LOGIT_BYTES * tokens * text.vocab_size)
