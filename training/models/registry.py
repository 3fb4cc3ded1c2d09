"""Any saved model or checkpoint of transformers by folder or name, as what it is."""

from pathlib import Path

import torch

from pairwright.datasets.errors import InputError, StorageError
from pairwright.training.models.checkpoints import read_config, read_description
from pairwright.training.models.clip import Clip
from pairwright.training.models.encoder_decoder import EncoderDecoder
from pairwright.training.models.focallens_clip import FocalLensClip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.llava import Llava
from pairwright.training.models.react_clip import ReactClip

Model = Clip | EncoderDecoder | Llava | FocalLensMllm

_KINDS: dict[str, type[Model]] = {
    kind.kind: kind for kind in (Clip, ReactClip, FocalLensClip, Llava, FocalLensMllm, EncoderDecoder)
}


def open_model(name: str, *, dtype: torch.dtype = torch.float32) -> Model:
    """Load a folder that one of this room's models was saved to, or a checkpoint of transformers by folder or name.

    Raises:
        StorageError: when the folder is torn, or of a kind that is not known.
        MissingResource: when there is no such checkpoint.
        InputError: when it is damaged, or of a kind that is not read.
    """
    return _KINDS[model_kind(name)].load(name, dtype=dtype)


def model_kind(name: str) -> str:
    """Say which of this room's models ``name`` is, without reading its weights.

    Checkpoints of transformers are a ``clip``, a ``llava`` or, any encoder-decoder, a ``student``.

    Raises:
        StorageError: when the folder is torn, or of a kind that is not known.
        MissingResource: when there is no such checkpoint.
        InputError: when it is of a kind that is not read.
    """
    kind = read_description(Path(name)).get("kind")
    if kind is not None and kind not in _KINDS:
        raise StorageError(f"{name} holds a model of kind {kind!r}; known: {', '.join(_KINDS)}")
    return kind or _kind_of_checkpoint(name)


def _kind_of_checkpoint(name: str) -> str:
    config = read_config(name)
    if config.is_encoder_decoder:
        return EncoderDecoder.kind
    if config.model_type in (Clip.kind, Llava.kind):
        return str(config.model_type)
    raise InputError(
        f"a checkpoint of kind {config.model_type}",
        where=name,
        fix="Give a CLIP, a LLaVA, an encoder-decoder such as T5, or a model that `pairwright train` has written.",
    )


def model_folder(name: str) -> str:
    """Return where the weights of ``name`` are: in ``model`` where it is the folder of a run, else what was given.

    Raises:
        InputError: a run that has not ended.
    """
    run = Path(name)
    if not (run / "run.json").is_file():
        return name
    if not (run / "model").is_dir():
        raise InputError("a run that has not ended: it holds no model yet", where=name, fix="Train on: --resume.")
    return str(run / "model")
