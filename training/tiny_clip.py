"""Tiny CLIP with random weights and a word tokenizer for the texts of shards; needs no download.

For trying training and evaluation offline, in seconds on a CPU. It reads images of 32 pixels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pairwright.datasets.errors import StorageError
from pairwright.training.loading.samples import StoredSample
from pairwright.training.loading.shard_index import index_shards
from pairwright.training.loading.tokenization import CONTEXT, load_tokenizer
from pairwright.training.models.random_clip import ClipSizes, new_clip
from pairwright.training.run_checkpoints import save_model

TINY_SIZES = ClipSizes(context=CONTEXT)
_TEXTS = ("hard_negatives", "hard_positives", "conversations", "rationales")


@dataclass(frozen=True, slots=True)
class TinyClipResult:
    """A written model."""

    model: str  # its folder
    parameters: int  # number of weights
    words: int  # vocabulary size, including four special tokens
    image: int  # image side in pixels
    context: int  # tokens per text, including start and end token


def write_tiny_clip(data: str, out: Path, *, seed: int = 0) -> TinyClipResult:
    """Write a tiny CLIP for the captions, edited texts, conversations and rationales of shards.

    Args:
        data: a folder of shards, a tar or a brace pattern.
        out: folder of the model; new or empty.
        seed: of the weights; the same seed and shards give the same bytes.

    Raises:
        InputError: no shards, or no sample in them.
        StorageError: ``out`` is not empty; a shard is damaged.
    """
    check_new_folder(out)
    with TemporaryDirectory() as words:
        count = write_word_tokenizer(_texts(data), Path(words), TINY_SIZES.context)
        clip = new_clip(load_tokenizer(words), TINY_SIZES, seed=seed)
    if out.is_dir():
        out.rmdir()
    save_model(clip, out)
    parameters = sum(each.numel() for each in clip.parameters())
    return TinyClipResult(str(out), parameters, count, TINY_SIZES.image, TINY_SIZES.context)


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

    All words of the texts are in the vocabulary, any other is the unknown token. Texts get a start and an end token, as
    CLIP's do.

    Args:
        texts: source of the vocabulary.
        folder: created if missing.
        max_tokens: limit of the text tower, including start and end token.

    Returns:
        Vocabulary size, including four special tokens.
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
