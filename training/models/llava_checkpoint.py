"""LLaVA checkpoints in transformers' own layout (``LlavaForConditionalGeneration``, such as llava-hf's), taken apart.

Theirs is one network under one config; ours a vision tower, a projection and a causal language model side by side. The
weights are the same. What they say beside them is held to what `llava.Llava` does: one layer's features without the
class token, two linear layers with GELU between. Their mark of an image is a word of the vocabulary, which stays there
and is not used.

Not covered: LLaVA-NeXT's checkpoints (``llava_next``), whose images end their rows with a learnt mark; vision towers
other than CLIP's.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, CLIPVisionModel, LlavaForConditionalGeneration, PreTrainedModel

from pairwright.datasets.errors import InputError
from pairwright.training.models.checkpoints import load_pretrained, read_config

MODEL_TYPE = "llava"


@dataclass(frozen=True, slots=True)
class LlavaParts:
    """A checkpoint taken apart.

    Attributes:
        vision: the tower.
        language: the causal language model, its output layer included.
        projection: weights of the two layers, named as in `llava.Llava`'s projection.
        layer: of the tower whose features are taken.
    """

    vision: CLIPVisionModel
    language: PreTrainedModel
    projection: dict[str, Tensor]
    layer: int


def is_llava_checkpoint(name: str) -> bool:
    """Say whether ``name``, a folder or a name on the hub, is such a checkpoint; its weights are not read.

    Raises:
        MissingResource: when there is no such checkpoint.
        InputError: when its config is damaged.
    """
    return bool(read_config(name).model_type == MODEL_TYPE)


def read_parts(name: str, *, dtype: torch.dtype = torch.float32) -> LlavaParts:
    """Load a checkpoint and take it apart.

    Raises:
        MissingResource: when there is no such checkpoint.
        InputError: when it is damaged, or built otherwise than `llava.Llava` is.
    """
    _check(name, read_config(name))
    found = cast("Any", load_pretrained(LlavaForConditionalGeneration, name, dtype=dtype))
    joint = found.model.multi_modal_projector
    weights = {
        f"{place}.{which}": getattr(layer, which).detach()
        for place, layer in ((0, joint.linear_1), (2, joint.linear_2))
        for which in ("weight", "bias")
    }
    return LlavaParts(found.model.vision_tower, _language(found), weights, found.config.vision_feature_layer)


def _check(name: str, config: Any) -> None:
    asked = {
        "a vision tower": (config.vision_config.model_type, "clip_vision_model"),
        "features": (config.vision_feature_select_strategy, "default"),
        "a projection with": (config.projector_hidden_act, "gelu"),
        "a projection whose bias is": (config.multimodal_projector_bias, True),
        "layers": (type(config.vision_feature_layer), int),
    }
    for what, (given, read) in asked.items():
        if given != read:
            raise InputError(
                f"{what} {_word(given)}, where {_word(read)} is read",
                where=f"checkpoint {name}",
                fix="Give a LLaVA built as LLaVA-1.5 is.",
            )


def _word(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def _language(found: Any) -> PreTrainedModel:
    """Return the inner language model with its output layer, as transformers' class for the two."""
    with torch.device("meta"):  # an empty frame: both parts are put into it
        language: Any = AutoModelForCausalLM.from_config(found.config.text_config)
    setattr(language, language.base_model_prefix, found.model.language_model)
    language.set_output_embeddings(found.lm_head)
    language.generation_config = found.generation_config
    assert isinstance(language, PreTrainedModel)
    return language
