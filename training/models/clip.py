"""CLIP (Radford et al. 2021) for training: unit embeddings, and features of patches and tokens.

Reads any CLIP checkpoint of transformers by folder or name, and saves such a checkpoint, which `pairwright index`,
`pairwright evaluate` and other tools read.

The text tower is causal and pooled at the first end token, so later tokens have no effect. No attention mask is needed,
and the embedding of a text does not depend on the padding of its batch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPModel, CLIPVisionModel, PreTrainedTokenizerBase
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.utils.hub import cached_file

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.image_transforms import CLIP_MEAN, CLIP_STD, ImageOptions
from pairwright.training.models.checkpoints import (
    explain_unreadable,
    load_pretrained,
    read_tokenizer,
    save_added_weights,
    start_saving,
)

MAX_SCALE = 100.0  # CLIP, section 2.5
_MAX_LOG_SCALE = torch.tensor(MAX_SCALE).log().item()


@dataclass(frozen=True, slots=True)
class ClipOutput:
    """Output of a forward pass."""

    images: Tensor  # float32 (b, d), rows of unit length
    texts: Tensor  # float32 (n, d), rows of unit length
    scale: Tensor  # 0-d, 1 / temperature
    # float32 (b, p, d) in the shared space, not normalized, row by row; None unless requested
    patches: Tensor | None = None
    tokens: Tensor | None = None  # float32 (n, t, d) in the shared space, not normalized; None unless requested
    # bool (n, t): words and the end token; False for the start token and padding. None with ``tokens``.
    token_mask: Tensor | None = None


class Clip(nn.Module):
    """A CLIP of transformers with its tokenizer and pixel settings.

    Attributes:
        network: the model; its parameters are named ``network.*``.
        tokenizer: None for a model made from a config.
        pixels: how images are prepared for evaluation.
    """

    kind = "clip"

    def __init__(
        self, network: CLIPModel, tokenizer: PreTrainedTokenizerBase | None = None, pixels: ImageOptions | None = None
    ) -> None:
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer
        self.pixels = pixels or ImageOptions(network.config.vision_config.image_size)

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a checkpoint by folder or name; errors as of `load_pretrained`."""
        network: Any = load_pretrained(CLIPModel, name)
        return cls(network, read_tokenizer(name), read_pixel_settings(name, network.config.vision_config.image_size))

    @property
    def dim(self) -> int:
        """Embedding size of both towers."""
        return int(self.network.visual_projection.out_features)

    @property
    def context(self) -> int:
        """Maximum tokens per text, including start and end token."""
        return int(self.network.text_model.embeddings.position_embedding.num_embeddings)

    @property
    def scale(self) -> Tensor:
        """1 / temperature, 0-d, with its gradient."""
        scale: Tensor = self.network.logit_scale.float().exp().squeeze()
        return scale

    def limit_scale(self) -> None:
        """Clamp the scale to 1 to `MAX_SCALE`; call after each training step (CLIP, section 2.5)."""
        clamp_scale(self.network.logit_scale)

    def encode_images(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the unit embeddings, float32 (b, d), of normalized images, float (b, 3, h, w).

        ``instructions``: token ids, int64 (b, t), one per image; only a `FocalLensClip` reads them.
        """
        return self.pool(self.image_states(images, instructions))

    def encode_texts(self, texts: Tensor) -> Tensor:
        """Return the unit embeddings, float32 (n, d), of token ids (n, t)."""
        return _normalize(self.network.text_projection(self.network.text_model(input_ids=texts).pooler_output))

    def image_states(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the tower's last states (b, 1 + p, width) before the last norm; subclasses extend this."""
        del instructions
        return vision_states(self.network.vision_model, images)

    def forward(
        self,
        images: Tensor,
        texts: Tensor,
        text_mask: Tensor | None = None,
        *,
        local: bool = False,
        instructions: Tensor | None = None,
    ) -> ClipOutput:
        """Embed a batch; all texts in one call (captions, negatives and positives concatenated).

        Args:
            images: float (b, 3, h, w).
            texts: int64 (n, t).
            text_mask: bool (n, t), False for padding; used for `ClipOutput.token_mask` only.
            local: also return features of patches and tokens (002, eq. 5-8).
            instructions: int64 (b, t), one per image; only a `FocalLensClip` reads them.
        """
        states = self.image_states(images, instructions)
        words = self.network.text_model(input_ids=texts)
        images, rows = self.pool(states), _normalize(self.network.text_projection(words.pooler_output))
        if not local:
            return ClipOutput(images, rows, self.scale)
        tower = self.network.vision_model
        near = tower.post_layernorm(states[:, 1 : 1 + tower.embeddings.num_patches])
        patches = self.network.visual_projection(near).float()
        tokens = self.network.text_projection(words.last_hidden_state).float()
        return ClipOutput(images, rows, self.scale, patches, tokens, self.token_mask(texts, text_mask))

    def token_mask(self, texts: Tensor, text_mask: Tensor | None = None) -> Tensor:
        """Return a mask of the words and the first end token, bool (n, t)."""
        end = self.network.text_model.eos_token_id
        # As in transformers; old configs wrongly have 2: the end token is then the highest id.
        ends = (texts if end == 2 else (texts == end).int()).argmax(dim=1, keepdim=True)
        places = torch.arange(texts.shape[1], device=texts.device)
        is_word = (places > 0) & (places <= ends)
        return is_word if text_mask is None else is_word & text_mask

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint of transformers (safetensors) with its tokenizer and pixel settings."""
        if any(".lora_" in name for name, _ in self.named_parameters()):
            raise UsageError("cannot save a CLIP with LoRA: call merge_lora(model) first")
        start_saving(folder)
        self.network.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)
        size, mean, std = self.pixels.size, self.pixels.mean, self.pixels.std
        square = {"height": size, "width": size}
        images = CLIPImageProcessorPil(size={"shortest_edge": size}, crop_size=square, image_mean=mean, image_std=std)
        images.save_pretrained(folder)  # torchvision's processor reads it too
        save_added_weights(folder, self.added_weights(), {"kind": self.kind, **self.description()})

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights that a plain checkpoint does not have; none for a CLIP."""
        return {}

    def description(self) -> dict[str, object]:
        """Return the constructor's arguments for rebuilding the model beside its CLIP; none for a CLIP."""
        return {}

    def pool(self, states: Tensor) -> Tensor:
        """Return the unit embeddings, float32 (b, d), of the tower's last states."""
        return _normalize(self.network.visual_projection(self.network.vision_model.post_layernorm(states[:, 0])))


def vision_states(
    tower: CLIPVisionModel,
    images: Tensor,
    *,
    extra: Tensor | None = None,
    blocks: Mapping[int, nn.Module] | None = None,
) -> Tensor:
    """Return the states of all tokens after the last layer, before the last norm, as transformers' own forward pass.

    Args:
        tower: of any CLIP checkpoint.
        images: float (b, 3, h, w), normalized, of the tower's size.
        extra: float (b, n, width): tokens without a position, which come after class token and patches (FocalLens).
        blocks: modules from states to states, by the number of the layer after them (REACT).
    """
    states = tower.embeddings(images)
    if extra is not None:
        states = torch.cat([states, extra.to(states.dtype)], dim=1)
    states = tower.pre_layrnorm(states)
    for number, layer in enumerate(tower.encoder.layers):
        if blocks is not None and number in blocks:
            states = blocks[number](states)
        states = layer(states, None)
    assert isinstance(states, Tensor)
    return states


def clamp_scale(logarithm: nn.Parameter) -> None:
    """Clamp the logarithm of a trained scale to that of 1 to `MAX_SCALE`; a frozen one is unchanged."""
    if logarithm.requires_grad:
        with torch.no_grad():
            # In place: clamping where it is read would block the gradient at the limit.
            logarithm.clamp_(0.0, _MAX_LOG_SCALE)


def _normalize(rows: Tensor) -> Tensor:
    return functional.normalize(rows.float(), dim=-1)


def read_pixel_settings(name: str, size: int) -> ImageOptions:
    """Return the pixel settings of a checkpoint's image processor; CLIP's channels where it has none."""
    found: dict[str, Any] = {}
    for file in ("preprocessor_config.json", "processor_config.json"):  # the second contains the first
        with explain_unreadable(name):
            path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
            read = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
        found = found or read.get("image_processor", read)
    mean, std = found.get("image_mean", CLIP_MEAN), found.get("image_std", CLIP_STD)
    return ImageOptions(size, mean=tuple(mean), std=tuple(std))
