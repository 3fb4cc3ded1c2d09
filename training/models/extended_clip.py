"""CLIPs with added weights: REACT's gated blocks and FocalLens' instruction token.

REACT: locked-text gated-image tuning. A block is self-attention and a feed-forward layer, each added through a gate
(003, chapter 2, "Modularized Image Encoder"; after Flamingo). A gate is tanh of a number that starts at 0, so initially
the model equals the frozen one. The dissertation does not specify the position of the blocks: six blocks give the 42.5
M trained parameters of table 2.6 for ViT-B/32, and the authors' code puts one before each of the last six layers, as
here.

FocalLens-CLIP: image embeddings conditioned on an instruction (000, section 5.3.2). The instruction's embedding, from a
text tower that starts as a copy of CLIP's, enters the image tower as an additional token. The text tower that embeds
outputs, T in eq. 5.1, stays frozen, so conditional image embeddings are in CLIP's own space and comparable with any
text. Not specified there: a linear map takes the instruction's embedding to the width of the image tower (768 to 1024
for ViT-L/14); the token is last and has no position; it passes the tower's first norm like the other tokens, so the
map's initial scale does not matter.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from transformers import CLIPVisionConfig
from transformers.activations import ACT2FN

from pairwright.datasets.errors import UsageError
from pairwright.training.models.checkpoints import ADDED_FILE, copy_weights, read_description, read_weights
from pairwright.training.models.clip import Clip, vision_states

DEFAULT_BLOCKS = 6


class ExtendedClip(Clip):
    """A CLIP with added weights; the constructor takes a CLIP and the arguments in `description`."""

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a folder that `save` wrote."""
        folder = Path(name)
        described = read_description(folder)
        if described.pop("kind", None) != cls.kind:
            raise UsageError(f"{name} is not a saved {cls.kind}: create one with {cls.__name__}(Clip.load({name!r}))")
        model: Self = cast("Any", cls)(Clip.load(name), **described)
        copy_weights(model.added_weights(), read_weights(folder / ADDED_FILE), folder)
        return model


class GatedBlock(nn.Module):
    """Self-attention and feed-forward layer, each added through an initially closed gate: states (b, n, width) to the same shape."""

    def __init__(self, config: CLIPVisionConfig) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.intermediate_size
        self.norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.attention = nn.MultiheadAttention(width, config.num_attention_heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dense = nn.Sequential(nn.Linear(width, hidden), ACT2FN[config.hidden_act], nn.Linear(hidden, width))
        self.gate_attention = nn.Parameter(torch.zeros(()))
        self.gate_dense = nn.Parameter(torch.zeros(()))

    def forward(self, states: Tensor) -> Tensor:
        """Return the states plus both gated outputs."""
        normal = self.norm1(states)
        states = states + self.gate_attention.tanh() * self.attention(normal, normal, normal, need_weights=False)[0]
        found: Tensor = states + self.gate_dense.tanh() * self.dense(self.norm2(states))
        return found


class ReactClip(ExtendedClip):
    """A CLIP whose image tower has gated blocks; `TRAINABLE` freezes all else."""

    kind = "react-clip"

    def __init__(self, base: Clip, blocks: int = DEFAULT_BLOCKS) -> None:
        """Add ``blocks`` gated blocks before the last layers of ``base``, initialized from torch's global generator."""
        super().__init__(base.network, base.tokenizer, base.pixels)
        config = self.network.vision_model.config
        depth = config.num_hidden_layers
        if not 1 <= blocks <= depth:
            raise UsageError(
                f"{blocks} gated blocks for an image tower of {depth} layers. Set method.blocks to at most {depth}."
            )
        weight = self.network.visual_projection.weight
        self.blocks = nn.ModuleDict(
            {str(number): GatedBlock(config).to(weight) for number in range(depth - blocks, depth)}
        )

    def image_states(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the tower's last states, with gated blocks."""
        del instructions
        blocks = {int(number): block for number, block in self.blocks.items()}
        return vision_states(self.network.vision_model, images, blocks=blocks)

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights of the blocks."""
        return {f"blocks.{name}": one for name, one in self.blocks.named_parameters()}

    def description(self) -> dict[str, object]:
        """Return the number of blocks."""
        return {"blocks": len(self.blocks)}


class FocalLensClip(ExtendedClip):
    """A CLIP whose image embedding is conditioned on an instruction."""

    kind = "focallens-clip"

    def __init__(self, base: Clip) -> None:
        """Add an instruction tower to ``base``; the map to its token is initialized from torch's global generator."""
        super().__init__(base.network, base.tokenizer, base.pixels)
        tower = {"text_model": self.network.text_model, "text_projection": self.network.text_projection}
        self.instructions = nn.ModuleDict(deepcopy(tower))
        weight = self.network.visual_projection.weight
        self.condition = nn.Linear(self.dim, self.network.vision_model.config.hidden_size).to(weight)

    def image_states(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the tower's last states, the instruction's after the patches'; without instructions those of CLIP.

        With instructions the embeddings are phi of eq. 5.1; an image is repeated for each of its turns.
        """
        if instructions is None:
            return vision_states(self.network.vision_model, images)
        states = self.instructions["text_model"](input_ids=instructions).pooler_output
        token = self.condition(self.instructions["text_projection"](states))[:, None]
        return vision_states(self.network.vision_model, images, extra=token)

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights of the instruction tower and the map."""
        return {name: one for name, one in self.named_parameters() if name.startswith(("instructions.", "condition."))}
