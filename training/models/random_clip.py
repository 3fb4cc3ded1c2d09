"""A CLIP from nothing: of any size, with random weights, for a tokenizer of one's own.

For experiments where the truth is known and nothing may be downloaded: trained in minutes on a CPU.
"""

from dataclasses import dataclass

import torch
from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerBase

from pairwright.datasets.errors import UsageError
from pairwright.training.models.clip import Clip


@dataclass(frozen=True, slots=True)
class ClipSizes:
    """How large a new CLIP is.

    Attributes:
        image: side of an image in pixels; a multiple of ``patch``.
        patch: side of a patch in pixels.
        width: of the states of both towers; a multiple of ``heads``. The inner layers are four times as wide.
        layers: of each tower.
        heads: of each attention.
        dim: length of an embedding.
        context: most tokens of a text, marks included.
    """

    image: int = 32
    patch: int = 8
    width: int = 64
    layers: int = 2
    heads: int = 4
    dim: int = 32
    context: int = 32


def new_clip(tokenizer: PreTrainedTokenizerBase, sizes: ClipSizes | None = None, *, seed: int = 0) -> Clip:
    """Make a CLIP for the tokenizer, its weights drawn as transformers draws them; the same for the same seed.

    Raises:
        UsageError: when the sizes do not fit each other, or the tokenizer has no end mark, or one of number 2: which
            transformers takes for the config of an old checkpoint, and reads texts at their highest token instead.
    """
    sizes = sizes or ClipSizes()
    if sizes.image % sizes.patch or sizes.width % sizes.heads:
        raise UsageError(f"{sizes}: image must be a multiple of patch, and width one of heads")
    end = tokenizer.eos_token_id
    if not isinstance(end, int) or end == 2:
        raise UsageError(f"the tokenizer's end mark has number {end}: a CLIP needs one, and not 2 (see `new_clip`)")
    shared = {
        "hidden_size": sizes.width,
        "intermediate_size": 4 * sizes.width,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
    }
    marks = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": end, "pad_token_id": tokenizer.pad_token_id}
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": sizes.context, **marks, **shared}
    vision = {"image_size": sizes.image, "patch_size": sizes.patch, **shared}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=sizes.dim))
    return Clip(network, tokenizer)
