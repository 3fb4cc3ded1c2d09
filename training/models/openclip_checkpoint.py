"""Writer of OpenCLIP checkpoints, which ``open_clip.create_model_from_pretrained("local-dir:FOLDER")`` opens.

    FOLDER/open_clip_config.json         architecture and preprocessing
    FOLDER/open_clip_model.safetensors   weights by OpenCLIP's names
    FOLDER/tokenizer.json, ...           the tokenizer

The weights are those of transformers' CLIPModel: OpenCLIP stacks query, key and value in one matrix, and its two
projections are transposed. `pairwright index` reads the same layout (`indexes/encoders/openclip_checkpoint.py`).

Not covered: models that add weights to CLIP.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import UsageError
from pairwright.training.models.checkpoints import save_weights
from pairwright.training.models.clip import Clip

# In this order; a name of transformers becomes that of OpenCLIP by all of them.
_NAMES = (
    (r"^vision_model\.encoder\.layers\.", "visual.transformer.resblocks."),
    (r"^text_model\.encoder\.layers\.", "transformer.resblocks."),
    (r"^vision_model\.embeddings\.patch_embedding\.", "visual.conv1."),
    (r"^vision_model\.embeddings\.position_embedding\.weight$", "visual.positional_embedding"),
    (r"^vision_model\.embeddings\.", "visual."),
    (r"^vision_model\.pre_layrnorm\.", "visual.ln_pre."),
    (r"^vision_model\.post_layernorm\.", "visual.ln_post."),
    (r"^text_model\.embeddings\.position_embedding\.weight$", "positional_embedding"),
    (r"^text_model\.embeddings\.", ""),
    (r"^text_model\.final_layer_norm\.", "ln_final."),
    (r"^visual_projection\.weight$", "visual.proj"),
    (r"^text_projection\.weight$", "text_projection"),
    (r"\.layer_norm([12])\.", r".ln_\1."),
    (r"\.mlp\.fc1\.", ".mlp.c_fc."),
    (r"\.mlp\.fc2\.", ".mlp.c_proj."),
    (r"\.self_attn\.out_proj\.", ".attn.out_proj."),
    (r"\.self_attn\.q_proj\.", ".attn.in_proj_"),
)
_TRANSPOSED = ("visual.proj", "text_projection")


def save_openclip(model: Clip, folder: Path) -> None:
    """Write a CLIP in OpenCLIP's layout; the config comes last."""
    config = openclip_config(model)
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(openclip_weights(model.network.state_dict()), folder / "open_clip_model.safetensors")
    if model.tokenizer is not None:
        model.tokenizer.save_pretrained(folder)
    write_text(folder / "open_clip_config.json", json.dumps(config, indent=2) + "\n")


def openclip_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state dict of a CLIPModel under OpenCLIP's names, in its shapes."""
    found = {}
    for name, tensor in weights.items():
        if name.endswith("position_ids") or ".k_proj." in name or ".v_proj." in name:
            continue  # a constant, or stacked with the query
        values = (
            [weights[name.replace(".q_proj.", f".{part}_proj.")] for part in "qkv"] if ".q_proj." in name else [tensor]
        )
        for pattern, replacement in _NAMES:
            name = re.sub(pattern, replacement, name)  # noqa: PLW2901 - one name in the making
        stacked = torch.cat(values) if len(values) > 1 else tensor
        found[name] = stacked.T.contiguous() if name in _TRANSPOSED else stacked
    return found


def openclip_config(model: Clip) -> dict[str, Any]:
    """Return ``open_clip_config.json`` of a model."""
    text, vision = model.network.config.text_config, model.network.config.vision_config
    fixed = {(one.hidden_act, one.layer_norm_eps) for one in (text, vision)}
    if type(model) is not Clip or not fixed <= {("quick_gelu", 1e-5), ("gelu", 1e-5)} or len(fixed) > 1:
        raise UsageError(
            f"OpenCLIP's layout is for a CLIP with gelu or quick_gelu and norms of 1e-5, not for a {model.kind} with "
            f"{sorted(fixed)}. Set save_openclip to false."
        )
    end = text.vocab_size - 1 if text.eos_token_id == 2 else text.eos_token_id  # old configs wrongly have 2
    text_settings = {
        "context_length": text.max_position_embeddings,
        "vocab_size": text.vocab_size,
        "width": text.hidden_size,
        "heads": text.num_attention_heads,
        "layers": text.num_hidden_layers,
        "mlp_ratio": text.intermediate_size / text.hidden_size,
    }
    if end != text.vocab_size - 1:  # OpenCLIP pools at the highest id otherwise
        text_settings |= {"pool_type": "eos", "eos_id": end}
    if model.tokenizer is not None and not type(model.tokenizer).__name__.startswith("CLIP"):
        text_settings["hf_tokenizer_name"] = "."  # the folder itself
    return {
        "model_cfg": {
            "embed_dim": model.dim,
            "quick_gelu": text.hidden_act == "quick_gelu",
            "vision_cfg": {
                "image_size": vision.image_size,
                "patch_size": vision.patch_size,
                "width": vision.hidden_size,
                "head_width": vision.hidden_size // vision.num_attention_heads,
                "layers": vision.num_hidden_layers,
                "mlp_ratio": vision.intermediate_size / vision.hidden_size,
            },
            "text_cfg": text_settings,
        },
        "preprocess_cfg": {
            "mean": list(model.pixels.mean),
            "std": list(model.pixels.std),
            "interpolation": "bicubic",
            "resize_mode": "shortest",
        },
    }
