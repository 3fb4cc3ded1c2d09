"""Reader of OpenCLIP checkpoints into transformers' CLIPModel.

A checkpoint is either

- a folder or hub repository with ``open_clip_config.json``, the weights ``open_clip_model.safetensors`` or
  ``open_clip_pytorch_model.bin``, and the tokenizer files; OpenCLIP is not required; or
- ``ARCH::pretrained`` (such as ``ViT-B-32::laion2b_s34b_b79k``) with the package open_clip_torch, which finds and reads
  the weights. ``pretrained`` may be the path of a weights file.

Both towers must be the plain transformers of CLIP: a ViT with class token and learnt positions, a causal text model read
at the end token, QuickGELU or GELU. The tokenizer is CLIP's, or with ``hf_tokenizer_name: .`` any in the folder. This covers all ViT-S/M/B/L/H/g/bigG/e of OpenCLIP trained on LAION, DataComp,
CommonPool, DFN or MetaCLIP. Others (ResNets, timm, SigLIP, CoCa, CLIPA, Hugging Face text models) are rejected. OpenCLIP
cleans texts (mojibake, HTML entities) before tokenization; here only the second form does.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.errors import InputError, MissingResourceError
from pairwright.indexes.encoders.checkpoints import find_weights_file, quiet_transformers, translate_load_errors
from pairwright.indexes.encoders.clip_checkpoint import (
    ClipCheckpoint,
    ClipTokenizer,
    load_network,
    read_json,
    wrap_tokenizer,
)
from pairwright.indexes.encoders.image_preprocessing import preprocessing_from_openclip

if TYPE_CHECKING:
    import torch

CONFIG_FILE = "open_clip_config.json"
SEPARATOR = "::"

_WEIGHT_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")

# Settings of a plain CLIP; any other must be absent or off (None, False, 0, {}), or as below.
_PLAIN_CLIP_KEYS = {
    "": {"embed_dim", "vision_cfg", "text_cfg", "quick_gelu", "init_logit_scale"},
    "vision_cfg": {"layers", "width", "head_width", "mlp_ratio", "patch_size", "image_size", "patch_dropout"},
    "text_cfg": {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio", "pad_id", "eos_id"},
}
_OWN_TOKENIZER = "."  # any tokenizer of transformers, in the folder of the checkpoint; else CLIP's
_HARMLESS_VALUES = {
    "pool_type": ("tok", "argmax", "eos"),
    "pos_embed_type": ("learnable",),
    "proj_type": ("linear",),
    "block_type": ("default",),
    "hf_model_pretrained": (True,),
    "hf_proj_type": ("mlp",),
    "hf_pooler_type": ("mean_pooler",),
    "attn_pooler_queries": (256,),
    "attn_pooler_heads": (8,),
    "n_queries": (256,),
    "timm_pool": ("avg",),
    "timm_proj": ("linear",),
    "tokenizer_mode": ("clip",),
    "hf_tokenizer_name": (_OWN_TOKENIZER,),
}

_WEIGHT_NAMES = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final": "text_model.final_layer_norm",
    "logit_scale": "logit_scale",
}
_BLOCK_WEIGHT_NAMES = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "attn.out_proj": "self_attn.out_proj",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_TOWERS = {"visual.transformer.resblocks.": "vision_model", "transformer.resblocks.": "text_model"}
_NON_WEIGHT_BUFFERS = ("attn_mask",)  # a buffer in old checkpoints


def read_openclip_checkpoint(model: str, folder: Path) -> ClipCheckpoint:
    """Read a checkpoint in the OpenCLIP format.

    Args:
        model: name for messages.
        folder: folder of its files.

    Raises:
        InputError: if a file is missing or damaged, or the architecture is not a plain CLIP.
    """
    where = f"checkpoint {model}"
    settings = read_json(folder / CONFIG_FILE)
    architecture = settings.get("model_cfg", settings)
    check_plain_clip(architecture, where)
    weights = _read_weights(find_weights_file(model, folder, _WEIGHT_FILES), where)
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        raise InputError(
            "no tokenizer", where=where, fix="Add tokenizer.json of openai/clip-vit-base-patch32 to the folder."
        )
    own = (architecture.get("text_cfg") or {}).get("hf_tokenizer_name") == _OWN_TOKENIZER
    with quiet_transformers(), translate_load_errors(where):
        reader = getattr(import_module("transformers"), "AutoTokenizer" if own else "CLIPTokenizerFast")
        tokenizer = reader.from_pretrained(folder, local_files_only=True)
    preprocessing = settings.get("preprocess_cfg", {})
    return _make_checkpoint(where, architecture, weights, preprocessing, wrap_tokenizer(tokenizer))


def read_with_open_clip(model: str) -> ClipCheckpoint:
    """Read ``ARCH::pretrained`` with the package open_clip_torch.

    Raises:
        MissingResourceError: if the package is not installed.
        InputError: if the model is unknown, or the architecture is not a plain CLIP.
    """
    if importlib.util.find_spec("open_clip") is None:
        raise MissingResourceError(
            f"checkpoint {model}: OpenCLIP names require its package. pip install open_clip_torch, "
            "or use a folder or hub repository with open_clip_config.json."
        )
    open_clip: Any = import_module("open_clip")
    where = f"checkpoint {model}"
    name, _, pretrained = model.partition(SEPARATOR)
    architecture = open_clip.get_model_config(name)
    if architecture is None:
        raise InputError("unknown OpenCLIP architecture", where=where, fix="See open_clip.list_models().")
    check_plain_clip(architecture, where)
    with translate_load_errors(where):
        network = open_clip.create_model(name, pretrained=pretrained, require_pretrained=True)
    # A pretrained tag may override the activation, so it is read from the network, not from the configuration.
    quick = type(network.transformer.resblocks[0].mlp.gelu).__name__ == "QuickGELU"
    tokenizer = open_clip.get_tokenizer(name)
    preprocessing = open_clip.get_model_preprocess_cfg(network)
    architecture = {**architecture, "quick_gelu": quick}
    return _make_checkpoint(
        where, architecture, network.state_dict(), preprocessing, _wrap_open_clip_tokenizer(tokenizer)
    )


def check_plain_clip(architecture: Mapping[str, Any], where: str) -> None:
    """Raise InputError if the configuration is not that of two plain towers."""
    vision = architecture.get("vision_cfg") or {}
    if isinstance(vision.get("layers"), list):
        raise _unsupported_architecture("layers is a list: a ResNet", where)
    for section, known in _PLAIN_CLIP_KEYS.items():
        settings = (architecture.get(section) or {}) if section else architecture
        for key, value in settings.items():
            if key not in known and value and value not in _HARMLESS_VALUES.get(key, ()):
                raise _unsupported_architecture(f"{section}{'.' if section else ''}{key} is {value!r}", where)


def map_weights(weights: "Mapping[str, torch.Tensor]", where: str) -> "dict[str, torch.Tensor]":
    """Return an OpenCLIP state dict with the names of transformers' CLIPModel.

    OpenCLIP stacks query, key and value in one matrix, and its two projections are transposed.

    Raises:
        InputError: if a name is not one of a plain CLIP.
    """
    found: dict[str, torch.Tensor] = {}
    for key, tensor in weights.items():
        if key not in _NON_WEIGHT_BUFFERS:
            found.update(_map_weight(key.removeprefix("module."), tensor, where))
    return found


def _map_weight(key: str, tensor: "torch.Tensor", where: str) -> "Iterator[tuple[str, torch.Tensor]]":
    if key == "visual.proj":
        yield "visual_projection.weight", tensor.T.contiguous()
    elif key == "text_projection":
        yield "text_projection.weight", tensor.T.contiguous()
    elif key in _WEIGHT_NAMES:
        yield _WEIGHT_NAMES[key], tensor
    elif (stem := key.rpartition(".")[0]) in _WEIGHT_NAMES:
        yield f"{_WEIGHT_NAMES[stem]}.{key.rpartition('.')[2]}", tensor
    else:
        yield from _map_block_weight(key, tensor, where)


def _map_block_weight(key: str, tensor: "torch.Tensor", where: str) -> "Iterator[tuple[str, torch.Tensor]]":
    for prefix, tower in _TOWERS.items():
        if key.startswith(prefix):
            number, _, rest = key.removeprefix(prefix).partition(".")
            layer = f"{tower}.encoder.layers.{number}"
            stem, _, kind = rest.rpartition(".")
            if rest.startswith("attn.in_proj_"):
                for name, part in zip("qkv", tensor.chunk(3), strict=True):
                    yield f"{layer}.self_attn.{name}_proj.{rest.removeprefix('attn.in_proj_')}", part.contiguous()
                return
            if stem in _BLOCK_WEIGHT_NAMES:
                yield f"{layer}.{_BLOCK_WEIGHT_NAMES[stem]}.{kind}", tensor
                return
    raise InputError(f"weight {key!r} is not one of a plain CLIP", where=where, fix=_HINT)


def _make_checkpoint(
    where: str,
    architecture: Mapping[str, Any],
    weights: "Mapping[str, torch.Tensor]",
    preprocessing: dict[str, Any],
    tokens: ClipTokenizer,
) -> ClipCheckpoint:
    with translate_load_errors(where):
        start, end = tokens.ids([""])[0]
        _check_end_token(architecture["text_cfg"], end, where)
        config = _make_config(architecture, start, end)
        network = load_network(where, config, weights=map_weights(weights, where))
        pixels = preprocessing_from_openclip(preprocessing, config.vision_config.image_size, where)
    return ClipCheckpoint(network, tokens, pixels)


def _check_end_token(text: Mapping[str, Any], end: int, where: str) -> None:
    """Raise InputError if texts are read at a token other than the ``end`` of the tokenizer, or at 2.

    transformers takes 2 for the config of an old checkpoint, and reads texts at their highest token.
    """
    if text.get("pool_type") == "eos" and ((pooled := text.get("eos_id", 2)) != end or end == 2):
        raise InputError(
            f"texts are read at token {pooled}, and end with token {end}; both must be the same, and not 2",
            where=where,
            fix="Set text_cfg.eos_id to the end token of the tokenizer, or use the tokenizer it was trained with.",
        )


def _make_config(architecture: Mapping[str, Any], start: int, end: int) -> Any:
    vision, text = {**_VISION_DEFAULTS, **architecture["vision_cfg"]}, {**_TEXT_DEFAULTS, **architecture["text_cfg"]}
    shared = {
        "hidden_act": "quick_gelu" if architecture.get("quick_gelu") else "gelu",
        "projection_dim": architecture["embed_dim"],
    }
    size = vision["image_size"]
    if isinstance(size, list | tuple):
        if len(set(size)) != 1:
            raise ValueError(f"images of {size} are not square")
        size = size[0]
    return import_module("transformers").CLIPConfig(
        projection_dim=architecture["embed_dim"],
        vision_config={
            **shared,
            "hidden_size": vision["width"],
            "intermediate_size": int(vision["width"] * vision["mlp_ratio"]),
            "num_hidden_layers": vision["layers"],
            "num_attention_heads": vision["width"] // vision["head_width"],
            "image_size": size,
            "patch_size": vision["patch_size"],
        },
        text_config={
            **shared,
            "vocab_size": text["vocab_size"],
            "max_position_embeddings": text["context_length"],
            "hidden_size": text["width"],
            "intermediate_size": int(text["width"] * text["mlp_ratio"]),
            "num_hidden_layers": text["layers"],
            "num_attention_heads": text["heads"],
            "bos_token_id": start,
            "eos_token_id": end,
        },
    )


# Defaults of OpenCLIP for missing settings.
_VISION_DEFAULTS = {"layers": 12, "width": 768, "head_width": 64, "mlp_ratio": 4.0, "patch_size": 16, "image_size": 224}
_TEXT_DEFAULTS = {"context_length": 77, "vocab_size": 49408, "width": 512, "heads": 8, "layers": 12, "mlp_ratio": 4.0}

_HINT = "Use a checkpoint with plain transformer towers, such as ViT-B-32 (not SigLIP, timm, CoCa, CLIPA or a ResNet)."


def _unsupported_architecture(what: str, where: str) -> InputError:
    return InputError(f"unsupported OpenCLIP architecture ({what})", where=where, fix=_HINT)


def _read_weights(path: Path, where: str) -> "Mapping[str, torch.Tensor]":
    import torch
    from safetensors.torch import load_file

    with translate_load_errors(where):
        if path.suffix == ".safetensors":
            return load_file(path)
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
        weights: Mapping[str, torch.Tensor] = content.get("state_dict", content)
    return weights


def _wrap_open_clip_tokenizer(tokenizer: Any) -> ClipTokenizer:
    """Wrap a tokenizer of OpenCLIP, adding start and end token, which it adds only with padding."""
    start, end = tokenizer.sot_token_id, tokenizer.eot_token_id

    def ids(texts: list[str]) -> list[list[int]]:
        return [[start, *tokenizer.encode(text), end] for text in texts]

    return ClipTokenizer(ids, tokenizer.encoder)
