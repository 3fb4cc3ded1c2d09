"""LoRA for both towers of CLIP, by peft: trained low-rank matrices added to frozen weights, initially without effect.

FSC-CLIP trains with rank 4 (002, section 4, "Training Setup"). Target layers and factor follow its authors' code: every
linear layer of both towers and the patch embedding, but not the two projections into the shared space; the factor is
alpha / rank with alpha 1. One difference: there the three matrices of an attention share an input matrix, here each has
its own.
"""

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.training.models.clip import Clip
from pairwright.training.models.trainable_parameters import train_only

TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2", "patch_embedding")


def add_lora(model: Clip, rank: int = 4, *, alpha: float = 1.0) -> None:
    """Add low-rank matrices to ``model`` and freeze all other parameters.

    The outputs are initially unchanged; the update is scaled by alpha / rank.
    """
    if _adapted_modules(model.network):
        raise UsageError("the model already has LoRA")
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(TARGETS))
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
