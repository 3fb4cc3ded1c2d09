"""Makes language models of a few thousand weights, for tests: random Llamas with a tokenizer trained on some lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

LINES = [
    "A black cat sits on a red mat beside the door.",
    "What is in the picture? Answer with one word and nothing else.",
    "System text. User: question. Assistant: answer.",
    'Document [1] "A dog runs." Document [2] "Two birds fly over water." {"caption": "A man rides."}',
]
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_model(folder: Path, *, template: str | None = CHAT, seed: int = 0, context: int = 1024) -> Path:
    """Write a model into ``folder`` and return it.

    Args:
        folder: made.
        template: of chats; None: the tokenizer has none.
        seed: of the weights.
        context: tokens that it reads at most.
    """
    import torch
    from transformers import LlamaForCausalLM

    tokenizer = make_tokenizer(template)
    torch.manual_seed(seed)
    LlamaForCausalLM(_language_config(tokenizer, context)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _language_config(tokenizer: Any, context: int, width: int = 32) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.6,  # so that some tokens are far likelier than others
    )


SEEING_CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_seeing_model(
    folder: Path,
    *,
    template: str | None = SEEING_CHAT,
    seed: int = 0,
    context: int = 4096,
    words: Sequence[str] = (),
    width: int = 32,
) -> Path:
    """Write a LLaVA with random weights into ``folder`` and return it; it reads images of 28 x 28 pixels as four tokens.

    Args:
        folder: made.
        template: of chats; None: the tokenizer has none.
        seed: of the weights.
        context: tokens that it reads at most.
        words: further tokens.
        width: of the language model, four times that of its heads.
    """
    import torch
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    from pairwright.training.models.checkpoints import save_by_hub_names

    tokenizer = make_tokenizer(template)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.add_tokens(list(words))
    torch.manual_seed(seed)
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
        initializer_range=0.6,
    )
    config = LlavaConfig(
        text_config=_language_config(tokenizer, context, width),
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    model = LlavaForConditionalGeneration(config)
    save_by_hub_names(model)
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    make: Any = LlavaProcessor
    processor = make(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",  # noqa: S106 - not a secret
        chat_template=template,
    )
    processor.save_pretrained(folder)
    return folder


QWEN_CHAT = SEEING_CHAT.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")


def make_qwen(folder: Path, *, seed: int = 0, context: int = 4096) -> Path:
    """Write a Qwen2.5-VL with random weights into ``folder`` and return it; it reads images as the published ones do.

    Args:
        folder: made.
        seed: of the weights.
        context: tokens that it reads at most.
    """
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorPil

    from tests.training.finetuning.tiny_vlms import ImageOnlyQwenProcessor

    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = make_tokenizer(QWEN_CHAT)
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    ids = dict(zip(names, tokenizer.convert_tokens_to_ids(marks), strict=True))
    language = _language_config(tokenizer, context).to_dict() | {"model_type": "qwen2_5_vl_text"}
    language["rope_parameters"] = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 32}
    torch.manual_seed(seed)
    config = Qwen2_5_VLConfig(text_config=language, vision_config={**vision, "fullatt_block_indexes": [1]}, **ids)
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    images = Qwen2VLImageProcessorPil(min_pixels=4 * 28 * 28, max_pixels=16384 * 28 * 28)  # as in the published ones
    ImageOnlyQwenProcessor(images, tokenizer, QWEN_CHAT).save_pretrained(folder)
    return folder


def make_tokenizer(template: str | None = CHAT) -> Any:
    """Return a byte-level tokenizer of transformers, trained on `LINES`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    marks = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        LINES, trainers.BpeTrainer(vocab_size=340, special_tokens=marks, initial_alphabet=alphabet, show_progress=False)
    )
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=tokenizer)
    fast.eos_token = fast.pad_token = marks[0]
    fast.chat_template = template
    return fast
