"""FocalLens-CLIP: image embeddings conditioned on an instruction (000, section 5.3.2).

The instruction's embedding, from a text tower that starts as a copy of CLIP's, enters the image tower as an additional
token. The text tower that embeds outputs, T in eq. 5.1, stays frozen, so conditional image embeddings are in CLIP's own
space and comparable with any text.

Choices that the dissertation does not specify: a linear map takes the instruction's embedding to the width of the image
tower (768 to 1024 for ViT-L/14); the token is last and has no position; it passes the tower's first norm like the other
tokens, so the map's initial scale does not matter.
"""

from copy import deepcopy

from torch import Tensor, nn
from transformers import CLIPModel, CLIPTextModel

from pairwright.training.models.clip import Clip, ExtendedClip, vision_states


class InstructionTower(nn.Module):
    """Copy of CLIP's text tower and projection: token ids (b, t) to embeddings (b, d), not normalized."""

    def __init__(self, network: CLIPModel) -> None:
        super().__init__()
        self.text_model: CLIPTextModel = deepcopy(network.text_model)
        self.text_projection = deepcopy(network.text_projection)

    def forward(self, texts: Tensor) -> Tensor:
        """Embed the instructions."""
        found: Tensor = self.text_projection(self.text_model(input_ids=texts).pooler_output)
        return found


class FocalLensClip(ExtendedClip):
    """A CLIP whose image embedding is conditioned on an instruction."""

    kind = "focallens-clip"

    def __init__(self, base: Clip) -> None:
        """Add an instruction tower to ``base``; the map to its token is initialized from torch's global generator."""
        super().__init__(base.network, base.tokenizer, base.pixels)
        self.instructions = InstructionTower(self.network)
        weight = self.network.visual_projection.weight
        self.condition = nn.Linear(self.dim, self.network.vision_model.config.hidden_size).to(weight)

    def image_states(self, images: Tensor, instructions: Tensor | None = None) -> Tensor:
        """Return the tower's last states, the instruction's after the patches'; without instructions those of CLIP.

        With instructions the embeddings are phi of eq. 5.1, each image under its own; an image is repeated for each of its
        turns.
        """
        if instructions is None:
            return vision_states(self.network.vision_model, images)
        token = self.condition(self.instructions(instructions))[:, None]
        return vision_states(self.network.vision_model, images, extra=token)

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights of the instruction tower and the map."""
        return {name: one for name, one in self.named_parameters() if name.startswith(("instructions.", "condition."))}
