"""Makes language models of a few thousand weights, for tests: random Llamas with a tokenizer trained on some lines."""

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
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(template)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=0.6,  # so that some tokens are far likelier than others
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
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
