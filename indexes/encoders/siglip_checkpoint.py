"""SigLIP and SigLIP 2 checkpoints in the Hugging Face format (Zhai et al. 2023, Tschannen et al. 2025).

``model_type`` in ``config.json`` is ``siglip`` (SigLIP, and SigLIP 2 of a fixed resolution) or ``siglip2`` (SigLIP 2
NaFlex, which reads the patches of an image in its own aspect ratio). The text tower reads a text at its last position,
without a mask: texts are padded to the full context (64 tokens), as in training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.indexes.encoders.checkpoints import quiet_transformers, translate_load_errors
from pairwright.indexes.encoders.clip_checkpoint import (
    ClipCheckpoint,
    ClipTokenizer,
    check_weights_file,
    load_network,
    read_json,
    wrap_tokenizer,
)
from pairwright.indexes.encoders.image_preprocessing import preprocessing_from_transformers

if TYPE_CHECKING:
    from PIL import Image

SIGLIP: Final = "siglip"
NAFLEX: Final = "siglip2"
KINDS: Final[Mapping[str, str]] = {SIGLIP: "SiglipModel", NAFLEX: "Siglip2Model"}

_SIGLIP_RESAMPLE = 3  # bicubic; mean and deviation are 0.5
_HALF = [0.5, 0.5, 0.5]


@dataclass(frozen=True)
class PatchPreprocessing:
    """Preprocessing of NaFlex by transformers' processor: an image of any aspect ratio as at most so many patches.

    Attributes:
        settings: content of ``preprocessor_config.json``.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _processor(self) -> Any:
        transformers: Any = import_module("transformers")
        # The variant with Pillow, which is the only one before transformers 5.
        made: Any = getattr(transformers, "Siglip2ImageProcessorPil", None) or transformers.Siglip2ImageProcessor
        return made(**{name: value for name, value in self.settings.items() if not name.endswith("_type")})

    def of(self, image: "Image.Image") -> dict[str, NDArray[Any]]:
        """Return patches, their mask and the numbers of rows and columns of an image."""
        found = self._processor(images=[image.convert("RGB")], return_tensors="np")
        return {name: values[0] for name, values in found.items()}

    @staticmethod
    def stack(images: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Return the inputs of the vision tower for several images."""
        return {name: np.stack([image[name] for image in images]) for name in images[0]}


def read_siglip_checkpoint(model: str, folder: Path, kind: str) -> ClipCheckpoint:
    """Read a checkpoint of `KINDS`.

    Args:
        model: name for messages.
        folder: folder of its files.
        kind: its ``model_type``.

    Raises:
        InputError: if a file is missing or damaged, or the preprocessing is not supported.
    """
    transformers: Any = import_module("transformers")
    where = f"checkpoint {model}"
    check_weights_file(model, folder)
    settings = read_json(folder / "preprocessor_config.json")
    with quiet_transformers(), translate_load_errors(where):
        network_class = getattr(transformers, KINDS[kind], None)
        if network_class is None:
            raise InputError(
                f"transformers {transformers.__version__} has no {KINDS[kind]}",
                where=where,
                fix="Install transformers 4.50 or later.",
            )
        config = network_class.config_class.from_pretrained(folder, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = load_network(where, config, folder=folder, network_class=network_class)
    tokens = _wrap_padding_tokenizer(tokenizer, config.text_config.max_position_embeddings)
    if kind == NAFLEX:
        return ClipCheckpoint(network, tokens, PatchPreprocessing(settings), kind)
    pixels = preprocessing_from_transformers(
        {"resample": _SIGLIP_RESAMPLE, "image_mean": _HALF, "image_std": _HALF, **_without_crop(settings)},
        config.vision_config.image_size,
        str(folder / "preprocessor_config.json"),
    )
    return ClipCheckpoint(network, tokens, pixels, kind)


def _without_crop(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without null values, and with no crop, which SigLIP's processor does not have."""
    return {name: value for name, value in settings.items() if value is not None and "crop" not in name}


def _wrap_padding_tokenizer(tokenizer: Any, context: int) -> ClipTokenizer:
    def padded(texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = tokenizer(texts, padding="max_length", truncation=True, max_length=context)[
            "input_ids"
        ]
        return found

    plain = wrap_tokenizer(tokenizer)
    return ClipTokenizer(plain.ids, plain.vocabulary, padded)
