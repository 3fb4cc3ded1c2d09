"""Reader of LLaVA checkpoints in transformers' layout (``LlavaForConditionalGeneration``, such as llava-hf's).

transformers has one network with one config; `llava.Llava` a vision tower, a projection and a causal language model with
the same weights. The config must match what `Llava` computes: features of one layer without the class token, two linear
layers with GELU. The image token of the checkpoint's vocabulary is not used.

Not covered: LLaVA-NeXT (``llava_next``), whose images have a learnt token at row ends; vision towers other than CLIP's.
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
    """Parts of a checkpoint.

    Attributes:
        vision: vision tower.
        language: causal language model with its output layer.
        projection: weights of the two layers, named as in `llava.Llava`'s projection.
        layer: vision layer whose features are used.
    """

    vision: CLIPVisionModel
    language: PreTrainedModel
    projection: dict[str, Tensor]
    layer: int


def is_llava_checkpoint(name: str) -> bool:
    """Return whether ``name``, a folder or a name on the hub, is such a checkpoint, without reading its weights.

    Raises:
        MissingResourceError: no such checkpoint.
        InputError: its config is damaged.
    """
    return bool(read_config(name).model_type == MODEL_TYPE)


def read_parts(name: str, *, dtype: torch.dtype = torch.float32) -> LlavaParts:
    """Load the parts of a checkpoint.

    Raises:
        MissingResourceError: no such checkpoint.
        InputError: it is damaged or of an unsupported architecture.
    """
    _check(name, read_config(name))
    found = cast("Any", load_pretrained(LlavaForConditionalGeneration, name, dtype=dtype))
    joint = found.model.multi_modal_projector
    weights = {
        f"{place}.{which}": getattr(layer, which).detach()
        for place, layer in ((0, joint.linear_1), (2, joint.linear_2))
        for which in ("weight", "bias")
    }
    return LlavaParts(found.model.vision_tower, _language_model(found), weights, found.config.vision_feature_layer)


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
                f"{what} {_value_name(given)}, expected {_value_name(read)}",
                where=f"checkpoint {name}",
                fix="Pass a LLaVA with the architecture of LLaVA-1.5.",
            )


def _value_name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def _language_model(found: Any) -> PreTrainedModel:
    """Return the inner language model with its output layer as one causal language model."""
    with torch.device("meta"):  # without weights: both parts replace its own
        language: Any = AutoModelForCausalLM.from_config(found.config.text_config)
    setattr(language, language.base_model_prefix, found.model.language_model)
    language.set_output_embeddings(found.lm_head)
    language.generation_config = found.generation_config
    assert isinstance(language, PreTrainedModel)
    return language
