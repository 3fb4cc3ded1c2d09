"""Text and image encoder: CLIP (Radford et al. 2021), any checkpoint of it by folder or name.

REACT (section "Retrieving customised knowledge") searches a pool with the towers of a contrastive model: captions
against a query's text vector (text to text) and images against the same vector (text to image). Both towers here give
rows in one space.

What ``model`` may be: a folder or a hub name in Hugging Face's format, one in OpenCLIP's own, or ``ARCH::pretrained``
with OpenCLIP installed (`openclip.py` says which of them). Empty stands for ``openai/clip-vit-base-patch32``, the model
that LAION-400M's published vectors were made with.

Texts longer than the model reads (77 tokens) keep their beginning and the end mark, and are counted. Texts of a call are
sorted by length before they are batched, so that little is padded; a text is read up to its end mark only, so neither
padding nor neighbours enter its row. In another batch, or elsewhere in one, a row differs by float rounding: 1.2e-7 in a
coordinate was measured for a ViT-B/32 on a CPU, where 1 and 2 threads gave the same bytes, as did the same call twice.
Half precision moves a row by less than 1e-5 in cosine (ViT-B/32 with random weights; no trained one was at hand).

Not covered: rows on GPUs are not promised to be the same bytes from run to run.
"""

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import InputError, MissingResourceError
from pairwright.indexes.encoders import clip_checkpoint, openclip_checkpoint
from pairwright.indexes.encoders.checkpoints import find_checkpoint_folder
from pairwright.indexes.encoders.clip_checkpoint import ClipCheckpoint
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
    import torch
    from PIL import Image

NAME = "clip"
VERSION = 1
DEFAULT_MODEL = "openai/clip-vit-base-patch32"

_DEFAULT_BATCH = 128
_MAX_THREADS = 8  # that make images ready while a GPU waits for them; about 250 images a second each


class ClipEncoder:
    """A loaded CLIP: a text tower and an image tower.

    Attributes:
        model: folder, hub name or ``ARCH::pretrained``, as saved.
        half: weights rounded to 16 bits.
        fingerprint: 32 hex digits over the weights and all settings that change a row.
        truncated: texts so far that were longer than the model reads.
    """

    def __init__(
        self, model: str = "", *, device: str = "", half: bool = False, batch_size: int = _DEFAULT_BATCH
    ) -> None:
        """Load the checkpoint.

        Raises:
            MissingResource: when transformers, OpenCLIP (for its names) or the checkpoint is not there.
            InputError: when the checkpoint is damaged or not a CLIP that can be read here.
            UsageError: when the device cannot be used.
        """
        self.model = absolute_model_name(model or DEFAULT_MODEL)
        self.half = half
        self.truncated = 0
        self._batch_size = batch_size
        if any(importlib.util.find_spec(package) is None for package in ("torch", "transformers")):
            raise MissingResourceError(
                "encoder clip: torch or transformers is not installed. pip install 'pairwright[clip]'"
            )
        self._device = choose_device(device)
        self._parts = _read_checkpoint(self.model)
        self.fingerprint = self._fingerprint()
        self._network = self._parts.network
        move_to_device(self._network, self._device, half=half)

    @property
    def name(self) -> str:
        """Always ``clip``."""
        return NAME

    @property
    def version(self) -> int:
        """Of the method."""
        return VERSION

    @property
    def dim(self) -> int:
        """Length of a vector of either tower; 512 for ViT-B/32."""
        return int(self._parts.network.config.projection_dim)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row a text, float32 (len(texts), dim)."""
        rows = np.empty((len(texts), self.dim), np.float32)
        ids = self._cut(self._parts.tokens.ids(replace_lone_surrogates(texts))) if texts else []
        order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            rows[batch] = self._text_rows([ids[number] for number in batch])
        return rows

    def encode_images(self, images: "Sequence[Image.Image]") -> Vectors:
        """Return one unit row an image, float32 (len(images), dim)."""
        rows = np.empty((len(images), self.dim), np.float32)
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
            for start in range(0, len(images), self._batch_size):
                batch = images[start : start + self._batch_size]
                # Each image once: Pillow decodes lazily, and not safely for two threads that hold the same image.
                different = {id(image): image for image in batch}
                pixels = dict(zip(different, threads.map(self._parts.pixels.of, different.values()), strict=True))
                rows[start : start + len(batch)] = self._image_rows(np.stack([pixels[id(image)] for image in batch]))
        return rows

    def save(self, path: Path) -> None:
        """Write the checkpoint's name and fingerprint to ``path``; the weights stay where they are."""
        SavedModelReference(NAME, VERSION, self.model, self.half, self.dim, self.fingerprint).write(path)

    @classmethod
    def load(cls, path: Path, *, device: str = "", model: str = "") -> "ClipEncoder":
        """Load the encoder that ``path`` names.

        Args:
            path: what `save` wrote.
            device: as in the constructor.
            model: where the checkpoint is now, when it was moved.

        Raises:
            StorageError: when the file is torn, or the checkpoint has changed since.
            MissingResource: when a package or the checkpoint is not there.
        """
        saved = SavedModelReference.read(path, NAME, VERSION)
        encoder = cls(model or saved.model, device=device, half=saved.half)
        saved.check(encoder.fingerprint, path, encoder.model)
        return encoder

    def _cut(self, ids: list[list[int]]) -> list[list[int]]:
        limit = self._config.text_config.max_position_embeddings
        self.truncated += sum(len(tokens) > limit for tokens in ids)
        return [tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]] for tokens in ids]

    def _text_rows(self, ids: list[list[int]]) -> Vectors:
        import torch

        # Padded with the end mark itself: the model reads a text at its first end mark, and looks only backwards.
        longest = max(map(len, ids))
        padded = torch.tensor([tokens + [tokens[-1]] * (longest - len(tokens)) for tokens in ids], device=self._device)
        with torch.inference_mode():
            network = self._network
            return self._unit(network.text_projection(network.text_model(input_ids=padded).pooler_output))

    def _image_rows(self, pixels: NDArray[np.float32]) -> Vectors:
        import torch

        with torch.inference_mode():
            network = self._network
            seen = network.vision_model(pixel_values=torch.from_numpy(pixels).to(self._device, network.dtype))
            return self._unit(network.visual_projection(seen.pooler_output))

    def _unit(self, rows: "torch.Tensor") -> Vectors:
        return normalise_rows(rows.float().cpu().numpy(), self.model)

    @property
    def _config(self) -> Any:
        return self._parts.network.config

    def _fingerprint(self) -> str:
        towers = (self._config.text_config, self._config.vision_config)
        settings = {
            "towers": [[tower.hidden_act, tower.num_attention_heads, tower.layer_norm_eps] for tower in towers],
            "tokenizer": fingerprint_tokenizer(self._parts.tokens.ids, self._parts.tokens.vocabulary),
            "pixels": asdict(self._parts.pixels),
            "half": self.half,
        }
        return fingerprint_weights([NAME, VERSION], self._parts.network.parameters(), settings)


def _read_checkpoint(model: str) -> ClipCheckpoint:
    if openclip_checkpoint.SEPARATOR in model:
        return openclip_checkpoint.read_with_open_clip(model)
    folder = find_checkpoint_folder(model)
    if (folder / clip_checkpoint.CONFIG_FILE).is_file():
        return clip_checkpoint.read_transformers_checkpoint(model, folder)
    if (folder / openclip_checkpoint.CONFIG_FILE).is_file():
        return openclip_checkpoint.read_openclip_checkpoint(model, folder)
    raise InputError(
        f"holds neither {clip_checkpoint.CONFIG_FILE} nor {openclip_checkpoint.CONFIG_FILE}",
        where=f"checkpoint {model}",
        fix="Name a CLIP checkpoint in Hugging Face's or OpenCLIP's format.",
    )
