"""Jobs of the worker processes of `generate.py`: tagging captions, and annotating batches of pairs by rules.

Results depend on the batch alone. Generators cannot be pickled, their `GeneratorSetup` can.
"""

import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.runners.pickled_setup import SetupInFile
from pairwright.generators.language.packed_tokens import PackedTokens, pack, unpack
from pairwright.generators.language.pool_statistics import PoolCounts, count_captions, count_words
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.protocols import RuleGenerator, annotate_pairs
from pairwright.generators.registry import Materials, build_generator

if TYPE_CHECKING:
    from pairwright.generators.language.cloze.examples import ClozeSample

# A pair, with the tokens of its caption if they are known.
Waiting = tuple[Pair, PackedTokens | None]


class TaggedCaptions(NamedTuple):
    """What is read of some captions of the pool: their word counts, their slots and their tokens."""

    counts: PoolCounts
    slots: "ClozeSample"
    tokens: list[PackedTokens]


def tag_and_count(captions: Sequence[str]) -> TaggedCaptions:
    """Return the word counts, the slots and the tokens of captions."""
    from pairwright.generators.edits.learning import sample_slots  # imports all editors

    tokens = load_tagger().tag(captions)
    slots = sample_slots(captions, tokens, load_wordnet())
    _freeze_tables()
    return TaggedCaptions(count_captions(tokens), slots, [pack(words) for words in tokens])


@lru_cache(maxsize=1)
def _freeze_tables() -> None:
    """Keep the garbage collector from visiting the loaded tables, which live as long as the process."""
    gc.freeze()


def tag_and_count_words(captions: Sequence[str]) -> PoolCounts:
    """Return the word counts of captions that checks of written texts need."""
    return count_words(load_tagger().tag(captions))


def tag_batch(batch: Sequence[Waiting]) -> Iterable[list[Token]]:
    """Return the tokens of the captions of a batch; unknown ones are tagged together."""
    tagged = iter(load_tagger().tag([pair.caption for pair, known in batch if known is None]))
    return (next(tagged) if known is None else unpack(pair.caption, known) for pair, known in batch)


@dataclass(frozen=True)
class GeneratorSetup:
    """A generator before it is constructed.

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


class BatchAnnotator(SetupInFile[GeneratorSetup]):
    """Annotates batches of pairs."""

    def __call__(self, batch: Sequence[Waiting]) -> list[list[Annotation]]:
        """Return the annotations of each pair of a batch.

        Raises:
            UsageError: for an unknown generator, or options that it does not have.
        """
        pairs = ((pair, words) for (pair, _), words in zip(batch, tag_batch(batch), strict=True))
        return list(annotate_pairs(self._generator, pairs, self._setup.seed))

    @cached_property
    def _generator(self) -> RuleGenerator:
        """The generator, constructed in each process that annotates."""
        made = build_generator(self._setup.generator, self._setup.materials, self._setup.options)
        gc.freeze()  # as in `_freeze_tables`, with those of the generator
        return made
