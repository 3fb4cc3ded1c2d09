"""A LLaVA model of a few thousand weights, drawn at random, with its processor: what a trainer needs to take a step.

    python tiny_vlm.py FOLDER

Nothing is downloaded; the tokenizer has the bytes as its vocabulary.
"""

import sys
from pathlib import Path

import cpu_torch  # noqa: F401
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

SPECIAL = ("<pad>", "<s>", "</s>", "<image>")
SIDE, PATCH = 28, 14
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{{ '</s>' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def make_processor() -> LlavaProcessor:
    """Return the processor."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inside = Tokenizer(models.BPE(vocab={text: n for n, text in enumerate((*SPECIAL, *letters))}, merges=[]))
    inside.pre_tokenizer, inside.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inside,
        pad_token="<pad>",  # noqa: S106
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        additional_special_tokens=["<image>"],
        model_max_length=8192,
    )
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    return LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",  # noqa: S106
        chat_template=TEMPLATE,
    )


def make_model() -> LlavaForConditionalGeneration:
    """Return the model, the same at every call."""
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = LlamaConfig(
        **size,
        vocab_size=len(SPECIAL) + 256,
        max_position_embeddings=8192,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    vision = CLIPVisionConfig(**size, image_size=SIDE, patch_size=PATCH, projection_dim=32)
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=3,
        image_token_id=3,
        vision_feature_layer=-1,
        pad_token_id=0,
    )
    return LlavaForConditionalGeneration(config)


def save(folder: Path) -> None:
    """Write model and processor into a folder."""
    make_model().save_pretrained(folder)
    make_processor().save_pretrained(folder)


if __name__ == "__main__":
    save(Path(sys.argv[1]))
