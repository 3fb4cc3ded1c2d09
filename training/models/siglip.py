"""SigLIP (Zhai et al. 2023) for training: unit embeddings, scale and bias.

Reads and saves checkpoints of transformers with ``model_type: siglip``: SigLIP, and SigLIP 2 of a fixed resolution. The text
tower has no mask and is pooled at the last position: texts are padded to the full context, as in pretraining. Images
are squashed to the square.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional
from transformers import SiglipModel

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.tokenization import tokenizer_padding_id
from pairwright.training.models.clip import Clip

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from pairwright.training.loading.image_transforms import ImageOptions

_HALF = (0.5, 0.5, 0.5)


class Siglip(Clip):
    """A SigLIP of transformers with its tokenizer and pixel settings; attributes as of `Clip`."""

    kind = "siglip"
    network_class = SiglipModel
    channels = _HALF, _HALF

    def __init__(
        self,
        network: SiglipModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        pixels: ImageOptions | None = None,
    ) -> None:
        super().__init__(network, tokenizer, pixels)
        self.pixels = replace(self.pixels, squash=True)

    @property
    def dim(self) -> int:
        """Embedding size of both towers."""
        return int(self.network.config.text_config.projection_size)

    @property
    def bias(self) -> Tensor:
        """The bias of the sigmoid, 0-d, with its gradient."""
        bias: Tensor = self.network.logit_bias.float().squeeze()
        return bias

    def limit_scale(self) -> None:
        """Leave the scale: SigLIP's is unlimited, and above CLIP's limit in published checkpoints."""

    def image_states(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the pooled states, float (b, width)."""
        del instructions
        if tuple(images.shape[-2:]) != (self.pixels.size, self.pixels.size):
            raise UsageError(f"images of {tuple(images.shape[-2:])} pixels: set the image size to {self.pixels.size}")
        pooled: Tensor = self.network.vision_model(pixel_values=images).pooler_output
        return pooled

    def pool(self, states: Tensor) -> Tensor:
        """Return the unit embeddings, float32 (b, d), of pooled states."""
        return functional.normalize(states.float(), dim=-1)

    def _patches(self, states: Tensor) -> Tensor:  # noqa: ARG002 - as of `Clip`
        raise UsageError("a SigLIP has no features of patches and tokens in the shared space: use a CLIP")

    def _text_rows(self, pooled: Tensor) -> Tensor:
        return functional.normalize(pooled.float(), dim=-1)

    def _text_states(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        if texts.shape[1] > self.context:
            raise UsageError(f"texts of {texts.shape[1]} tokens, but the model reads {self.context}: truncate them")
        known = None if self.tokenizer is None else tokenizer_padding_id(self.tokenizer)
        fill = self.network.config.text_config.pad_token_id if known is None else known
        padded = functional.pad(texts, (0, self.context - texts.shape[1]), value=fill)
        found = self.network.text_model(input_ids=padded)
        return found.last_hidden_state, found.pooler_output
