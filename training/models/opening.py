"""Any saved model or CLIP checkpoint by folder or name, as what it is."""

from pathlib import Path

import torch

from pairwright.datasets.errors import InputError, StorageError
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


def model_folder(name: str) -> str:
    """Return where the weights of ``name`` are: in ``model`` where it is the folder of a run, else what was given.

    Raises:
        InputError: a run that has not ended.
    """
    run = Path(name)
    if not (run / "run.json").is_file():
        return name
    if not (run / "model").is_dir():
        raise InputError("a run that has not ended: it holds no model yet", where=name, mend="Train on: --resume.")
    return str(run / "model")
