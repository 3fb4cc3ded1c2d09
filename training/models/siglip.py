"""SigLIP (Zhai et al. 2023) for training: unit embeddings, scale and bias.

Reads and saves checkpoints of transformers with ``model_type: siglip``: SigLIP, and SigLIP 2 of a fixed resolution. The text
tower has no mask and is pooled at the last position: texts are padded to the full context, as in pretraining. Images
are squashed to the square.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from torch import Tensor
from torch.nn import functional
from transformers import SiglipModel

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.tokenization import tokenizer_padding_id
from pairwright.training.models.checkpoints import load_pretrained, read_tokenizer
from pairwright.training.models.clip import Clip, ClipOutput, read_pixel_settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_HALF = (0.5, 0.5, 0.5)


class Siglip(Clip):
    """A SigLIP of transformers with its tokenizer and pixel settings; attributes as of `Clip`."""

    kind = "siglip"

    def __init__(
        self,
        network: SiglipModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        pixels: ImageOptions | None = None,
    ) -> None:
        size = cast("int", network.config.vision_config.image_size)
        super().__init__(network, tokenizer, replace(pixels or ImageOptions(size, mean=_HALF, std=_HALF), squash=True))

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a checkpoint by folder or name."""
        network: Any = load_pretrained(SiglipModel, name)
        size = network.config.vision_config.image_size
        return cls(network, read_tokenizer(name), read_pixel_settings(name, size, mean=_HALF, std=_HALF))

    @property
    def dim(self) -> int:
        """Embedding size of both towers."""
        return int(self.network.config.text_config.projection_size)

    @property
    def bias(self) -> Tensor:
        """The bias of the sigmoid, 0-d, with its gradient."""
        bias: Tensor = self.network.logit_bias.float().squeeze()
        return bias

    @property
    def scale(self) -> Tensor:
        """1 / temperature, 0-d, with its gradient."""
        return super().scale.squeeze()

    def limit_scale(self) -> None:
        """Leave the scale: SigLIP's is unlimited, and above CLIP's limit in published checkpoints."""

    def encode_texts(self, texts: Tensor) -> Tensor:
        """Return the unit embeddings, float32 (n, d), of token ids (n, t)."""
        return functional.normalize(self._text_states(texts)[1].float(), dim=-1)

    def image_states(self, images: Tensor) -> Tensor:
        """Return the pooled states, float (b, width)."""
        if tuple(images.shape[-2:]) != (self.pixels.size, self.pixels.size):
            raise UsageError(f"images of {tuple(images.shape[-2:])} pixels: set the image size to {self.pixels.size}")
        pooled: Tensor = self.network.vision_model(pixel_values=images).pooler_output
        return pooled

    def pool(self, states: Tensor) -> Tensor:
        """Return the unit embeddings, float32 (b, d), of pooled states."""
        return functional.normalize(states.float(), dim=-1)

    def embed_states(self, states: Tensor, texts: Tensor, text_mask: Tensor | None, *, local: bool) -> ClipOutput:
        """Return the output for given image states; without features of patches and tokens."""
        del text_mask
        if local:
            raise UsageError("a SigLIP has no features of patches and tokens in the shared space: use a CLIP")
        return ClipOutput(self.pool(states), self.encode_texts(texts), self.scale, bias=self.bias)

    def _text_states(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        if texts.shape[1] > self.context:
            raise UsageError(f"texts of {texts.shape[1]} tokens, but the model reads {self.context}: truncate them")
        known = None if self.tokenizer is None else tokenizer_padding_id(self.tokenizer)
        fill = self.network.config.text_config.pad_token_id if known is None else known
        padded = functional.pad(texts, (0, self.context - texts.shape[1]), value=fill)
        found = self.network.text_model(input_ids=padded)
        return found.last_hidden_state, found.pooler_output
