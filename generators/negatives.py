"""Hard negatives by rules: minimal edits of a caption that are no longer true of its image.

SugarCrepe's seven types: REPLACE an object (`rules/replacing_objects.py`), an attribute (`rules/replacing_attributes.py`) or a
relation (`rules/relating.py`), SWAP objects or attributes (`rules/swapping.py`), ADD an object (`rules/adding_objects.py`) or an attribute
(`rules/adding_attributes.py`); and SHUFFLE (`rules/shuffling.py`), which is for training only and made on request. Fast
enough to run inside a data loader: tags, tables and pool statistics, no model.

For each requested type and each of `per_type` there is one annotation: kept, or rejected with the reason nearest to
success (`captions.caption.REASONS`): `no_edit` (nothing of the kind in the caption), `question` (the caption asks),
`no_candidate` (all words are filtered out), `not_grammatical`, `true_of_image`, `identical`, `duplicate`,
`no_positive` (both-sides pairs). Two negatives of a pair are never equal, nor is one equal to a caption of the image.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.edited import BothOutcome, Edited, edited_annotation, first_good, first_pair
from pairwright.generators.edits.invisible_text import restore_invisible, strip_invisible
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.language.tokens import Token
from pairwright.generators.positives import rewrite_rules
from pairwright.generators.rules.adding_attributes import add_attribute, both_attributes
from pairwright.generators.rules.adding_objects import add_object, both_objects
from pairwright.generators.rules.alternatives import alternatives_in
from pairwright.generators.rules.both_sides import Positives, with_positive
from pairwright.generators.rules.denial import Denied, denied_in, touches
from pairwright.generators.rules.relating import replace_relation
from pairwright.generators.rules.replacing_attributes import replace_attribute
from pairwright.generators.rules.replacing_objects import replace_object
from pairwright.generators.rules.shuffling import shuffle
from pairwright.generators.rules.swapping import swap_attribute, swap_object

NAME = "rules-negatives"
VERSION = 21

EditRule = Callable[[Caption, Candidates, RandomStream], Iterator[Outcome]]
EDIT_RULES: dict[str, EditRule] = {
    "replace-object": replace_object,
    "replace-attribute": replace_attribute,
    "replace-relation": replace_relation,
    "swap-object": swap_object,
    "swap-attribute": swap_attribute,
    "add-object": add_object,
    "add-attribute": add_attribute,
    "shuffle": shuffle,
}
# Types whose negative and positive are made together, so that the negative is not the longer text.
BOTH_SIDES: dict[str, Callable[[Caption, Candidates, RandomStream], Iterator[BothOutcome]]] = {
    "add-object": both_objects,
    "add-attribute": both_attributes,
}
TYPES = tuple(EDIT_RULES)
FOR_TRAINING = frozenset({"shuffle"})  # never in a benchmark
FOR_BENCHMARKS = tuple(kind for kind in TYPES if kind not in FOR_TRAINING)


@dataclass(frozen=True, slots=True)
class NegativeOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        per_type: negatives of each type a caption.
        minimum: captions of the pool in which a new word must occur.
        least: minimum plausibility of a new word in its context, -1 to 1 (`pool.PoolStatistics.plausibility`).
        seed: recorded in the origin of each row; the random generator is an argument of the call.
        last_resorts: negate a relation that cannot be replaced ("without", "has no", "away from"); detectable in the text.
        both_sides: pair each negative (except SHUFFLE) with a hard positive, referenced by ``positive_id``; a negative
            without one is rejected as `no_positive`. ADD gets a true addition in the same place. The positives follow
            the negatives.
    """

    types: tuple[str, ...] = FOR_BENCHMARKS
    per_type: int = 1
    minimum: int = 5
    least: float = 0.0
    seed: int = 0
    last_resorts: bool = True
    both_sides: bool = False


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
        self._origin = Origin(NAME, VERSION, self.options.seed)
        require_known("no such type of negative:", self.options.types, TYPES)
        if self.options.per_type < 1:
            raise UsageError(f"per_type must be at least 1, not {self.options.per_type}.")
        self._rewordings = (
            rewrite_rules(thesaurus, pool, minimum=self.options.minimum) if self.options.both_sides else {}
        )
        exchanged = (
            {} if self.options.last_resorts else {"replace-relation": partial(replace_relation, last_resorts=False)}
        )
        self._makers = EDIT_RULES | exchanged
        self._candidates = Candidates.of(thesaurus, pool, minimum=self.options.minimum, least=self.options.least)

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return ``per_type`` annotations for each type, in the order of the options; positives after their types."""
        return restore_invisible(self._made(*strip_invisible(pair, tokens), rng), pair)

    def _made(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        caption, seed = Caption(pair, tokens), rng.getrandbits(60)
        seeds = {
            kind: rng.getrandbits(64) for kind in TYPES
        }  # for all types, so that the choice of types does not change them
        taken = {pair.caption, *pair.captions}
        positives = Positives(self._rewordings, caption, taken, seed, self._origin)
        made: list[Annotation] = []
        uncertain = _negated_or_uncertain_spans(caption)
        for kind in self.options.types:
            draws = RandomStream(seeds[kind])
            if self.options.both_sides and kind in BOTH_SIDES:
                made += self._additions(caption, kind, draws, positives, taken)
                continue
            outcomes = _without_uncertain(self._makers[kind](caption, self._candidates, draws), uncertain)
            for ordinal in range(self.options.per_type):
                row = self._row(first_good(caption, outcomes, taken), pair, f"{kind}/{ordinal}")
                if self.options.both_sides and kind not in FOR_TRAINING and row.status == "kept":
                    row = with_positive(row, positives.beside(kind))
                made.append(row)
        return made + positives.rows

    def _additions(
        self, caption: Caption, kind: str, draws: RandomStream, positives: Positives, taken: set[str]
    ) -> list[Annotation]:
        """Return false additions, each with a true one in the same place."""
        outcomes = _without_uncertain_pairs(
            BOTH_SIDES[kind](caption, self._candidates, draws), _negated_or_uncertain_spans(caption)
        )
        rows = []
        for ordinal in range(self.options.per_type):
            false, true = first_pair(caption, outcomes, taken)
            row = self._row(false, caption.pair, f"{kind}/{ordinal}")
            rows.append(with_positive(row, positives.add(true, kind, str(ordinal)) if true.text else ""))
        return rows

    def _row(self, found: Edited, pair: Pair, attempt: str) -> Annotation:
        return edited_annotation(found, pair, "hard_negative", attempt, self._origin)


def _negated_or_uncertain_spans(caption: Caption) -> tuple[Denied, ...]:
    """Return the spans that a caption negates, or leaves open by "or"."""
    return (*denied_in(caption.pair.caption), *alternatives_in(caption))


def _without_uncertain(outcomes: Iterator[Outcome], uncertain: Sequence[Denied]) -> Iterator[Outcome]:
    """Yield the outcomes, rejecting those inside uncertain spans: such an edit may be true too."""
    if not uncertain:
        return outcomes
    return (each if isinstance(each, str) or not touches(uncertain, each) else "true_of_image" for each in outcomes)


def _without_uncertain_pairs(outcomes: Iterator[BothOutcome], uncertain: Sequence[Denied]) -> Iterator[BothOutcome]:
    """Yield pairs of additions likewise."""
    if not uncertain:
        return outcomes
    return (each if isinstance(each, str) or not touches(uncertain, each[0]) else "true_of_image" for each in outcomes)
