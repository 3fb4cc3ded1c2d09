"""Lookup of model checkpoints in a folder or on the Hugging Face hub, and translation of their load errors.

A folder never causes network access. A hub name is looked up in the cache and downloaded if missing; of weights stored in
several formats only the preferred one is downloaded.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, MissingResourceError, PairwrightError

CONFIG_PATTERNS = ("*.json", "*.txt", "*/config.json")  # settings and tokenizers; the last of sub-modules

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def find_checkpoint_folder(model: str) -> Path:
    """Return the folder of ``model`` with its configuration files; `find_weights_file` downloads the weights.

    Args:
        model: a folder, or a hub name (``owner/name``, with or without ``hf-hub:`` before it).

    Raises:
        InputError: if it looks like a path but is not a folder.
        MissingResourceError: if it cannot be downloaded.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    name = model.removeprefix("hf-hub:")
    if not _HUB_NAME.fullmatch(name):
        raise InputError("no such folder", where=f"checkpoint {model}", fix="Name a folder or a hub name, owner/name.")
    return _download_snapshot(name, CONFIG_PATTERNS)


def find_weights_file(model: str, folder: Path, wanted: Sequence[str]) -> Path:
    """Return the first of the files ``wanted`` that is in ``folder`` or, for a hub name, on the hub.

    Args:
        model: argument of `find_checkpoint_folder`.
        folder: result of `find_checkpoint_folder`.
        wanted: file names, preferred first. ``x.safetensors.index.json`` means the sharded weights that it lists.

    Raises:
        InputError: if there are no weights.
        MissingResourceError: if the hub cannot be reached.
    """
    on_hub = not Path(model).expanduser().is_dir()
    for name in wanted:
        parts = _shard_pattern(name)
        if on_hub:
            _download_snapshot(model.removeprefix("hf-hub:"), (name, parts))
        if (folder / name).is_file() and any(folder.glob(parts)):
            return folder / name
    raise InputError("no weights", where=f"checkpoint {model}", fix=f"It must contain one of: {', '.join(wanted)}.")


@contextmanager
def translate_load_errors(where: str) -> Iterator[None]:
    """Convert any error of a library on a damaged checkpoint within the block to InputError."""
    try:
        yield
    except PairwrightError:
        raise
    except Exception as error:  # noqa: BLE001 - tokenizers raises the bare Exception on a torn file, safetensors its own
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"cannot be loaded ({reason})", where=where, fix="Fetch it again.") from None


def _shard_pattern(name: str) -> str:
    stem, mark, suffix = name.removesuffix(".index.json").rpartition(".")
    return f"{stem}-*{mark}{suffix}" if name.endswith(".index.json") else name


def _download_snapshot(name: str, patterns: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(patterns)))
    except (OSError, ValueError, RuntimeError) as error:  # covers all errors of huggingface_hub
        reason = str(error).strip().split("\n")[0]
        raise MissingResourceError(
            f"checkpoint {name}: no such folder, and not available on the Hugging Face hub ({reason}). "
            "Check the name and the network, or pass the folder of a checkpoint."
        ) from None


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the progress bars and load reports of transformers within the block."""
    logging: Any = import_module("transformers.utils.logging")  # its functions are untyped
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
