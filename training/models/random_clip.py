"""CLIP of any size with random weights, for experiments on a CPU without downloads."""

from dataclasses import dataclass

import torch
from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerBase

from pairwright.datasets.errors import UsageError
from pairwright.training.models.clip import Clip


@dataclass(frozen=True, slots=True)
class ClipSizes:
    """Sizes of a new CLIP."""

    image: int = 32  # image side in pixels; a multiple of ``patch``
    patch: int = 8  # patch side in pixels
    # Of the states of both towers; a multiple of ``heads``. Feed-forward layers are four times as wide.
    width: int = 64
    layers: int = 2  # of each tower
    heads: int = 4  # of each attention
    dim: int = 32  # embedding size
    context: int = 32  # maximum tokens per text, including start and end token


def new_clip(tokenizer: PreTrainedTokenizerBase, sizes: ClipSizes | None = None, *, seed: int = 0) -> Clip:
    """Return a CLIP for the tokenizer, with transformers' initialization from ``seed``.

    Raises:
        UsageError: inconsistent sizes, or a tokenizer without end token or with end token id 2, which transformers takes for
            the config of an old checkpoint, pooling texts at their highest id instead.
    """
    sizes = sizes or ClipSizes()
    if sizes.image % sizes.patch or sizes.width % sizes.heads:
        raise UsageError(f"{sizes}: image must be a multiple of patch, and width of heads")
    end = tokenizer.eos_token_id
    if not isinstance(end, int) or end == 2:
        raise UsageError(f"the tokenizer's end token has id {end}: a CLIP requires one other than 2")
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
