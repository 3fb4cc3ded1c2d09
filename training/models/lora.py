"""LoRA for the two towers of CLIP, by peft: low-rank matrices beside frozen ones, which begin as no change at all.

FSC-CLIP trains with rank 4 (002, section 4, "Training Setup"). Which matrices and which factor it does not say; as in its
authors' code, every linear layer of both towers and the cutting into patches have one, the factor is alpha / rank with
alpha 1, and the two projections into the shared space have none. One difference: there the three matrices of an
attention share one input matrix, here each has its own.
"""

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.training.models.clip import Clip

TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2", "patch_embedding")
DEFAULT_RANK = 4


def add_lora(model: Clip, rank: int = DEFAULT_RANK, *, alpha: float = 1.0, targets: tuple[str, ...] = TARGETS) -> None:
    """Put low-rank matrices into ``model``, and freeze everything else.

    Args:
        model: a CLIP; its first forward pass afterwards is what it was.
        rank: of each pair of matrices.
        alpha: the change is scaled by alpha / rank.
        targets: last names of the layers that get one.

    Raises:
        UsageError: when the rank is not positive, no layer has such a name, or LoRA is in it already.
    """
    if rank < 1:
        raise UsageError(f"LoRA of rank {rank}: at least 1")
    if _adapted_modules(model.network):
        raise UsageError("LoRA is in this model already")
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(targets))
    try:
        inject_adapter_in_model(config, model.network)
    except ValueError as error:
        raise UsageError(f"LoRA: {str(error).splitlines()[0]}") from error
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".lora_" in name)


def merge_lora(model: Clip) -> None:
    """Add the low-rank changes to the weights and take the matrices out: a plain CLIP that computes the same.

    Raises:
        UsageError: when there are none.
    """
    adapted = _adapted_modules(model.network)
    if not adapted:
        raise UsageError("there is no LoRA in this model to merge")
    for name, layer in adapted.items():
        layer.merge()
        model.network.set_submodule(name, layer.get_base_layer())


def _adapted_modules(network: nn.Module) -> dict[str, BaseTunerLayer]:
    return {name: module for name, module in network.named_modules() if isinstance(module, BaseTunerLayer)}
