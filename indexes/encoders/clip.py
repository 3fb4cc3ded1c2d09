"""CLIP encoder of texts and images (Radford et al. 2021), and SigLIP.

REACT (section "Retrieving customised knowledge") searches a pool with a contrastive model: captions (text to text) and
images (text to image) against the text vector of a query. Both towers give rows in one space.

``model`` is a folder or a hub name in the format of Hugging Face or OpenCLIP, or ``ARCH::pretrained`` with OpenCLIP
installed (see `openclip_checkpoint`). SigLIP and SigLIP 2 are read in the format of Hugging Face
(`siglip_checkpoint`); their cosines are lower than CLIP's. The default is ``openai/clip-vit-base-patch32``, which made the published vectors
of LAION-400M.

Texts over the limit of the model (77 tokens, SigLIP 64) are truncated before the end token, and counted. The texts of a call are
sorted by length to reduce padding; padding and neighbours do not affect a row except by float rounding (1.2e-7 per
coordinate, ViT-B/32 on a CPU). On a CPU, the same call gives the same bytes, with 1 or 2 threads; on GPUs this is not
guaranteed. Half precision changes a row by less than 1e-5 in cosine (ViT-B/32 with random weights).
"""

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pairwright.datasets.errors import InputError, MissingResourceError
from pairwright.indexes.encoders import clip_checkpoint, openclip_checkpoint, siglip_checkpoint
from pairwright.indexes.encoders.checkpoints import find_checkpoint_folder
from pairwright.indexes.encoders.clip_checkpoint import ClipCheckpoint
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
    import torch
    from PIL import Image

NAME = "clip"
VERSION = 1
DEFAULT_MODEL = "openai/clip-vit-base-patch32"

_DEFAULT_BATCH = 128
_MAX_THREADS = 8  # for image preprocessing; about 250 images per second each


class ClipEncoder(PretrainedEncoder):
    """A loaded CLIP checkpoint with text and image tower; ``model``: folder, hub name or ``ARCH::pretrained``."""

    name = NAME
    version = VERSION

    def __init__(
        self, model: str = "", *, device: str = "", half: bool = False, batch_size: int = _DEFAULT_BATCH
    ) -> None:
        """Load the checkpoint.

        Raises:
            MissingResourceError: if transformers, OpenCLIP (for its names) or the checkpoint is missing.
            InputError: if the checkpoint is damaged or not a supported CLIP.
            UsageError: if the device cannot be used.
        """
        super().__init__(model or DEFAULT_MODEL, half=half)
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
    def dim(self) -> int:
        """Length of a vector of either tower; 512 for ViT-B/32."""
        if self._parts.kind == clip_checkpoint.CLIP_KIND:
            return int(self._config.projection_dim)
        return int(self._config.text_config.projection_size)

    @property
    def image_size(self) -> int:
        """Side of the square that an image becomes, in pixels; 0 for a model that reads images in their own shape."""
        return int(getattr(self._parts.pixels, "size", 0))

    @property
    def context(self) -> int:
        """Maximum tokens of a text, including start and end token."""
        return int(self._config.text_config.max_position_embeddings)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, float32 (len(texts), dim)."""
        rows = np.empty((len(texts), self.dim), np.float32)
        ids = self._tokenize(replace_lone_surrogates(texts)) if texts else []
        order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            rows[batch] = self._text_rows([ids[number] for number in batch])
        return rows

    def encode_images(self, images: "Sequence[Image.Image]") -> Vectors:
        """Return one unit row per image, float32 (len(images), dim)."""
        rows = np.empty((len(images), self.dim), np.float32)
        with ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
            for start in range(0, len(images), self._batch_size):
                batch = images[start : start + self._batch_size]
                # Each image object once: Pillow's lazy decoding is not thread-safe for one image.
                distinct = {id(image): image for image in batch}
                pixels = dict(zip(distinct, threads.map(self._parts.pixels.of, distinct.values()), strict=True))
                rows[start : start + len(batch)] = self._image_rows([pixels[id(image)] for image in batch])
        return rows

    def _tokenize(self, texts: list[str]) -> list[list[int]]:
        """Return the tokens of each text, no more than the model reads."""
        tokenizer, limit = self._parts.tokens, self._config.text_config.max_position_embeddings
        ids = tokenizer.ids(texts)
        self.truncated += sum(len(tokens) > limit for tokens in ids)
        if tokenizer.padded is not None:
            return tokenizer.padded(texts)
        return [tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]] for tokens in ids]

    def _text_rows(self, ids: list[list[int]]) -> Vectors:
        import torch

        # Padded with the end token: the model reads a text at its first end token and attends only backwards.
        longest = max(map(len, ids))
        padded = torch.tensor([tokens + [tokens[-1]] * (longest - len(tokens)) for tokens in ids], device=self._device)
        with torch.inference_mode():
            network = self._network
            pooled = network.text_model(input_ids=padded).pooler_output
            return self._unit(self._projected(pooled, "text_projection"))

    def _image_rows(self, images: Sequence[Any]) -> Vectors:
        import torch

        inputs = {
            name: torch.from_numpy(rows).to(self._device) for name, rows in self._parts.pixels.stack(images).items()
        }
        with torch.inference_mode():
            network = self._network
            inputs["pixel_values"] = inputs["pixel_values"].to(network.dtype)
            return self._unit(self._projected(network.vision_model(**inputs).pooler_output, "visual_projection"))

    def _projected(self, pooled: "torch.Tensor", projection: str) -> "torch.Tensor":
        """Return the rows in the shared space; the towers of SigLIP project in their heads."""
        if self._parts.kind != clip_checkpoint.CLIP_KIND:
            return pooled
        found: torch.Tensor = getattr(self._network, projection)(pooled)
        return found

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
            "pixels": asdict(self._parts.pixels),  # type: ignore[call-overload]  # a dataclass, which no protocol says
            "half": self.half,
            **({} if self._parts.kind == clip_checkpoint.CLIP_KIND else {"kind": self._parts.kind}),
        }
        return fingerprint_weights([NAME, VERSION], self._parts.network.parameters(), settings)


def _read_checkpoint(model: str) -> ClipCheckpoint:
    if openclip_checkpoint.SEPARATOR in model:
        return openclip_checkpoint.read_with_open_clip(model)
    folder = find_checkpoint_folder(model)
    if (folder / clip_checkpoint.CONFIG_FILE).is_file():
        kind = str(clip_checkpoint.read_json(folder / clip_checkpoint.CONFIG_FILE).get("model_type"))
        if kind == clip_checkpoint.CLIP_KIND:
            return clip_checkpoint.read_transformers_checkpoint(model, folder)
        if kind in siglip_checkpoint.KINDS:
            return siglip_checkpoint.read_siglip_checkpoint(model, folder, kind)
        raise InputError(
            f"a model of kind {kind!r}, not clip or siglip",
            where=f"checkpoint {model}",
            fix="Use a CLIP or SigLIP checkpoint (not CoCa or another).",
        )
    if (folder / openclip_checkpoint.CONFIG_FILE).is_file():
        return openclip_checkpoint.read_openclip_checkpoint(model, folder)
    raise InputError(
        f"contains neither {clip_checkpoint.CONFIG_FILE} nor {openclip_checkpoint.CONFIG_FILE}",
        where=f"checkpoint {model}",
        fix="Use a CLIP checkpoint in the format of Hugging Face or OpenCLIP.",
    )
