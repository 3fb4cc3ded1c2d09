"""Where a checkpoint lies: a folder as it is, or a name on the Hugging Face hub as the folder of its downloaded files.

A folder never leads to the network. A name is looked up in the hub's cache and downloaded when it is not there; of
weights that are stored in several formats only the first that is wanted is fetched.

----
Loads models without their libraries' progress bars and load reports: what is wrong with a load is raised instead.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, MissingResourceError, PairwrightError

CONFIG_PATTERNS = (
    "*.json",
    "*.txt",
    "*/config.json",
)  # small files: settings and tokenizers; the last are modules' own

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def find_checkpoint_folder(model: str) -> Path:
    """Return the folder of ``model`` with its small files; `find_weights_file` fetches the weights.

    Args:
        model: a folder, or a hub name (``owner/name``, with or without ``hf-hub:`` before it).

    Raises:
        InputError: when it looks like a path and is no folder.
        MissingResource: when the hub does not give it.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    name = model.removeprefix("hf-hub:")
    if not _HUB_NAME.fullmatch(name):
        raise InputError("no such folder", where=f"checkpoint {model}", fix="Name a folder or a hub name, owner/name.")
    return _download_snapshot(name, CONFIG_PATTERNS)


def find_weights_file(model: str, folder: Path, wanted: Sequence[str]) -> Path:
    """Return the first of the files ``wanted`` that ``folder`` holds or, for a hub name, that the hub gives.

    Args:
        model: as it was given to `find_checkpoint_folder`.
        folder: what that returned.
        wanted: names, the best first. ``x.safetensors.index.json`` stands for the weights in parts that it lists.

    Raises:
        InputError: when there is none.
        MissingResource: when the hub cannot be asked.
    """
    on_hub = not Path(model).expanduser().is_dir()
    for name in wanted:
        parts = _shard_pattern(name)
        if on_hub:
            _download_snapshot(model.removeprefix("hf-hub:"), (name, parts))
        if (folder / name).is_file() and any(folder.glob(parts)):
            return folder / name
    raise InputError("no weights", where=f"checkpoint {model}", fix=f"It has to hold one of: {', '.join(wanted)}.")


@contextmanager
def translate_load_errors(where: str) -> Iterator[None]:
    """Turn whatever a library raises on a damaged checkpoint within the block into InputError."""
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
    except (OSError, ValueError, RuntimeError) as error:  # the hub's errors are all of these kinds
        reason = str(error).strip().split("\n")[0]
        raise MissingResourceError(
            f"checkpoint {name}: no such folder here, and the Hugging Face hub does not give it ({reason}). "
            "Check the name and the network, or name a folder that holds the checkpoint."
        ) from None


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Let transformers print nothing below an error within the block."""
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
