"""CLIP checkpoints: their parts, and the reader of the Hugging Face format.

A folder in this format holds ``config.json`` (``model_type`` is ``clip``), weights, tokenizer and
``preprocessor_config.json``. `openclip_checkpoint` reads the format of OpenCLIP into the same parts, `siglip_checkpoint` SigLIP.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from pairwright.datasets.errors import InputError
from pairwright.indexes.encoders.checkpoints import find_weights_file, quiet_transformers, translate_load_errors
from pairwright.indexes.encoders.image_preprocessing import preprocessing_from_transformers

if TYPE_CHECKING:
    import torch
    from PIL import Image

CONFIG_FILE = "config.json"
CLIP_KIND = "clip"

_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


@dataclass(frozen=True, eq=False)
class ClipTokenizer:
    """Tokenizer of a CLIP checkpoint.

    Attributes:
        ids: returns the tokens of texts, untruncated, with start and end token.
        vocabulary: token to number.
        padded: returns the tokens, truncated and padded to the context; None for a model that reads a text at its end token.
    """

    ids: Callable[[list[str]], list[list[int]]]
    vocabulary: Mapping[str, int]
    padded: Callable[[list[str]], list[list[int]]] | None = None


class ImageInputs(Protocol):
    """Preprocessing of images for a vision tower; a frozen dataclass."""

    def of(self, image: "Image.Image") -> Any:
        """Return one preprocessed image."""
        ...

    def stack(self, images: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Return the inputs of the tower for several preprocessed images."""
        ...


@dataclass(frozen=True, eq=False)
class ClipCheckpoint:
    """The parts of a CLIP checkpoint.

    Attributes:
        network: transformers' CLIPModel (or SigLIP's), float32 on the CPU (`Any`: its types differ between versions).
        tokens: tokenizer.
        pixels: image preprocessing.
        kind: ``model_type`` of transformers.
    """

    network: Any
    tokens: ClipTokenizer
    pixels: ImageInputs
    kind: str = CLIP_KIND


def read_transformers_checkpoint(model: str, folder: Path) -> ClipCheckpoint:
    """Read a checkpoint in the Hugging Face format.

    Args:
        model: name for messages.
        folder: folder of its files.

    Raises:
        InputError: if a file is missing or damaged, or the model is of another kind.
    """
    transformers: Any = import_module("transformers")
    where = f"checkpoint {model}"
    check_weights_file(model, folder)
    settings = read_json(folder / "preprocessor_config.json")
    with quiet_transformers(), translate_load_errors(where):
        config = transformers.CLIPConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = load_network(where, config, folder=folder)
    pixels = preprocessing_from_transformers(
        settings, config.vision_config.image_size, str(folder / "preprocessor_config.json")
    )
    return ClipCheckpoint(network, wrap_tokenizer(tokenizer), pixels)


def check_weights_file(model: str, folder: Path) -> None:
    """Check that the weights are there, and download those of a hub name; errors as of `find_weights_file`."""
    find_weights_file(model, folder, _WEIGHT_FILES)


def load_network(
    where: str,
    config: Any,
    *,
    folder: Path | None = None,
    weights: "Mapping[str, torch.Tensor] | None" = None,
    network_class: Any = None,
) -> Any:
    """Return the network with the weights of ``folder``, or with ``weights``; float32.

    Raises:
        InputError: if a weight is missing or of another shape. Other tensors are ignored.
    """
    import torch

    model: Any = network_class or import_module("transformers").CLIPModel
    with quiet_transformers():
        network, report = model.from_pretrained(
            folder,
            config=config,
            state_dict=weights,
            local_files_only=True,
            output_loading_info=True,
            dtype=torch.float32,
        )
    missing = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if missing:
        raise InputError(
            f"{len(missing)} weights are missing or of another shape, such as {missing[0]}",
            where=where,
            fix="Download it again.",
        )
    return network


def wrap_tokenizer(tokenizer: Any) -> ClipTokenizer:
    """Wrap a transformers tokenizer, without truncation and padding."""

    def ids(texts: list[str]) -> list[list[int]]:
        # verbose=False: the encoder counts texts over the limit instead.
        found: list[list[int]] = tokenizer(texts, truncation=False, padding=False, verbose=False)["input_ids"]
        return found

    return ClipTokenizer(ids, tokenizer.get_vocab())


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file of a checkpoint.

    Raises:
        InputError: if it is missing or damaged.
    """
    try:
        content: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"cannot be read ({error})", where=str(path), fix="Use a folder with a complete checkpoint."
        ) from None
    return content
