"""Evaluated models, opened one after the other.

A model is the folder of a run, a saved model, or a checkpoint of transformers by folder or name. Its kind is read before
its weights, so that an unsupported task fails immediately. Models that are encoded but not trained here (OpenCLIP's own
format, SigLIP) are opened as encoders of an index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pairwright.indexes.encoders import clip_checkpoint, openclip_checkpoint, siglip_checkpoint
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.pretrained_models import choose_device
from pairwright.training.models.checkpoints import read_config, read_description
from pairwright.training.models.registry import Model, model_folder, model_kind, open_model

ENCODER_KIND: Final = "encoder"


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """A model, by name or opened."""

    name: str  # as the user named it
    folder: str  # of its weights; equal to the name except for a run
    kind: str  # see `models.registry`; `ENCODER_KIND` for one that is opened as an encoder
    model: Model | ClipEncoder | None = None  # in evaluation mode on its device; None before it is opened


def identify_model(name: str) -> EvaluatedModel:
    """Return the folder and kind of the model ``name`` without reading its weights."""
    folder = model_folder(name)
    return EvaluatedModel(name, folder, ENCODER_KIND if _is_encoder(folder) else model_kind(folder))


def _is_encoder(name: str) -> bool:
    """Return whether a model is in OpenCLIP's own format (``ARCH::pretrained``, or a folder of it), or a SigLIP."""
    folder = Path(name)
    if openclip_checkpoint.SEPARATOR in name or (folder / openclip_checkpoint.CONFIG_FILE).is_file():
        return not (folder / clip_checkpoint.CONFIG_FILE).is_file()
    return not read_description(folder) and read_config(name).model_type in siglip_checkpoint.KINDS


def open_models(models: Sequence[EvaluatedModel], device: str = "") -> Iterator[EvaluatedModel]:
    """Open the models one after the other on ``device``, a name of torch; empty: a GPU if available."""
    on = choose_device(device)
    for one in models:
        if one.kind == ENCODER_KIND:
            yield replace(one, model=ClipEncoder(one.folder, device=device))
        else:
            yield replace(one, model=open_model(one.folder).to(on).eval())
