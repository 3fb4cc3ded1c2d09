"""Parameters that each method trains, by patterns of their names (`fnmatch`), and LoRA for CLIP by peft."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.training.models.clip import Clip

TRAINABLE: dict[str, tuple[str, ...]] = {
    "clip": ("network.*",),  # 002, section 3.1
    # 003, chapter 2, table 2.6 ("Locked-Text")
    "clip-locked-text": ("network.vision_model.*", "network.visual_projection.*", "network.logit_scale"),
    "lora": ("*.lora_[AB].*",),
    "react": ("blocks.*",),  # theta prime in eq. 2.4; the temperature is a hyperparameter
    "focallens-clip": (  # T of eq. 5.1 is frozen (000, section 5.3)
        "network.vision_model.*",
        "network.visual_projection.*",
        "network.logit_scale",
        "instructions.*",
        "condition.*",
    ),
    "focallens-mllm": (  # as LLaVA without its vision tower; the output layer is unused
        "llava.*multi_modal_projector*",
        "llava.*language_model*",
        "head.*",
        "logit_scale",
    ),
}


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Number of trained and frozen parameters."""

    trained: int
    frozen: int


def train_only(
    model: nn.Module, what: str | tuple[str, ...], frozen: Sequence[str] = (), fix: str = ""
) -> ParameterCounts:
    """Enable gradients for the parameters that ``what`` names, disable all others, and return the number of both.

    ``what`` is a key of `TRAINABLE`, or patterns, ``frozen`` patterns of exceptions, ``fix`` advice in the error.
    """
    if isinstance(what, str):
        require_known("no such set of trained parameters:", [what], TRAINABLE)
    fix = fix or f"{what!r} is for another model"
    patterns = TRAINABLE[what] if isinstance(what, str) else what
    trained = _names_like(model, patterns, fix) - _names_like(model, frozen, fix)
    if not trained:
        raise UsageError(f"nothing is trained: {fix}")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)
    return count_parameters(model)


def _names_like(model: nn.Module, patterns: Sequence[str], fix: str) -> set[str]:
    found = [fnmatch.filter((name for name, _ in model.named_parameters()), pattern) for pattern in patterns]
    for pattern, names in zip(patterns, found, strict=True):
        if not names:
            raise UsageError(f"{type(model).__name__} has no parameter {pattern}: {fix}")
    return set(chain.from_iterable(found))


def count_parameters(model: nn.Module) -> ParameterCounts:
    """Return the number of trained and frozen parameters of ``model``."""
    sizes = {True: 0, False: 0}
    for parameter in model.parameters():
        # ZeRO-3 leaves an empty tensor where another process has the values, and notes their number.
        sizes[parameter.requires_grad] += getattr(parameter, "ds_numel", parameter.numel())
    return ParameterCounts(sizes[True], sizes[False])


# Every linear layer of both towers and the patch embedding, but not the projections into the shared space.
_LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2", "patch_embedding")


def add_lora(model: Clip, rank: int = 4, *, alpha: float = 1.0) -> None:
    """Add low-rank matrices, initially without effect, to both towers and freeze all other parameters.

    FSC-CLIP trains with rank 4 (002, section 4, "Training Setup"). Target layers and factor, alpha / rank, follow its
    authors' code; one difference: there the three matrices of an attention share an input matrix, here each has its
    own.
    """
    if _adapted_modules(model.network):
        raise UsageError("the model already has LoRA")
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(_LORA_TARGETS))
    try:
        inject_adapter_in_model(config, model.network)
    except ValueError as error:
        raise UsageError(f"LoRA: {str(error).splitlines()[0]}") from error
    train_only(model, "lora")


def merge_lora(model: Clip) -> None:
    """Merge the low-rank updates into the weights and remove the matrices: a plain CLIP with the same outputs."""
    adapted = _adapted_modules(model.network)
    if not adapted:
        raise UsageError("the model has no LoRA to merge")
    for name, layer in adapted.items():
        layer.merge()
        model.network.set_submodule(name, layer.get_base_layer())


def _adapted_modules(network: nn.Module) -> dict[str, BaseTunerLayer]:
    return {name: module for name, module in network.named_modules() if isinstance(module, BaseTunerLayer)}
