"""Any saved model or CLIP checkpoint by folder or name, as what it is."""

from pathlib import Path

import torch

from pairwright.datasets.errors import StorageError
from pairwright.training.models.checkpoints import read_description
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens import FocalLensClip
from pairwright.training.models.llava import Llava
from pairwright.training.models.mllm import FocalLensMllm
from pairwright.training.models.rationales import Student
from pairwright.training.models.react import ReactClip

Model = Clip | Student | Llava | FocalLensMllm

_KINDS: dict[str, type[Model]] = {
    kind.kind: kind for kind in (Clip, ReactClip, FocalLensClip, Llava, FocalLensMllm, Student)
}


def open_model(name: str, *, dtype: torch.dtype = torch.float32) -> Model:
    """Load a folder that one of this room's models was saved to, or else a CLIP checkpoint by folder or name.

    Raises:
        StorageError: when the folder is torn, or of a kind that is not known.
        MissingResource: when there is no such checkpoint.
        InputError: when it is damaged or not a CLIP.
    """
    kind = read_description(Path(name)).get("kind", Clip.kind)
    if kind not in _KINDS:
        raise StorageError(f"{name} holds a model of kind {kind!r}; known: {', '.join(_KINDS)}")
    return _KINDS[kind].load(name, dtype=dtype)
