"""Networks of transformers for finetuning: opened, assembled from parts, or built from configs alone; and what of them is trained."""

import re
import warnings
from typing import Any, cast

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import (
    AutoImageProcessor,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedModel,
)
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled, unset_hf_deepspeed_config
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import IMAGE_TOKEN
from pairwright.training.finetuning.chat import LLAVA_TEMPLATE
from pairwright.training.models.checkpoints import (
    explain_unreadable,
    load_pretrained,
    read_config,
    read_tokenizer,
    save_by_hub_names,
)
from pairwright.training.models.generative import EncoderDecoder, GenerativeModel, ImageTextModel
from pairwright.training.models.registry import model_kind
from pairwright.training.models.trainable_parameters import train_only
from pairwright.training.recipes.settings import (
    ConversationMethod,
    FinetuningMethod,
    FinetuningRecipe,
)

_CLIP_TOWER = "clip_vision_model"  # which has a class token; SigLIP's has none
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def open_network(recipe: FinetuningRecipe, model: str) -> GenerativeModel:
    """Load ``model`` for a recipe, or assemble a LLaVA of its vision tower and ``method.language``."""
    method, dtype = recipe.method, _DTYPES[recipe.method.weights]
    _require_kind(method, model)
    if not isinstance(method, ConversationMethod):
        return EncoderDecoder.load(model, dtype=dtype)
    if method.language:
        unset_hf_deepspeed_config()  # parts are read whole; ZeRO-3 divides what they are joined to later
        found = assemble_llava(model, method.language, dtype)
    else:
        found = ImageTextModel.load(model, dtype=dtype)
    if isinstance(found.network, LlavaForConditionalGeneration) or is_deepspeed_zero3_enabled():
        save_by_hub_names(found.network)
    if (path := method.chat_template) is not None:
        try:
            found.processor.chat_template = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"method.chat_template: {path} cannot be read ({error}).") from None
    return found


def _require_kind(method: FinetuningMethod, model: str) -> None:
    """Check that ``model`` is what the method finetunes, or has the vision tower for a new LLaVA."""
    if isinstance(method, ConversationMethod) and method.language:
        config = read_config(model)
        if config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES or not hasattr(config, "vision_config"):
            raise UsageError(f"{model} is no CLIP or SigLIP whose vision tower could be used: remove method.language.")
        return
    kind = model_kind(model)
    needed, what = EncoderDecoder.kind, "an encoder-decoder such as T5"
    if isinstance(method, ConversationMethod):
        needed, what = ImageTextModel.kind, "an image-text-to-text model, or --set method.language=PATH"
    if kind != needed:
        raise UsageError(f"{model} is of kind {kind}; this recipe requires {what}.")


def assemble_llava(vision: str, language: str, dtype: torch.dtype = torch.float32) -> ImageTextModel:
    """Assemble a vision tower (of a CLIP or SigLIP) and a causal language model to a LLaVA with a new projection.

    The projection has two layers (LLaVA-1.5) and is initialized from torch's global generator. ``<image>`` is added to
    the vocabulary, and the chat template is LLaVA-1.5's.
    """
    tower = cast("Any", load_pretrained(AutoModel, vision, dtype=dtype)).vision_model
    language_model = cast("Any", load_pretrained(AutoModelForCausalLM, language, dtype=dtype))
    tokenizer = cast("Any", read_tokenizer(language))
    tokenizer.add_special_tokens({"additional_special_tokens": [IMAGE_TOKEN]})
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    if len(tokenizer) > language_model.get_input_embeddings().num_embeddings:
        language_model.resize_token_embeddings(len(tokenizer))
    config = _llava_config(tower.config, language_model.config, tokenizer.convert_tokens_to_ids(IMAGE_TOKEN))
    with torch.device("meta"):  # without weights: all but the projection are replaced
        model: Any = LlavaForConditionalGeneration(config)
    model.model.vision_tower, model.model.language_model = tower, language_model.base_model
    model.lm_head = language_model.get_output_embeddings()
    model.model.multi_modal_projector = type(model.model.multi_modal_projector)(config).to(dtype)
    model.generation_config = language_model.generation_config
    with explain_unreadable(vision):
        images = AutoImageProcessor.from_pretrained(vision)
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=tower.config.patch_size,
        vision_feature_select_strategy=config.vision_feature_select_strategy,
        num_additional_image_tokens=int(tower.config.model_type == _CLIP_TOWER),
        chat_template=LLAVA_TEMPLATE,
    )
    return ImageTextModel(model, processor)


def _llava_config(vision: Any, language: Any, image_token: int) -> LlavaConfig:
    return LlavaConfig(
        vision_config=vision,
        text_config=language,
        image_token_index=image_token,
        image_seq_length=(vision.image_size // vision.patch_size) ** 2,
        vision_feature_select_strategy="default" if vision.model_type == _CLIP_TOWER else "full",
        tie_word_embeddings=bool(language.tie_word_embeddings),
    )


def build_meta_network(recipe: FinetuningRecipe, model: str) -> PreTrainedModel:
    """Return the network of a recipe without weights (meta device), from configs alone."""
    method, config = recipe.method, read_config(model)
    _require_kind(method, model)
    if isinstance(method, ConversationMethod) and method.language:
        language = read_config(method.language)
        config = _llava_config(config.vision_config, language, language.vocab_size - 1)
    loader: Any = AutoModelForImageTextToText if isinstance(method, ConversationMethod) else AutoModelForSeq2SeqLM
    try:
        with torch.device("meta"):
            return cast("PreTrainedModel", loader.from_config(config))
    except ValueError as error:
        raise UsageError(f"{model}: {str(error).splitlines()[0]}") from None


def freeze_untrained(model: PreTrainedModel, method: FinetuningMethod) -> PreTrainedModel:
    """Freeze what the recipe does not train, and return the model; with LoRA wrapped by peft; errors as of `train_only`."""
    train_only(model, method.train or ("*",), method.freeze, "change method.train or method.freeze.")
    if method.lora is None:
        return model
    head = model.get_output_embeddings()
    layers = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module.weight.requires_grad and module is not head
    ]
    if not layers:
        raise UsageError("method.lora: no linear layer is trained.")
    targets = "|".join(map(re.escape, layers))
    config = LoraConfig(r=method.lora.rank, lora_alpha=method.lora.alpha, target_modules=targets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft reads an attribute of models that has been renamed
        return cast("PreTrainedModel", get_peft_model(model, config))


def stop_tokens(model: PreTrainedModel, tokenizer: Any) -> frozenset[int]:
    """Return the ids of the tokens that end an answer: those of the generation config and the tokenizer's end token."""
    known = model.generation_config.eos_token_id if model.generation_config else None
    ids = known if isinstance(known, list) else [known]
    return frozenset(one for one in (*ids, tokenizer.eos_token_id) if one is not None)


def tie_embedding_modules(model: PreTrainedModel) -> None:
    """Let layers that share the weights of the input embedding be that module, as FSDP shards a weight in one place.

    T5's encoder and decoder each have an embedding of their own with the same weights. A state dict then has them once, by
    the embedding's first name: torch refuses to load further names of a module into a sharded model.
    """
    embedding = model.get_input_embeddings()
    own = next(name for name, module in model.named_modules() if module is embedding)
    others: list[str] = []
    for path, module in list(model.named_modules()):
        for name, layer in module.named_children():
            if layer is not embedding and type(layer) is type(embedding) and layer.weight is embedding.weight:
                setattr(module, name, embedding)
                others.append(f"{path}.{name}")

    def drop_others(_module: nn.Module, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
        for name in others:
            state.pop(f"{prefix}{name}.weight", None)

    def add_others(_module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        if (weight := state.get(f"{prefix}{own}.weight")) is not None:
            state.update({f"{prefix}{name}.weight": weight for name in others})

    if others:
        model.register_state_dict_post_hook(drop_others)
        model.register_load_state_dict_pre_hook(add_others)


def sharded_layer_names(model: nn.Module) -> list[str]:
    """Return the names of the layer classes that FSDP shards one by one.

    transformers lists layers that stay in one piece for all models that share a part; accelerate refuses those that this
    model does not have.
    """
    present = {type(module).__name__ for module in model.modules()}
    return sorted(present.intersection(cast("Any", model)._no_split_modules))  # noqa: SLF001 - no public name
