"""Evaluated models, opened one after the other, optionally interpolated with their base model (WiSE-FT).

A model is the folder of a run of ``pairwright train``, a folder of a saved model, or a checkpoint of transformers (CLIP,
image-text-to-text models, T5 and other encoder-decoders) by folder or name. Its kind is read before its weights, so that an
unsupported task fails immediately. Models that are encoded but not trained here (OpenCLIP's own format, SigLIP 2 NaFlex) are
opened as encoders of an index.

WiSE-FT (Wortsman et al. 2022): share 0 is the model before training, share 1 the trained one. REACT's gated blocks, which
the base model does not have, are the trained ones with closed gates, which is the same function.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.indexes.encoders import clip_checkpoint, openclip_checkpoint, siglip_checkpoint
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.pretrained_models import choose_device
from pairwright.training.models.checkpoints import read_config, read_description
from pairwright.training.models.clip import Clip
from pairwright.training.models.react_clip import ReactClip
from pairwright.training.models.registry import Model, model_folder, model_kind, open_model

ENCODER_KIND: Final = "encoder"
_GATES = ("gate_attention", "gate_dense")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """Name, folder and kind of a model."""

    name: str  # as the user named it
    folder: str  # of its weights; equal to the name except for a run
    kind: str  # see `models.registry`; `ENCODER_KIND` for one that is opened as an encoder


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model in evaluation mode on its device."""

    named: NamedModel  # its name and kind
    model: Model | ClipEncoder  # with its weights
    share: float | None = None  # of the trained weights (WiSE-FT); None without interpolation


@dataclass(frozen=True, slots=True)
class WiseFtSettings:
    """WiSE-FT: base model, and shares of the trained weights, each 0-1."""

    base: str
    shares: tuple[float, ...]


def identify_model(name: str) -> NamedModel:
    """Return the folder and kind of the model ``name`` without reading its weights."""
    folder = model_folder(name)
    return NamedModel(name, folder, ENCODER_KIND if _is_encoder(folder) else model_kind(folder))


def _is_encoder(name: str) -> bool:
    """Return whether a model is in OpenCLIP's own format (``ARCH::pretrained``, or a folder of it), or a NaFlex."""
    folder = Path(name)
    if openclip_checkpoint.SEPARATOR in name or (folder / openclip_checkpoint.CONFIG_FILE).is_file():
        return not (folder / clip_checkpoint.CONFIG_FILE).is_file()
    return not read_description(folder) and read_config(name).model_type == siglip_checkpoint.NAFLEX


def open_models(models: Sequence[NamedModel], mixing: WiseFtSettings | None, device: str = "") -> Iterator[OpenedModel]:
    """Open the models one after the other; with ``mixing`` each of them at each share.

    ``device`` is a name of torch; empty: a GPU if available.

    Raises:
        PairwrightError: a model is not readable or was not trained from the base; the device is not available.
    """
    on = choose_device(device)
    for named in models:
        if named.kind == ENCODER_KIND:
            if mixing is not None:
                raise UsageError(
                    f"--wise-ft: the weights of {named.name} cannot be interpolated. Convert it to transformers' format."
                )
            yield OpenedModel(named, ClipEncoder(named.folder, device=device))
            continue
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
            f"--base-model {base} is of kind {found.kind}, {named.name} of kind {named.kind}: they cannot be interpolated. "
            "Pass the model that training started from."
        )
    return before


def interpolate(before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Return ``(1 - share) * before + share * after``, name by name.

    Args:
        before: state dict of the model before training.
        after: state dict of the trained model, with the same names and shapes.
        share: of the trained model, 0-1; 0 gives ``before``, 1 ``after``, exactly.

    Returns:
        New tensors of the dtypes of ``after``, summed in float32 or finer; integer tensors (positions, counts) are those of
        ``after``.

    Raises:
        UsageError: differing names or shapes.
    """
    for name in sorted(before.keys() | after.keys()):
        shapes = [tuple(side[name].shape) if name in side else None for side in (before, after)]
        if shapes[0] != shapes[1]:
            raise UsageError(
                f"{name} is {shapes[0]} before and {shapes[1]} after training: not the same architecture. "
                "Pass the --base-model that training started from."
            )
    return {name: _interpolate_tensor(before[name], one, share) for name, one in after.items()}


def _interpolate_tensor(before: Tensor, after: Tensor, share: float) -> Tensor:
    if not after.is_floating_point():
        return after.clone()
    fine = torch.promote_types(after.dtype, torch.float32)
    return torch.lerp(before.to(fine), after.to(fine), share).to(after.dtype)
