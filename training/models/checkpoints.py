"""Reading checkpoints by name or path, and writing models as folders of safetensors.

A checkpoint is whatever `transformers` reads: a folder, or a name on the Hugging Face hub. A model of this room that is
more than a checkpoint of theirs (gated blocks, an instruction token, a projection) is a folder as well: their files for
the parts that are theirs, ours in ``added.safetensors``, and ``pairwright.json`` that says what it is. The description
is written last, so a folder that has one is whole.

Not covered: weights in pickles (``pytorch_model.bin``) are left to transformers, which refuses unsafe ones.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def load_pretrained(kind: type[Any], name: str, *, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load the checkpoint ``name`` as ``kind``, a class of transformers.

    Args:
        kind: the model class, or an ``AutoModelFor...``.
        name: a folder or a name on the hub.
        dtype: of the weights in memory. Float32 is what one trains, under autocast too; transformers itself would take
            the file's.

    Raises:
        MissingResource: when there is no such checkpoint and it cannot be downloaded.
        InputError: when it is damaged, or of another kind.
    """
    _check_there(name)
    try:
        model, report = kind.from_pretrained(name, dtype=dtype, output_loading_info=True)
    except (OSError, ValueError, KeyError, SafetensorError, RuntimeError) as error:
        raise explain_unreadable(name, error) from error
    if report["missing_keys"]:
        raise InputError(
            f"no weights for {min(report['missing_keys'])} and {len(report['missing_keys']) - 1} others",
            where=f"checkpoint {name}",
            fix=f"Is it the model that is meant here ({kind.__name__})?",
        )
    assert isinstance(model, PreTrainedModel)
    for parameter in model.parameters():
        # Out of the mapped file: at an odd address sums are rounded otherwise, and a model that was saved and loaded
        # would differ from itself in the last bit.
        parameter.data = parameter.data.clone()
    return model


def read_config(name: str) -> Any:
    """Load the config of the checkpoint ``name``, which tells what kind of model it is; its weights are not read.

    Raises:
        MissingResource: when there is no such checkpoint and it cannot be downloaded.
        InputError: when it has no config that transformers knows.
    """
    _check_there(name)
    try:
        return AutoConfig.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        raise explain_unreadable(name, error) from error


def read_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer that lies beside the checkpoint ``name``.

    Raises:
        MissingResource: when there is none.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        raise explain_unreadable(name, error) from error
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


def _check_there(name: str) -> None:
    if _is_path(name) and not Path(name).is_dir():
        raise MissingResourceError(f"checkpoint {name}: there is no such folder")


def _is_path(name: str) -> bool:
    """Tell a path from a name on the hub (``owner/name``), for which one would have to be asked the network."""
    return Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1


def explain_unreadable(name: str, error: Exception) -> InputError | MissingResourceError:
    """Say in one line why the checkpoint ``name`` cannot be read."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    if Path(name).is_dir():
        return InputError(
            first, where=f"checkpoint {name}", fix="It must be whole, in Hugging Face's format, and of this kind."
        )
    return MissingResourceError(
        f"checkpoint {name}: {first}. Give a folder with config.json and model.safetensors, or a name on the Hugging "
        "Face hub (which needs a connection once)."
    )


def start_saving(folder: Path) -> None:
    """Make ``folder``, and take its description away, if it has one, until the new model is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DESCRIPTION_FILE).unlink(missing_ok=True)


def save_added_weights(folder: Path, weights: Mapping[str, Tensor], description: Mapping[str, object]) -> None:
    """Write what a model adds to a checkpoint: its weights, then its description.

    Args:
        folder: where the checkpoint's own files stand already.
        weights: by name; may be empty, then no file is written.
        description: JSON; ``version`` is added.
    """
    if weights:
        with replace_atomically(folder / ADDED_FILE) as temporary:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, temporary)
    write_text(folder / DESCRIPTION_FILE, json.dumps({"version": VERSION, **description}, indent=2) + "\n")


def read_description(folder: Path) -> dict[str, Any]:
    """Return what `save_added_weights` described in ``folder``; empty for a checkpoint of transformers.

    Raises:
        StorageError: when it is torn or of another version.
    """
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path} is torn: {error}. Save the model again.") from error
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise StorageError(f"{path} is not of version {VERSION}. Save the model again with this pairwright.")
    return found


def read_added_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights that `save_added_weights` wrote.

    Raises:
        StorageError: when the file is missing or torn.
    """
    return read_weights(folder / ADDED_FILE)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return a safetensors file's tensors by name, on the CPU.

    Raises:
        StorageError: when the file is missing or torn.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"{path} cannot be read: {error}. Save the model again.") from error


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """Return copies on the CPU of the parameters that are trained, by name: what a run has to keep of a frozen model."""
    return {
        name: parameter.detach().cpu().clone()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def save_trained(model: nn.Module, path: Path) -> None:
    """Write `trained_state` to ``path`` as safetensors, whole or not at all."""
    with replace_atomically(path) as temporary:
        save_file(trained_state(model), temporary)


def load_trained(model: nn.Module, path: Path) -> None:
    """Put what `save_trained` wrote into ``model``, whose same parameters must be trained.

    Raises:
        StorageError: when the file is missing or torn.
        UsageError: when the names or shapes are not those that ``model`` trains.
    """
    copy_weights({name: one for name, one in model.named_parameters() if one.requires_grad}, read_weights(path), path)


def copy_weights(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy ``weights`` into ``parameters``, name by name.

    Raises:
        UsageError: when a name or a shape differs; ``path`` is named.
    """
    shapes = {name: tuple(one.shape) for name, one in parameters.items()}
    given = {name: tuple(one.shape) for name, one in weights.items()}
    if shapes != given:
        name = min(name for name in shapes | given if shapes.get(name) != given.get(name))
        raise UsageError(
            f"{path}: {name} is {given.get(name, 'missing')} there and {shapes.get(name, 'unknown')} here. "
            "Build the model with the settings that it was saved with."
        )
    with torch.no_grad():
        for name, one in parameters.items():
            one.copy_(weights[name])
