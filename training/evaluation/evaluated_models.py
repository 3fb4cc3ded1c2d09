"""The models under evaluation: opened one after the other, each as it is, or mixed with the one it was trained from.

A model is named by the folder of a run of ``pairwright train``, a folder that a model was saved to, or a checkpoint of
transformers (CLIP, LLaVA, T5 and other encoder-decoders) by folder or name. What kind it is, is read before its weights, so
that a task it cannot do is refused at once.

WiSE-FT: at a share of 0 stands the model before training, at 1 the trained one. REACT's gated blocks, which the model
before training has not, are taken as trained with their gates shut, which is the same function.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.indexes.encoders.pretrained_models import choose_device
from pairwright.training.models.clip import Clip
from pairwright.training.models.react_clip import ReactClip
from pairwright.training.models.registry import Model, model_folder, model_kind, open_model

_GATES = ("gate_attention", "gate_dense")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that is to be evaluated.

    Attributes:
        name: as the user gave it.
        folder: where its weights are; the name itself unless that is a run's folder.
        kind: of `models.opening`.
    """

    name: str
    folder: str
    kind: str


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model ready to be evaluated: in evaluation mode, on its device.

    Attributes:
        named: which one it is.
        model: with its weights.
        share: of the trained weights; None for a model as it is.
    """

    named: NamedModel
    model: Model
    share: float | None = None


@dataclass(frozen=True, slots=True)
class WiseFtSettings:
    """WiSE-FT: the model before training, and the shares of the trained weights, each 0-1."""

    base: str
    shares: tuple[float, ...]


def identify_model(name: str) -> NamedModel:
    """Say what ``name`` is, without reading its weights.

    Raises:
        MissingResource: when there is no such checkpoint.
        InputError: when it is none that can be evaluated.
        StorageError: when its description is torn.
    """
    folder = model_folder(name)
    return NamedModel(name, folder, model_kind(folder))


def open_models(models: Sequence[NamedModel], mixing: WiseFtSettings | None, device: str = "") -> Iterator[OpenedModel]:
    """Open the models one after the other; with ``mixing`` each of them at each share.

    Args:
        models: which ones.
        mixing: WiSE-FT, or None.
        device: such as ``cpu`` or ``cuda``; empty: a GPU where there is one.

    Raises:
        PairwrightError: a model cannot be read, or is not one that was trained from the base; the device is not there.
    """
    on = choose_device(device)
    for named in models:
        model = open_model(named.folder)
        if mixing is None:
            yield OpenedModel(named, model.to(on).eval())
            continue
        after = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        before = _base_model(model, after, mixing.base, named)
        for share in mixing.shares:
            model.load_state_dict(interpolate(before, after, share))
            yield OpenedModel(named, model.to(on).eval(), share)


def _base_model(model: Model, after: Mapping[str, Tensor], base: str, named: NamedModel) -> dict[str, Tensor]:
    found = identify_model(base)
    before = dict(open_model(found.folder).state_dict())
    if isinstance(model, ReactClip) and found.kind == Clip.kind:
        blocks = {key: tensor for key, tensor in after.items() if key.startswith("blocks.")}
        before |= {key: torch.zeros_like(one) if key.endswith(_GATES) else one for key, one in blocks.items()}
    elif found.kind != named.kind:
        raise UsageError(
            f"--base {base} is of kind {found.kind}, {named.name} of kind {named.kind}: there is no line between them. "
            "Give what the training started from."
        )
    try:
        interpolate(before, after, 1.0)
    except UsageError as error:
        raise UsageError(f"--base {base}: {error}. Give what {named.name} was trained from.") from None
    return before


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
