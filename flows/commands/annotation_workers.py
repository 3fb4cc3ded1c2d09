"""What processes do for `generating`: tag captions and count their words, and annotate batches of pairs by rules.

What comes out depends on the batch alone. Generators do not pickle, what they are made of does: a `Recipe`.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.language.pool_statistics import PoolCounts, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.token_storage import PackedTokens, pack, unpack
from pairwright.generators.language.tokens import Token
from pairwright.generators.registry import Materials, build_generator

# A pair, with the tokens of its caption where these are known.
Waiting = tuple[Pair, PackedTokens | None]


def tag_and_count(captions: Sequence[str]) -> tuple[PoolCounts, list[PackedTokens]]:
    """Return what is counted of some captions, and their tokens."""
    tokens = load_tagger().tag(captions)
    return count_captions(tokens), [pack(words) for words in tokens]


def tag_batch(batch: Sequence[Waiting]) -> Iterable[list[Token]]:
    """Return the tokens of the captions of a batch; those that are not known are tagged together."""
    tagged = iter(load_tagger().tag([pair.caption for pair, known in batch if known is None]))
    return (next(tagged) if known is None else unpack(pair.caption, known) for pair, known in batch)


@dataclass(frozen=True)
class GeneratorSetup:
    """What annotations are made by.

    Attributes:
        generator: name of a generator by rules.
        options: of the generator.
        materials: of the generator.
        seed: of the run.
    """

    generator: str
    options: Mapping[str, Any]
    materials: Materials
    seed: int


class BatchAnnotator:
    """Annotates batches of pairs; pickles as the path of a file with its recipe, which each process reads once.

    Args:
        recipe: what to make.
        folder: for the file, there as long as other processes work.

    Raises:
        UsageError: there is no such generator, or it does not take the options.
    """

    def __init__(self, recipe: GeneratorSetup, folder: Path) -> None:
        self._recipe, self._path = recipe, folder / "recipe.pickle"
        self._maker = build_generator(recipe.generator, recipe.materials, recipe.options)

    def __call__(self, batch: Sequence[Waiting]) -> list[list[Annotation]]:
        """Return the annotations of each pair of a batch."""
        maker, seed = self._maker, self._recipe.seed
        return [
            maker.annotate(pair, words, make_rng(seed, 0, maker.name, maker.version, pair.key))
            for (pair, _), words in zip(batch, tag_batch(batch), strict=True)
        ]

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        if not self._path.exists():  # none is written where no process asks
            self._path.write_bytes(pickle.dumps(self._recipe))
        return _load_setup, (self._path,)


@lru_cache(maxsize=1)
def _load_setup(path: Path) -> BatchAnnotator:
    recipe: GeneratorSetup = pickle.loads(path.read_bytes())  # noqa: S301 - what the process that started this one wrote
    return BatchAnnotator(recipe, path.parent)
