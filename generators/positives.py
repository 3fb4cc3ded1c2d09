"""Hard positives by rules: minimal edits of a caption that are still true of its image.

REPLACE rewords an object, an attribute or a relation (`edits/rewordings.py`): candidates come from the lexicon,
and a cloze model of the captions, if there is one, says which of them read well. SWAP exchanges the phrases
joined by "and" ("a cat and a dog" gives "a dog and a cat"), each with its determiner and adjectives. Rewordings that
might change the meaning are skipped.

There is one annotation for each requested type, kept or rejected with its reason (`captions.caption.REASONS`);
`may_be_false` means a swap that could change the meaning, or an ambiguous word. The Hard Positive Truth, section 3, shows
why training needs hard positives.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.edited import edited_annotation, first_valid_edit
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.edits.coordination import swap_around_and
from pairwright.generators.edits.invisible_text import restore_invisible, strip_invisible
from pairwright.generators.edits.materials import statistics_for
from pairwright.generators.edits.rewordings import Rewordings, RewordingSlot, draw_rewordings
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tokens import Token

NAME = "rules-positives"
VERSION = 18
BY_PREFERENCE = (
    "replace-attribute",
    "replace-relation",
    "replace-object",
    "swap-object",
)  # beside a negative of another type
_REWORDED = {"replace-object": "object", "replace-attribute": "attribute", "replace-relation": "relation"}

RewriteRule = Callable[[Caption, random.Random], Iterator[EditOutcome]]


def rewrite_rules(pool: PoolStatistics, model: ClozeModel | None = None) -> dict[str, RewriteRule]:
    """Return the rule of each type."""
    rewordings = Rewordings(pool, model)
    return {
        **{kind: partial(rewordings.reword, target) for kind, target in _REWORDED.items()},
        "swap-object": swap_around_and,
    }


@dataclass(frozen=True, slots=True)
class PositiveOptions:
    """What to make.

    Attributes:
        types: of `POSITIVE_TYPES`.
        seed: recorded in the origin of each row; the random generator is an argument of the call.
    """

    types: tuple[str, ...] = POSITIVE_TYPES
    seed: int = 0


class RulePositives:
    """The rule generator (`protocols.RuleGenerator`) of hard positives.

    Args:
        pool: frozen statistics of the user's captions (`language.pool_statistics`).
        options: what to make.
        model: the cloze model of the pool; optional.

    Raises:
        UsageError: the options name an unknown type.
    """

    name = NAME
    version = VERSION

    def __init__(
        self, pool: PoolStatistics, options: PositiveOptions | None = None, model: ClozeModel | None = None
    ) -> None:
        self.options = options or PositiveOptions()
        require_known("no such type of positive:", self.options.types, POSITIVE_TYPES)
        self._rewordings = Rewordings(statistics_for(pool, model), model)

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return one annotation for each type, in the order of the options."""
        return self.annotate_batch([pair], [tokens], [rng])[0]

    def annotate_batch(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], rngs: Sequence[random.Random]
    ) -> list[list[Annotation]]:
        """Return the annotations of several pairs, which are those of `annotate`, in less time."""
        stripped = [strip_invisible(pair, words) for pair, words in zip(pairs, tokens, strict=True)]
        captions = [Caption(pair, words) for pair, words in stripped]
        reworded = {
            kind: self._rewordings.score(captions, _REWORDED[kind]) for kind in self.options.types if kind in _REWORDED
        }
        return [
            restore_invisible(self._annotate(caption, {kind: found[at] for kind, found in reworded.items()}, rng), pair)
            for at, (caption, pair, rng) in enumerate(zip(captions, pairs, rngs, strict=True))
        ]

    def _annotate(
        self, caption: Caption, reworded: Mapping[str, Sequence[RewordingSlot | str]], rng: random.Random
    ) -> list[Annotation]:
        seed, origin = rng.getrandbits(60), Origin(NAME, VERSION, self.options.seed)
        taken = {caption.pair.caption, *caption.pair.captions}
        made: list[Annotation] = []
        for kind in self.options.types:
            places = reworded.get(kind)
            if "and" in caption.lower if places is None else any(isinstance(each, RewordingSlot) for each in places):
                rng.seed(seed + POSITIVE_TYPES.index(kind))  # takes long, and most rows draw nothing
            outcomes = swap_around_and(caption, rng) if places is None else draw_rewordings(caption, places, rng)
            made.append(
                edited_annotation(
                    first_valid_edit(caption, outcomes, taken), caption.pair, "hard_positive", kind, origin
                )
            )
        return made
