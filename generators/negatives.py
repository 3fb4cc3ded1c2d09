"""Hard negatives by rules: minimal edits of a caption that are no longer true of its image.

Five of SugarCrepe's types: REPLACE an object, an attribute or a relation (`replacing.py`), SWAP objects or attributes
(`swapping.py`). Fast enough to run inside a data loader: tags, tables and pool statistics, no model.

For each asked type and each of `per_type` there is one annotation: kept, or rejected with the reason that came nearest
to success (`captions.REASONS`): `no_edit` (nothing of the kind in the caption), `no_candidate` (no word is left after
the filters), `not_grammatical`, `true_of_image`, `identical`, `duplicate`. Two negatives of a pair are never equal, nor
is one equal to a caption of the image.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import Caption, Outcome
from pairwright.generators.edited import edited_annotation, first_good
from pairwright.generators.knowledge import Pool, Thesaurus
from pairwright.generators.language.tokens import Token
from pairwright.generators.replacing import replace_attribute, replace_object, replace_relation
from pairwright.generators.swapping import swap_attribute, swap_object

NAME = "rules-negatives"
VERSION = 1

Maker = Callable[[Caption, Candidates, random.Random], Iterator[Outcome]]
MAKERS: dict[str, Maker] = {
    "replace-object": replace_object,
    "replace-attribute": replace_attribute,
    "replace-relation": replace_relation,
    "swap-object": swap_object,
    "swap-attribute": swap_attribute,
}
TYPES = tuple(MAKERS)


@dataclass(frozen=True, slots=True)
class NegativeOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        per_type: negatives of each type a caption.
        minimum: captions of the pool in which a new word must occur.
        least: plausibility that a new word must reach in its context, -1 to 1 (`pool.PoolStatistics.plausibility`).
        seed: written into the origin of each row; chance itself comes with the call.
    """

    types: tuple[str, ...] = TYPES
    per_type: int = 1
    minimum: int = 5
    least: float = 0.0
    seed: int = 0


class RuleNegatives:
    """The rule generator (`protocols.RuleGenerator`) of hard negatives.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool`).
        options: what to make.

    Raises:
        UsageError: the options name an unknown type or ask for less than one negative a type.
    """

    name = NAME
    version = VERSION

    def __init__(self, thesaurus: Thesaurus, pool: Pool, options: NegativeOptions | None = None) -> None:
        self.options = options or NegativeOptions()
        unknown = sorted(set(self.options.types) - set(TYPES))
        if unknown:
            raise UsageError(f"no such type of negative: {', '.join(unknown)}. Known: {', '.join(TYPES)}.")
        if self.options.per_type < 1:
            raise UsageError(f"per_type must be at least 1, not {self.options.per_type}.")
        self._candidates = Candidates(thesaurus, pool, minimum=self.options.minimum, least=self.options.least)

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return ``per_type`` annotations for each type, in the order of the options."""
        caption = Caption(pair, tokens)
        seed, origin = rng.getrandbits(64), Origin(NAME, VERSION, self.options.seed)
        taken = {pair.caption, *pair.captions}
        made: list[Annotation] = []
        for kind in self.options.types:
            outcomes = MAKERS[kind](caption, self._candidates, stream(seed, kind))
            for ordinal in range(self.options.per_type):
                found = first_good(caption, outcomes, taken)
                made.append(edited_annotation(found, pair, "hard_negative", f"{kind}/{ordinal}", origin))
        return made
