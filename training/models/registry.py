"""Registry of the model classes; opens any saved model or checkpoint of transformers by folder or name."""

from pathlib import Path

from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from pairwright.datasets.errors import InputError, StorageError
from pairwright.training.models.checkpoints import read_config, read_description
from pairwright.training.models.clip import Clip
from pairwright.training.models.extended_clip import FocalLensClip, ReactClip
from pairwright.training.models.focallens_mllm import FocalLensMllm
from pairwright.training.models.generative import EncoderDecoder, ImageTextModel

Model = Clip | EncoderDecoder | ImageTextModel | FocalLensMllm

_KINDS: dict[str, type[Model]] = {
    kind.kind: kind for kind in (Clip, ReactClip, FocalLensClip, ImageTextModel, FocalLensMllm, EncoderDecoder)
}


def open_model(name: str) -> Model:
    """Load a saved model, or a checkpoint of transformers, by folder or name; errors as of `model_kind`, or damaged weights."""
    return _KINDS[model_kind(name)].load(name)


def model_kind(name: str) -> str:
    """Return the kind of a model without reading its weights; PairwrightError if there is none that is supported."""
    kind = read_description(Path(name)).get("kind")
    if kind is not None and kind not in _KINDS:
        raise StorageError(f"{name} has the unknown kind {kind!r}; known: {', '.join(_KINDS)}")
    if kind is not None:
        return str(kind)
    config = read_config(name)
    if config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        return ImageTextModel.kind
    if config.is_encoder_decoder:
        return EncoderDecoder.kind
    if config.model_type == Clip.kind:
        return Clip.kind
    raise InputError(
        f"a checkpoint of kind {config.model_type}, which is not trained",
        where=name,
        fix="Pass a CLIP, an image-text-to-text model such as LLaVA, an encoder-decoder such as T5, or a model of "
        "`pairwright train`.",
    )


def model_folder(name: str) -> str:
    """Return the folder of the weights of ``name``: ``model`` in the folder of a run, else ``name`` itself."""
    run = Path(name)
    if not (run / "run.json").is_file():
        return name
    if not (run / "model").is_dir():
        raise InputError("the run has not ended and has no model yet", where=name, fix="Continue it with --resume.")
    return str(run / "model")
