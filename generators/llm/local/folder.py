"""Local models by name, ``local:FOLDER`` or ``local:OWNER/NAME``, and their fingerprints in cache keys.

    model = find_local_model("local:models/small")
    model.name          # local:llama@3f2a9c1b2d4e, independent of the folder's path

A name on the Hugging Face hub is looked up in the hub's cache and downloaded if missing; a folder never uses the network.
Only safetensors are loaded: older formats execute code.

The fingerprint is a hash of everything that shapes an answer: weights, configuration, tokenizer, chat template. Paths,
and path and version notes in the files, are excluded, so that a copied or renamed folder keeps its cached answers.
Hashing reads the weights once, at about 1 s per GB.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import orjson

from pairwright.datasets.errors import InputError, MissingResourceError, UsageError
from pairwright.indexes.encoders.checkpoints import find_checkpoint_folder, find_weights_file

LOCAL_PREFIX = "local:"

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_TEXTS = ("*.json", "*.jinja", "*.txt", "*.model")  # configuration, tokenizer and chat template
_IGNORED_KEYS = frozenset({"_name_or_path", "name_or_path", "transformers_version", "_commit_hash"})
_BLOCK = 2**24  # bytes per read
_VISION_KEYS = frozenset({"vision_config", "vision_tower", "visual"})
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_NEEDED = ("torch", "transformers", "safetensors")


def is_local(model: str) -> bool:
    """Return whether a model name is that of a local model."""
    return model.startswith(LOCAL_PREFIX)


@dataclass(frozen=True)
class LocalFolder:
    """Folder of a local model.

    Attributes:
        given: name or folder as given, without ``local:``.
        path: folder of its files.
        kind: ``model_type`` of its configuration, such as ``llama``.
        sees: whether it reads images: its configuration has a vision tower, and the folder a processor of images.
    """

    given: str
    path: Path
    kind: str
    sees: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that shapes an answer, 32 hex digits."""
        known = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in _files(self.path))
        return _fingerprint(known)

    @property
    def name(self) -> str:
        """Model name in requests, rows and cache keys; without path."""
        return f"{LOCAL_PREFIX}{self.kind}@{self.fingerprint[:12]}"


def find_local_model(model: str) -> LocalFolder:
    """Find a model by its name, including ``local:``. Weights are neither read nor checked.

    Raises:
        UsageError: nothing follows ``local:``.
        MissingResourceError: packages are missing, or the hub does not provide the model.
        InputError: the folder is missing, or has no causal language model with safetensors weights.
    """
    given = model.removeprefix(LOCAL_PREFIX).strip()
    if not given:
        raise UsageError("local: needs a model name: local:FOLDER, or local:OWNER/NAME of the Hugging Face hub.")
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingResourceError(
            f"{model} needs {' and '.join(missing)}. Install the training extra: pip install 'pairwright[train]'"
        )
    folder = find_checkpoint_folder(given)
    config = _config(given, folder)
    find_weights_file(given, folder, _WEIGHTS)
    sees = bool(config.keys() & _VISION_KEYS) and any((folder / name).is_file() for name in _PROCESSORS)
    return LocalFolder(given, folder, config["model_type"], sees)


def _config(given: str, folder: Path) -> dict[str, Any]:
    """Return the configuration of a model, which has a ``model_type``."""
    where = f"model {given}"
    try:
        config = orjson.loads((folder / "config.json").read_bytes())
    except OSError:
        raise InputError(
            "no config.json", where=where, fix="Use a folder written by transformers' save_pretrained."
        ) from None
    except orjson.JSONDecodeError:
        raise InputError("config.json is not JSON", where=where, fix="Download the model again.") from None
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str) or not kind:
        raise InputError("config.json has no model_type", where=where, fix="Use a model of transformers.")
    return cast("dict[str, Any]", config)


def _files(folder: Path) -> list[Path]:
    weights = [file for file in folder.glob("*.safetensors") if file.is_file()]
    texts = {file for pattern in _TEXTS for file in folder.glob(pattern) if file.is_file()}
    return sorted([*weights, *texts], key=lambda file: file.name)


@lru_cache(maxsize=8)
def _fingerprint(known: tuple[tuple[str, int, int], ...]) -> str:
    whole = blake2b(digest_size=16)
    for name, *_ in known:
        file = Path(name)
        whole.update(blake2b(file.name.encode()).digest() + _content(file))
    return whole.hexdigest()


def _content(file: Path) -> bytes:
    if file.suffix == ".json" and (plain := _without_ignored_keys(file)) is not None:
        return blake2b(plain).digest()
    held = blake2b()
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            held.update(block)
    return held.digest()


def _without_ignored_keys(file: Path) -> bytes | None:
    """Return a JSON object without path and version notes; None if the file is not an object."""
    try:
        value = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return orjson.dumps({name: inner for name, inner in value.items() if name not in _IGNORED_KEYS})
