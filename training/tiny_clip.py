"""A small CLIP for the texts of shards: random weights, a tokenizer of their words, pixel settings. Nothing is downloaded.

For trying the trainer and the evaluation offline, in seconds on a CPU. It knows nothing before it is trained, and its
tower reads images of 32 pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pairwright.datasets.errors import StorageError
from pairwright.training.loading.samples import StoredSample
from pairwright.training.loading.shard_index import index_shards
from pairwright.training.loading.tokenization import CONTEXT, load_tokenizer
from pairwright.training.loading.word_tokenizer import write_word_tokenizer
from pairwright.training.models.random_clip import ClipSizes, new_clip
from pairwright.training.run_checkpoints import save_model

TINY_SIZES = ClipSizes(context=CONTEXT)
_TEXTS = ("hard_negatives", "hard_positives", "conversations", "rationales")


@dataclass(frozen=True, slots=True)
class TinyClipResult:
    """What was made.

    Attributes:
        model: its folder.
        parameters: numbers in its weights.
        words: of its tokenizer, its four marks included.
        image: pixels of a side that it reads.
        context: tokens of a text that it reads, marks included.
    """

    model: str
    parameters: int
    words: int
    image: int
    context: int


def write_tiny_clip(data: str, out: Path, *, seed: int = 0) -> TinyClipResult:
    """Write a small CLIP for the captions, edited texts, conversations and rationales of shards.

    Args:
        data: a folder of shards, a tar or a brace pattern.
        out: folder of the model; new or empty.
        seed: of the weights; the same seed and shards give the same bytes.

    Raises:
        InputError: no such shards, or none with a sample.
        StorageError: ``out`` holds files; a shard that is torn.
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
    """Raise StorageError when the folder holds files."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StorageError(f"{out} holds files already. Choose a new folder, or remove it first.")


def _texts(data: str) -> Iterator[str]:
    index = index_shards(data)
    for number in range(sum(index.counts)):
        sample = index.find(number)
        if isinstance(sample, StoredSample):  # one with broken JSON adds no words
            yield sample.caption
            source = sample.body.get("provenance")
            yield from _strings(source.get("captions") if isinstance(source, dict) else None)
            yield from _strings([sample.body.get(name) for name in _TEXTS])


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings within a JSON value, whatever its shape: shards of others have members of the same names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
