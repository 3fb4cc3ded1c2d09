"""CLIP (Radford et al. 2021) for training: embeddings of unit length, and the features of patches and tokens.

Any CLIP checkpoint of transformers, by folder or name. What is saved is such a checkpoint again, so everything that
reads one (`pairwright index`, `pairwright evaluate`, other tools) reads a trained model.

The text tower is causal and read at the first end mark: what stands behind it, padding or not, never enters a row. So no
attention mask is given, and a text's embedding does not depend on its neighbours' length.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPModel, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file

from pairwright.datasets.errors import UsageError
from pairwright.training.models.checkpoints import (
    explain_unreadable,
    load_pretrained,
    read_tokenizer,
    save_added_weights,
    start_saving,
)
from pairwright.training.models.vision_tower import image_size, patch_count, vision_states

MAX_SCALE = 100.0  # CLIP, section 2.5: the logits are never scaled by more
_MEAN, _DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True, slots=True)
class PixelSettings:
    """How an image becomes the tower's input: its side in pixels, and the mean and deviation of each channel."""

    size: int
    mean: Sequence[float] = _MEAN
    deviation: Sequence[float] = _DEVIATION

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Self:
        """Return what JSON describes by these names."""
        return cls(described["size"], tuple(described["mean"]), tuple(described["deviation"]))


@dataclass(frozen=True, slots=True)
class ClipOutput:
    """What a forward pass gives.

    Attributes:
        images: float32 (b, d), rows of unit length.
        texts: float32 (n, d), rows of unit length.
        scale: 0-d, 1 / temperature.
        patches: float32 (b, p, d) in the shared space, of any length, row by row; None unless asked for.
        tokens: float32 (n, t, d) in the shared space, of any length; None unless asked for.
        token_mask: bool (n, t): words and the end mark; False for the start mark and padding. None with ``tokens``.
    """

    images: Tensor
    texts: Tensor
    scale: Tensor
    patches: Tensor | None = None
    tokens: Tensor | None = None
    token_mask: Tensor | None = None


class Clip(nn.Module):
    """A CLIP of transformers, with what is needed to feed and to save it.

    Attributes:
        network: the model; its parameters keep their names behind ``network.``.
        tokenizer: None for a model made from a config alone.
        pixels: what its images must look like.
    """

    kind = "clip"

    def __init__(
        self, network: CLIPModel, tokenizer: PreTrainedTokenizerBase | None = None, pixels: PixelSettings | None = None
    ) -> None:
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer
        self.pixels = pixels or PixelSettings(image_size(network.vision_model))

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype = torch.float32) -> Self:
        """Load a checkpoint by folder or name.

        Raises:
            MissingResource: when there is no such checkpoint.
            InputError: when it is damaged or not a CLIP.
        """
        network = load_pretrained(CLIPModel, name, dtype=dtype)
        assert isinstance(network, CLIPModel)
        return cls(network, read_tokenizer(name), read_pixel_settings(name, image_size(network.vision_model)))

    @property
    def dim(self) -> int:
        """Length of a row of either tower."""
        return int(self.network.visual_projection.out_features)

    @property
    def context(self) -> int:
        """Most tokens of a text, marks included."""
        return int(self.network.text_model.embeddings.position_embedding.num_embeddings)

    @property
    def scale(self) -> Tensor:
        """1 / temperature, 0-d, with its gradient."""
        scale: Tensor = self.network.logit_scale.float().exp()
        return scale

    def limit_scale(self) -> None:
        """Hold the scale between 1 and `MAX_SCALE`; to be called after each step that trains it (CLIP, section 2.5)."""
        clamp_scale(self.network.logit_scale)

    def encode_images(self, images: Tensor) -> Tensor:
        """Return one unit row an image, float32 (b, d), of images (b, 3, h, w) as `pixels` says.

        Raises:
            UsageError: when they have another size than the tower.
        """
        return self.pool(self.image_states(images))

    def encode_texts(self, texts: Tensor) -> Tensor:
        """Return one unit row a text, float32 (n, d), of token ids (n, t).

        Raises:
            UsageError: when they are longer than the model reads.
        """
        pooled = self._text_states(texts)[1]
        return _normalize(self.network.text_projection(pooled))

    def image_states(self, images: Tensor) -> Tensor:
        """Return the tower's last states (b, 1 + p, width), before the last norm; other models build on this."""
        return vision_states(self.network.vision_model, images)

    def forward(
        self, images: Tensor, texts: Tensor, text_mask: Tensor | None = None, *, local: bool = False
    ) -> ClipOutput:
        """Embed a batch; all texts in one call (captions, negatives, positives one after the other).

        Args:
            images: float (b, 3, h, w).
            texts: int64 (n, t).
            text_mask: bool (n, t), False for padding; only `ClipOutput.token_mask` needs it.
            local: give the features of patches and tokens too (002, eq. 5-8).

        Raises:
            UsageError: when images or texts do not fit the model.
        """
        return self.embedded(self.image_states(images), texts, text_mask, local=local)

    def embedded(self, states: Tensor, texts: Tensor, text_mask: Tensor | None, *, local: bool) -> ClipOutput:
        """Finish a forward pass whose image states are there; arguments as for `forward`."""
        words, pooled = self._text_states(texts)
        images, rows = self.pool(states), _normalize(self.network.text_projection(pooled))
        if not local:
            return ClipOutput(images, rows, self.scale)
        tokens = self.network.text_projection(words).float()
        return ClipOutput(images, rows, self.scale, self._patches(states), tokens, self.token_mask(texts, text_mask))

    def token_mask(self, texts: Tensor, text_mask: Tensor | None = None) -> Tensor:
        """Return which tokens say something, bool (n, t): behind the start mark, up to the first end mark."""
        places = torch.arange(texts.shape[1], device=texts.device)
        spoken = (places > 0) & (places <= self._ends(texts)[:, None])
        return spoken if text_mask is None else spoken & text_mask

    def check_texts(self, texts: Tensor) -> None:
        """Refuse token ids (n, t) that are longer than the model reads.

        Raises:
            UsageError: naming both lengths.
        """
        if texts.shape[1] > self.context:
            raise UsageError(f"texts of {texts.shape[1]} tokens for a model that reads {self.context}: cut them")

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint of transformers (safetensors), with its tokenizer and pixel settings.

        Raises:
            UsageError: while LoRA's matrices are in it: merge them first, or save them alone (`lora.py`).
        """
        if any(".lora_" in name for name, _ in self.named_parameters()):
            raise UsageError(
                "a CLIP with LoRA is not saved whole: merge_lora(model) first, or save_trained(model, path)"
            )
        start_saving(folder)
        self.network.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(_preprocessor(self.pixels), indent=2) + "\n")
        save_added_weights(folder, self.added(), {"kind": self.kind, **self.description()})

    def added(self) -> dict[str, Tensor]:
        """Return the weights that a plain checkpoint has no place for; none here."""
        return {}

    def description(self) -> dict[str, object]:
        """Return what has to be known to build the model again, beside its checkpoint; nothing here."""
        return {}

    def pool(self, states: Tensor) -> Tensor:
        """Return the unit rows, float32 (b, d), of the tower's last states."""
        return _normalize(self.network.visual_projection(self.network.vision_model.post_layernorm(states[:, 0])))

    def _patches(self, states: Tensor) -> Tensor:
        last = 1 + patch_count(self.network.vision_model)
        normal = self.network.vision_model.post_layernorm(states[:, 1:last])
        found: Tensor = self.network.visual_projection(normal).float()
        return found

    def _text_states(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        self.check_texts(texts)
        found = self.network.text_model(input_ids=texts)
        return found.last_hidden_state, found.pooler_output

    def _ends(self, texts: Tensor) -> Tensor:
        """Return the place of each text's first end mark, as transformers finds it; 0 where there is none."""
        end = self.network.text_model.eos_token_id
        # 2 is what old configs say, wrongly: the mark is then the highest number.
        ends: Tensor = texts if end == 2 else (texts == end).int()
        return ends.argmax(dim=1)


def clamp_scale(logarithm: nn.Parameter) -> None:
    """Hold the logarithm of a scale that is trained between those of 1 and `MAX_SCALE`; a frozen one stays."""
    if logarithm.requires_grad:
        with torch.no_grad():
            # Clamped in place, not where it is read: there the gradient would vanish at the limit for good.
            logarithm.clamp_(0.0, torch.tensor(MAX_SCALE).log().item())


def _normalize(rows: Tensor) -> Tensor:
    return functional.normalize(rows.float(), dim=-1)


def read_pixel_settings(name: str, size: int) -> PixelSettings:
    """Return what the images of a checkpoint must look like, as its image processor tells; CLIP's where it does not.

    Raises:
        InputError: when what it tells is damaged.
    """
    found: dict[str, Any] = {}
    for file in ("preprocessor_config.json", "processor_config.json"):  # the second holds the first within it
        try:
            path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
            read = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        except (OSError, ValueError) as error:
            raise explain_unreadable(name, error) from error
        found = found or read.get("image_processor", read)
    return PixelSettings(size, tuple(found.get("image_mean", _MEAN)), tuple(found.get("image_std", _DEVIATION)))


def _preprocessor(pixels: PixelSettings) -> dict[str, object]:
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": pixels.size},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": pixels.size, "width": pixels.size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(pixels.mean),
        "image_std": list(pixels.deviation),
        "do_convert_rgb": True,
    }
