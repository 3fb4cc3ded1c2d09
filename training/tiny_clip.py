"""Small CLIPs with random weights, and a tokenizer of words; need no download.

For trying training and evaluation offline, in seconds on a CPU. `write_tiny_clip` makes one for shards, which reads images
of 32 pixels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerBase

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.training.loading.shard_index import StoredSample, index_shards
from pairwright.training.loading.tokenization import CONTEXT, load_tokenizer
from pairwright.training.models.clip import Clip
from pairwright.training.run_folder import replace_folder


@dataclass(frozen=True, slots=True)
class ClipSizes:
    """Sizes of a new CLIP."""

    image: int = 32  # image side in pixels; a multiple of ``patch``
    patch: int = 8  # patch side in pixels
    # Of the states of both towers; a multiple of ``heads``. Feed-forward layers are four times as wide.
    width: int = 64
    layers: int = 2  # of each tower
    heads: int = 4  # of each attention
    dim: int = 32  # embedding size
    context: int = 32  # maximum tokens per text, including start and end token


def new_clip(tokenizer: PreTrainedTokenizerBase, sizes: ClipSizes | None = None, *, seed: int = 0) -> Clip:
    """Return a CLIP for the tokenizer, with transformers' initialization from ``seed``.

    Raises UsageError on inconsistent sizes, or a tokenizer without end token or with end token id 2, which transformers
    takes for the config of an old checkpoint, pooling texts at their highest id instead.
    """
    sizes = sizes or ClipSizes()
    if sizes.image % sizes.patch or sizes.width % sizes.heads:
        raise UsageError(f"{sizes}: image must be a multiple of patch, and width of heads")
    end = tokenizer.eos_token_id
    if not isinstance(end, int) or end == 2:
        raise UsageError(f"the tokenizer's end token has id {end}: a CLIP requires one other than 2")
    shared = {
        "hidden_size": sizes.width,
        "intermediate_size": 4 * sizes.width,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
    }
    marks = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": end, "pad_token_id": tokenizer.pad_token_id}
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": sizes.context, **marks, **shared}
    vision = {"image_size": sizes.image, "patch_size": sizes.patch, **shared}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=sizes.dim))
    return Clip(network, tokenizer)


TINY_SIZES = ClipSizes(context=CONTEXT)
_TEXTS = ("hard_negatives", "hard_positives", "conversations", "rationales")


def write_tiny_clip(data: str, out: Path, *, seed: int = 0) -> dict[str, Any]:
    """Write a tiny CLIP for the captions, edited texts, conversations and rationales of shards.

    ``data`` is a folder of shards, a tar or a brace pattern, ``out`` a new or empty folder. The same seed and shards
    give the same bytes. The result names the folder (``model``) and the numbers of ``parameters``, ``words`` of the
    vocabulary, pixels of an ``image``'s side, and tokens of a text (``context``).
    """
    check_new_folder(out)
    with TemporaryDirectory() as words:
        count = write_word_tokenizer(_texts(data), Path(words), TINY_SIZES.context)
        clip = new_clip(load_tokenizer(words), TINY_SIZES, seed=seed)
    with replace_folder(out) as temporary:
        clip.save(temporary)
    sizes = {"words": count, "image": TINY_SIZES.image, "context": TINY_SIZES.context}
    return {"model": str(out), "parameters": sum(each.numel() for each in clip.parameters()), **sizes}


def check_new_folder(out: Path) -> None:
    """Raise StorageError unless the folder is new or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StorageError(f"{out} is not empty. Choose a new folder, or remove it first.")


def _texts(data: str) -> Iterator[str]:
    index = index_shards(data)
    for number in range(sum(index.counts)):
        sample = next(index.find([number]))
        if isinstance(sample, StoredSample):  # broken JSON adds no words
            yield sample.caption
            source = sample.body.get("provenance")
            yield from _strings(source.get("captions") if isinstance(source, dict) else None)
            yield from _strings([sample.body.get(name) for name in _TEXTS])


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings within a JSON value of any shape; foreign shards may use the same member names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


PAD, UNKNOWN, START, END = "<pad>", "<unknown>", "<start>", "<end>"


def write_word_tokenizer(texts: Iterable[str], folder: Path, max_tokens: int = 77) -> int:
    """Write a tokenizer of whole lower-case words (runs of letters, digits or punctuation) that `load_tokenizer` reads.

    All words of the texts are in the vocabulary, whose size is returned; any other is the unknown token. Texts get a start
    and an end token, as CLIP's do, which ``max_tokens`` includes.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    splitter = pre_tokenizers.Whitespace()
    words = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(text.lower()))
    # The end token must not have id 2: transformers takes that for an old CLIP config and pools the wrong token.
    vocabulary = {word: number for number, word in enumerate([PAD, UNKNOWN, START, END, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, vocabulary[START]), (END, vocabulary[END])]
    )
    marks = {"pad_token": PAD, "bos_token": START, "eos_token": END, "unk_token": UNKNOWN}
    make: Any = PreTrainedTokenizerFast  # untyped
    made = make(tokenizer_object=tokenizer, model_max_length=max_tokens, **marks)
    made.save_pretrained(folder)
    return len(vocabulary)
