"""Tiny image-text-to-text models from configs, with processors: a LLaVA, a LLaVA-NeXT and a Qwen2.5-VL.

The video processor of Qwen2.5-VL requires torchvision, which is not installed with the tests: its processor here has
images and texts alone.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaNextProcessor,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    ProcessorMixin,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from pairwright.training.finetuning.chat import LLAVA_TEMPLATE
from pairwright.training.models.checkpoints import save_by_hub_names

_SPECIAL = [
    *("<pad>", "<s>", "</s>", "<unk>", "<image>", "<|im_start|>", "<|im_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
]
_WORDS = """system user assistant USER: ASSISTANT: what colour is it the look : ? . no yes red blue green yellow a an and of
to small large big circle square triangle star heart cross disc above below left right on in with there one two three"""
WORDS = [*_SPECIAL, *_WORDS.split()]
QWEN_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}"
)
SIDE, PATCH = 32, 8


class ImageOnlyQwenProcessor(Qwen2_5_VLProcessor):  # type: ignore[misc]  # mypy does not follow transformers
    """Qwen2.5-VL's processor without videos."""

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None) -> None:
        self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
        self.image_token_id, self.video_token_id = tokenizer.convert_tokens_to_ids([self.image_token, self.video_token])
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


AutoProcessor.register(Qwen2_5_VLConfig, ImageOnlyQwenProcessor, exist_ok=True)


def tokenizer(end: str = "</s>") -> PreTrainedTokenizerFast:
    """Return a tokenizer of `WORDS`, split at spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=_SPECIAL[3]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": end, "unk_token": _SPECIAL[3]}
    return PreTrainedTokenizerFast(tokenizer_object=words, additional_special_tokens=_SPECIAL[4:], **names)


def _text_sizes(width: int) -> dict[str, Any]:
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 2, "num_attention_heads": 2}
    return {**sizes, "num_key_value_heads": 2, "vocab_size": len(WORDS), "pad_token_id": 0, "bos_token_id": 1}


def _vision_config(width: int) -> CLIPVisionConfig:
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 2, "num_attention_heads": 2}
    return CLIPVisionConfig(**sizes, image_size=SIDE, patch_size=PATCH)


def llava(folder: Path, template: str = LLAVA_TEMPLATE, width: int = 16) -> str:
    """Write a LLaVA of random weights and return its folder; heads have half of ``width`` dimensions."""
    seeing, speaking = _vision_config(width), LlamaConfig(**_text_sizes(width), eos_token_id=2)
    patches = (SIDE // PATCH) ** 2
    config = LlavaConfig(vision_config=seeing, text_config=speaking, image_token_index=4, image_seq_length=patches)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlavaForConditionalGeneration(config)
    save_by_hub_names(model)
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    LlavaProcessor(
        images,
        tokenizer(),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    ).save_pretrained(folder)
    return str(folder)


def llava_next(folder: Path, width: int = 16) -> str:
    """Write a LLaVA-NeXT of random weights, which reads an image in tiles (AnyRes), and return its folder."""
    parts = {"vision_config": _vision_config(width), "text_config": LlamaConfig(**_text_sizes(width), eos_token_id=2)}
    grids = [[SIDE, 2 * SIDE], [2 * SIDE, SIDE]]
    config = LlavaNextConfig(**parts, image_token_index=4, image_grid_pinpoints=grids)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlavaNextForConditionalGeneration(config)
    save_by_hub_names(model)
    model.save_pretrained(folder)
    side = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    LlavaNextProcessor(
        LlavaNextImageProcessorPil(**side, image_grid_pinpoints=grids),
        tokenizer(),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    ).save_pretrained(folder)
    return str(folder)


def qwen(folder: Path, width: int = 16) -> str:
    """Write a Qwen2.5-VL of random weights and return its folder; heads have half of ``width`` dimensions."""
    part = width // 16
    text = _text_sizes(width) | {"max_position_embeddings": 512, "eos_token_id": 6}
    text["rope_parameters"] = {"rope_type": "default", "mrope_section": [part, part, 2 * part], "rope_theta": 10000.0}
    vision: dict[str, Any] = {"depth": 2, "hidden_size": width, "intermediate_size": 2 * width, "num_heads": 2}
    vision |= {"out_hidden_size": width, "patch_size": 4, "window_size": 16, "fullatt_block_indexes": [1]}
    ids = {"image_token_id": 9, "video_token_id": 10, "vision_start_token_id": 7, "vision_end_token_id": 8}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids)
        Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    images = Qwen2VLImageProcessorPil(patch_size=4, temporal_patch_size=2, merge_size=2, min_pixels=64, max_pixels=1024)
    ImageOnlyQwenProcessor(images, tokenizer("<|im_end|>"), QWEN_TEMPLATE).save_pretrained(folder)
    return str(folder)
