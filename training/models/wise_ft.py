"""WiSE-FT (Wortsman et al. 2022): a point on the line between the weights before and after training."""

from collections.abc import Mapping

import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError


def interpolate(before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Return ``(1 - share) * before + share * after``, name by name.

    Args:
        before: a state dict, of the model that training started from.
        after: a state dict with the same names and shapes.
        share: of the trained model; 0 gives ``before``, 1 ``after``, to the last bit.

    Returns:
        New tensors of the dtypes of ``after``, summed in float32 or finer; whole numbers (positions, counts) are those
        of ``after``.

    Raises:
        UsageError: when the share is not from 0 to 1, or a name or a shape differs.
    """
    if not 0.0 <= share <= 1.0:
        raise UsageError(f"a share of {share} of the trained weights: from 0 to 1")
    for name in sorted(before.keys() | after.keys()):
        shapes = [tuple(side[name].shape) if name in side else None for side in (before, after)]
        if shapes[0] != shapes[1]:
            raise UsageError(f"{name} is {shapes[0]} before and {shapes[1]} after training: not the same model")
    return {name: _between(before[name], one, share) for name, one in after.items()}


def _between(before: Tensor, after: Tensor, share: float) -> Tensor:
    if not after.is_floating_point():
        return after.clone()
    fine = torch.promote_types(after.dtype, torch.float32)
    return torch.lerp(before.to(fine), after.to(fine), share).to(after.dtype)
