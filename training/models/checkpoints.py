"""Checkpoint files: loading by name or path, and saving as folders of safetensors.

A checkpoint is anything that `transformers` reads: a folder or a name on the Hugging Face hub. A model that extends a
checkpoint (gated blocks, an instruction token, a projection) is a folder with transformers' files, the added weights in
``added.safetensors``, and its description in ``pairwright.json``, which is written last: a folder with it is complete.
Pickled weights (``pytorch_model.bin``) are left to transformers, which rejects unsafe ones.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.errors import InputError, MissingResourceError, StorageError, UsageError

ADDED_FILE = "added.safetensors"
DESCRIPTION_FILE = "pairwright.json"
VERSION = 1
_UNREADABLE = (OSError, ValueError, KeyError, SafetensorError, RuntimeError, ImportError, AttributeError)


def load_pretrained(kind: type[Any], name: str, *, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load the checkpoint ``name``, a folder or a name on the hub, as ``kind``, a class of transformers.

    Weights are float32 for training, also under autocast; transformers would use the file's type. Errors as of
    `explain_unreadable`.
    """
    with explain_unreadable(name):
        model, report = kind.from_pretrained(name, dtype=dtype, output_loading_info=True)
    if report["missing_keys"]:
        raise InputError(
            f"no weights for {min(report['missing_keys'])} and {len(report['missing_keys']) - 1} others",
            where=f"checkpoint {name}",
            fix=f"Pass a checkpoint of {kind.__name__}.",
        )
    assert isinstance(model, PreTrainedModel)
    for parameter in model.parameters():
        # Copy out of the mapped file: at unaligned addresses sums round differently, and a saved and loaded model would
        # differ in the last bit.
        parameter.data = parameter.data.clone()
    return model


def read_config(name: str) -> Any:
    """Load the config of the checkpoint ``name`` without its weights; errors as of `explain_unreadable`."""
    with explain_unreadable(name):
        return AutoConfig.from_pretrained(name)


def read_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of the checkpoint ``name``; errors as of `explain_unreadable`."""
    with explain_unreadable(name):
        tokenizer = AutoTokenizer.from_pretrained(name)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


@contextmanager
def explain_unreadable(name: str) -> Iterator[None]:
    """Translate what transformers raises on an unreadable checkpoint ``name`` into a one-line error.

    MissingResourceError: there is none, and it cannot be downloaded; InputError: it is damaged or of another kind.
    """
    is_path = Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1  # not owner/name
    if is_path and not Path(name).is_dir():
        raise MissingResourceError(f"checkpoint {name}: no such folder")
    try:
        yield
    except _UNREADABLE as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        if Path(name).is_dir():
            fix = "Pass a complete checkpoint of this kind in Hugging Face's format."
            raise InputError(first, where=f"checkpoint {name}", fix=fix) from error
        raise MissingResourceError(
            f"checkpoint {name}: {first}. Pass a folder with config.json and model.safetensors, or a name on the Hugging "
            "Face hub (which needs a connection once)."
        ) from error


def start_saving(folder: Path) -> None:
    """Create ``folder`` and remove its description until the new model is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DESCRIPTION_FILE).unlink(missing_ok=True)


def save_added_weights(folder: Path, weights: Mapping[str, Tensor], description: Mapping[str, object]) -> None:
    """Write the weights that a model adds to a checkpoint, if any, then its description and version as JSON."""
    if weights:
        save_weights(weights, folder / ADDED_FILE)
    write_text(folder / DESCRIPTION_FILE, json.dumps({"version": VERSION, **description}, indent=2) + "\n")


def read_description(folder: Path) -> dict[str, Any]:
    """Return the kind and settings of a saved model in ``folder``; empty for a checkpoint of transformers."""
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is damaged: {error}. Save the model again.") from error
    if not isinstance(found, dict) or found.pop("version", None) != VERSION:
        raise StorageError(f"{path} is not of version {VERSION}. Save the model again with this pairwright.")
    return found


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name, on the CPU."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{path} cannot be read: {error}. Save the model again.") from error


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters with gradients, by name."""
    return {name: one for name, one in model.named_parameters() if one.requires_grad}


def save_weights(weights: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors by name to ``path`` as safetensors, atomically; `read_weights` reads them."""
    with replace_atomically(path) as temporary:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, temporary)


def copy_weights(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy ``weights`` into ``parameters`` by name; UsageError with ``path`` if a name or shape differs."""
    shapes = {name: tuple(one.shape) for name, one in parameters.items()}
    given = {name: tuple(one.shape) for name, one in weights.items()}
    if shapes != given:
        name = min(name for name in shapes | given if shapes.get(name) != given.get(name))
        raise UsageError(
            f"{path}: {name} is {given.get(name, 'missing')} there and {shapes.get(name, 'unknown')} here. "
            "Build the model with the settings of the saved one."
        )
    with torch.no_grad():
        for name, one in parameters.items():
            one.copy_(weights[name])


def save_by_hub_names(model: PreTrainedModel) -> None:
    """Let ``save_pretrained`` write all weights by their names on the hub, which are those that vLLM reads.

    transformers writes the names that it has read. Of a model that was not read, or was saved as such, it writes the image
    tower's without their prefix (``vision_tower.embeddings`` for ``vision_tower.vision_model.embeddings``); of one read under
    ZeRO-3 other names than those read (Qwen2.5-VL: ``model.model.layers`` for ``model.layers``).
    """
    from transformers.conversion_mapping import get_model_conversion_mapping  # of version 5

    cast("Any", model)._weight_conversions = get_model_conversion_mapping(model, add_legacy=False)  # noqa: SLF001


def check_model_limits(config: Any, *, size: int, max_tokens: int) -> None:
    """Check image size and text length against the config of a model.

    ``config`` is of transformers: ``vision_config.image_size`` is compared with ``size``, the image side in pixels, and
    ``text_config.max_position_embeddings`` with ``max_tokens`` per text, where it has them.
    """
    pixels = getattr(getattr(config, "vision_config", None), "image_size", None)
    if isinstance(pixels, int) and pixels != size:
        raise UsageError(
            f"images of {size} pixels, but the vision tower reads {pixels}. Set the image size to {pixels}."
        )
    places = getattr(getattr(config, "text_config", None), "max_position_embeddings", None)
    if isinstance(places, int) and places < max_tokens:
        raise UsageError(
            f"texts of up to {max_tokens} tokens, but the text tower reads {places}. Set max_tokens to {places}."
        )
