"""Tiny models from configs: a CLIP of three layers, a causal language model, a T5."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    CLIPConfig,
    CLIPModel,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from pairwright.training.models.clip import Clip

SIZE, PATCH, LAYERS, CONTEXT, START, END = 16, 8, 3, 10, 60, 61
PATCHES = (SIZE // PATCH) ** 2
WORDS = ["<pad>", "<s>", "</s>", "<unk>", "what", "colour", "is", "it", "red", "blue", "Human", "Assistant", ":", "?"]


def clip(seed: int = 0) -> Clip:
    """Return a CLIP whose towers differ in width, as those of ViT-L/14 do."""
    shared = {"num_hidden_layers": LAYERS, "num_attention_heads": 2}
    vision = shared | {"hidden_size": 24, "intermediate_size": 48, "image_size": SIZE, "patch_size": PATCH}
    text = shared | {"hidden_size": 16, "intermediate_size": 32, "vocab_size": 62, "max_position_embeddings": CONTEXT}
    text |= {"bos_token_id": START, "eos_token_id": END, "pad_token_id": END}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=12))
        for name, parameter in network.named_parameters():
            if name != "logit_scale":
                nn.init.normal_(parameter, mean=float("norm" in name and "weight" in name), std=0.2)
    return Clip(network)


def vision(seed: int = 0) -> CLIPVisionModel:
    """Return the vision tower of `clip`."""
    found = clip(seed).network.vision_model
    assert isinstance(found, CLIPVisionModel)
    return found


def language(seed: int = 0, kind: str = "llama") -> PreTrainedModel:
    """Return a causal language model over `WORDS`."""
    sizes: dict[str, Any] = {
        "hidden_size": 20,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    sizes |= {"vocab_size": len(WORDS), "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "qwen":
            return Qwen2ForCausalLM(Qwen2Config(**sizes, eos_token_id=2, tie_word_embeddings=True))
        return LlamaForCausalLM(LlamaConfig(**sizes, eos_token_id=2))


def llava_checkpoint(seed: int = 0) -> LlavaForConditionalGeneration:
    """Return a LLaVA as transformers builds it; its mark of an image is ``<unk>``."""
    seeing, speaking = clip().network.config.vision_config, language().config
    config = LlavaConfig(vision_config=seeing, text_config=speaking, image_token_index=3, image_seq_length=PATCHES)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = LlavaForConditionalGeneration(config)
    made.train(mode=False)
    return made


def llava_processor() -> LlavaProcessor:
    """Return the processor of `llava_checkpoint`."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    square = {"height": SIZE, "width": SIZE}
    images = CLIPImageProcessorPil(size={"shortest_edge": SIZE}, crop_size=square)
    return LlavaProcessor(
        images,
        tokenizer(),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<unk>",  # noqa: S106 - a token of a vocabulary
        chat_template="{% for message in messages %}{{ message['content'][-1]['text'] }} {% endfor %}",
    )


def student(seed: int = 0) -> T5ForConditionalGeneration:
    """Return a T5 over `WORDS`."""
    sizes: dict[str, Any] = {"decoder_start_token_id": 0, "dropout_rate": 0.0}
    sizes |= {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": len(WORDS)}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return T5ForConditionalGeneration(T5Config(**sizes))


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of `WORDS`, split at spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[3]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), WORDS[:4], strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=words, **names)


def images(count: int = 3, seed: int = 0) -> Tensor:
    """Return random images of the size that `clip` reads."""
    return torch.randn(count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def texts() -> tuple[Tensor, Tensor]:
    """Return three texts of CLIP's tokens with marks, of different lengths, and their mask."""
    rows = [[START, 5, 6, END], [START, 7, END], [START, 8, 9, 10, 11, END]]
    width = max(map(len, rows))
    ids = torch.tensor([row + [END] * (width - len(row)) for row in rows])
    return ids, torch.arange(width) < torch.tensor([[len(row)] for row in rows])


def step(model: nn.Module, loss: Tensor) -> set[str]:
    """Take one step of AdamW with decay on what is trained; return the names of all parameters that changed."""
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    loss.backward()  # type: ignore[no-untyped-call]
    torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=0.01, weight_decay=0.1).step()
    return {name for name, one in model.named_parameters() if not torch.equal(before[name], one)}
