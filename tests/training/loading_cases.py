"""Small shards and tokenizers for the tests of loading."""

from pathlib import Path
from typing import Any

from pairwright.datasets.shards.writing import write_shards
from pairwright.training.loading.batches import Collator
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.loader import LoadingOptions, ShardLoader
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.tiny_clip import write_word_tokenizer
from tests.datasets.sample_builders import samples

SIDE = 16
WORDS = (
    "a red blue circle disc above squares what color is the circle? there star? no, star. does it fit? not so answer "
    "[label] [rationale] yes USER: ASSISTANT: . 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"
)


def shards(folder: Path, count: int = 23, in_each: int = 5) -> str:
    """Write ``count`` samples with pictures, every second one with texts, and return their brace pattern."""
    return write_shards(samples(count), folder / "shards", max_samples=in_each).pattern


def tokenizer(folder: Path) -> str:
    """Write a tokenizer of the tests' words and return its folder."""
    write_word_tokenizer([WORDS], folder / "tokenizer")
    return str(folder / "tokenizer")


def loader(data: str, recipe: Collator[Any], words: str, max_tokens: int = 77, **options: Any) -> ShardLoader[Any]:
    """Return a loader of small pictures."""
    fixed = options.pop("fixed", False)
    named = {"batch_size": 4, "seed": 7, **options}
    return ShardLoader(
        data, recipe, LoadingOptions(**named), TextOptions(words, max_tokens, fixed), ImageOptions(SIDE, crop=0.5)
    )
