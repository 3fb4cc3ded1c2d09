"""Models on this machine by their name, ``local:FOLDER`` or ``local:OWNER/NAME``, and what stands for one in a cache.

    model = find_local("local:models/small")
    model.name          # local:llama@3f2a9c1b2d4e, wherever the folder lies and whatever it is called

A name on the Hugging Face hub is looked up in the hub's own cache and downloaded when it is not there; a folder never
leads to the network. Weights are read from safetensors only: the older formats run code when they are opened.

The fingerprint is a hash over every byte that shapes an answer: weights, configuration, tokenizer, chat template. It
leaves out where the files lie and notes of paths and versions inside of them, so a folder that is copied or renamed
keeps its answers. Hashing reads the weights once, at about a second a GB.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import orjson

from pairwright.datasets.errors import InputError, MissingResourceError, UsageError
from pairwright.indexes.encoders.checkpoints import find_checkpoint_folder, find_weights_file

LOCAL_PREFIX = "local:"

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_TEXTS = ("*.json", "*.jinja", "*.txt", "*.model")  # configuration, tokenizer and chat template
_IGNORED_KEYS = frozenset({"_name_or_path", "name_or_path", "transformers_version", "_commit_hash"})
_BLOCK = 2**24  # bytes read at a time
_NEEDED = ("torch", "transformers", "safetensors")


def is_local(model: str) -> bool:
    """Return whether a model's name is that of a model on this machine."""
    return model.startswith(LOCAL_PREFIX)


@dataclass(frozen=True)
class LocalFolder:
    """A model on this machine.

    Attributes:
        given: its name or folder as the user wrote it, without ``local:``.
        path: the folder of its files.
        kind: ``model_type`` of its configuration, such as ``llama``.
    """

    given: str
    path: Path
    kind: str

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits over all that shapes an answer, the place of the files left out."""
        known = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in _files(self.path))
        return _fingerprint(known)

    @property
    def name(self) -> str:
        """What stands for the model in requests, rows and cache keys; it names no path."""
        return f"{LOCAL_PREFIX}{self.kind}@{self.fingerprint[:12]}"


def find_local_model(model: str) -> LocalFolder:
    """Find a model by its name, ``local:`` included. Its weights are neither read nor checked yet.

    Raises:
        UsageError: nothing stands behind ``local:``.
        MissingResource: packages are missing; or the hub does not give it.
        InputError: there is no such folder, or it holds no causal language model with weights as safetensors.
    """
    given = model.removeprefix(LOCAL_PREFIX).strip()
    if not given:
        raise UsageError(
            "local: names no model. Write local:FOLDER, or local:OWNER/NAME for one of the Hugging Face hub."
        )
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingResourceError(
            f"{model} needs {' and '.join(missing)}. Install what training needs: pip install 'pairwright[train]'"
        )
    folder = find_checkpoint_folder(given)
    kind = _kind(given, folder)
    find_weights_file(given, folder, _WEIGHTS)
    return LocalFolder(given, folder, kind)


def _kind(given: str, folder: Path) -> str:
    where = f"model {given}"
    try:
        config = orjson.loads((folder / "config.json").read_bytes())
    except OSError:
        raise InputError(
            "no config.json", where=where, fix="Name a folder that transformers' save_pretrained wrote."
        ) from None
    except orjson.JSONDecodeError:
        raise InputError("config.json is no JSON", where=where, fix="Fetch the model again.") from None
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str) or not kind:
        raise InputError("config.json names no model_type", where=where, fix="Name a model of transformers.")
    return kind


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
    """Return a JSON object without what other programs note in it about paths and versions; None for anything else."""
    try:
        value = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return orjson.dumps({name: inner for name, inner in value.items() if name not in _IGNORED_KEYS})
