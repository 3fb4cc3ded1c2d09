"""Hard negatives by rules: minimal edits of a caption that are no longer true of its image.

SugarCrepe's seven types: REPLACE an object, an attribute or a relation (`edits/replacements.py`), SWAP objects or
attributes (`edits/swaps`), ADD an object or an attribute (`edits/additions`); `negation` (`edits/negation.py`) and
SHUFFLE (`edits/shuffling.py`, for training only) are made on request. Proposals come from a lexicon and the captions of
the pool, are ranked by a cloze model of these captions, sampled so that words do not tell an edit, and checked by the
constraints (`edits/constraints`). Captions are scored in batches; one takes less than a millisecond.

For each requested type and each of `per_type` there is one annotation: kept, or rejected with the reason nearest to
success (`captions.caption.REASONS`): `no_edit` (nothing of the kind in the caption), `question` (the caption asks),
`not_english`, `no_candidate` (nothing fits as well as the floor demands), `not_grammatical`, `true_of_image`, `identical`,
`duplicate`, `no_positive` (both-sides pairs). Two negatives of a pair are never equal, nor is one equal to a caption of
the image.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import TRAINING_ONLY_FORMS, Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import (
    EditedText,
    EditPairOutcome,
    edited_annotation,
    first_valid_edit,
    first_valid_texts,
)
from pairwright.generators.edit_types import BENCHMARK_TYPES, NEGATIVE_TYPES
from pairwright.generators.edits.both_sides import CaptionPositives, with_positive
from pairwright.generators.edits.edit_model import EditModel, load_bundled_model
from pairwright.generators.edits.editors import PAIRED_TYPES, build_editors
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.edits.invisible_text import restore_invisible, strip_invisible
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.tokens import Token
from pairwright.generators.positives import rewrite_rules

NAME = "rules-negatives"
VERSION = 38


@dataclass(frozen=True, slots=True)
class NegativeOptions:
    """What to make.

    Attributes:
        types: of `NEGATIVE_TYPES`.
        per_type: negatives of each type a caption.
        floor: least probability of a replacement in its context, above 0 and at most 1. A higher floor gives fewer
            negatives that read better.
        seed: recorded in the origin of each row; the random generator is an argument of the call.
        both_sides: pair each negative (except SHUFFLE) with a hard positive, referenced by ``positive_id``; a negative
            without one is rejected as `no_positive`. ADD gets a true addition in the same place. The positives follow
            the negatives. NEGATION is always paired.
        vocabulary: labels of all objects that the boxes of an image are complete for; NEGATION needs them, since only
            they prove that something is absent.
        skip_constraints: ids of constraints that are not applied, for experiments.
    """

    types: tuple[str, ...] = BENCHMARK_TYPES
    per_type: int = 1
    floor: float = DEFAULT_FLOOR
    seed: int = 0
    both_sides: bool = False
    vocabulary: tuple[str, ...] = ()
    skip_constraints: frozenset[str] = frozenset()


class RuleNegatives:
    """The rule generator (`protocols.RuleGenerator`) of hard negatives.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool_statistics`).
        options: what to make.
        model: edit model of the same captions (`edits.edit_model`); the bundled one if None.

    Raises:
        UsageError: the options name an unknown type, ask for less than one negative a type, or for a floor outside of
            (0, 1].
    """

    name = NAME
    version = VERSION

    def __init__(
        self, thesaurus: Any, pool: Any, options: NegativeOptions | None = None, model: EditModel | None = None
    ) -> None:
        self.options = chosen = options or NegativeOptions()
        self._origin = Origin(NAME, VERSION, chosen.seed)
        require_known("no such type of negative:", chosen.types, NEGATIVE_TYPES)
        if chosen.per_type < 1:
            raise UsageError(f"per_type must be at least 1, not {chosen.per_type}.")
        if not 0 < chosen.floor <= 1:
            raise UsageError(f"floor must be above 0 and at most 1, not {chosen.floor}.")
        self._materials = EditMaterials.of(thesaurus, pool, model or load_bundled_model())
        self._rewordings = (
            rewrite_rules(self._materials.knowledge.pool, self._materials.model.cloze) if chosen.both_sides else {}
        )
        self._editors = build_editors(
            self._materials,
            chosen.types,
            chosen.floor,
            both_sides=chosen.both_sides,
            vocabulary=chosen.vocabulary,
            skip=chosen.skip_constraints,
        )

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return ``per_type`` annotations for each type, in the order of the options; positives after their types."""
        return self.annotate_batch([pair], [tokens], [rng])[0]

    def annotate_batch(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], rngs: Sequence[random.Random]
    ) -> list[list[Annotation]]:
        """Return the annotations of several pairs, which are those of `annotate`, in less time."""
        stripped = [strip_invisible(pair, words) for pair, words in zip(pairs, tokens, strict=True)]
        captions = [Caption(pair, words) for pair, words in stripped]
        first = [rng.getrandbits(60) for rng in rngs]
        # Seeds for all types, so that the choice of types does not change the edits.
        seeds: list[dict[str, int]] = [{kind: rng.getrandbits(64) for kind in NEGATIVE_TYPES} for rng in rngs]
        found = self._editors.outcomes(captions, seeds)
        return [
            restore_invisible(self._annotate(caption, outcomes, seed), pair)
            for caption, outcomes, seed, pair in zip(captions, found, first, pairs, strict=True)
        ]

    def _annotate(self, caption: Caption, by_type: Mapping[str, Iterator[Any]], seed: int) -> list[Annotation]:
        taken = {caption.pair.caption, *caption.pair.captions}
        positives = CaptionPositives(self._rewordings, caption, taken, seed, self._origin)
        made: list[Annotation] = []
        for kind in self.options.types:
            outcomes = by_type[kind]
            paired = kind in PAIRED_TYPES and (self.options.both_sides or kind == "negation")
            for ordinal in range(self.options.per_type):
                attempt = f"{kind}/{ordinal}"
                if paired:
                    made.append(self._pair(caption, outcomes, attempt, positives, taken))
                    continue
                row = self._row(first_valid_edit(caption, outcomes, taken), caption.pair, attempt)
                if self.options.both_sides and kind not in TRAINING_ONLY_FORMS and row.status == "kept":
                    row = with_positive(row, positives.find_id(kind))
                made.append(row)
        return made + positives.rows

    def _pair(
        self,
        caption: Caption,
        outcomes: Iterator[EditPairOutcome],
        attempt: str,
        positives: CaptionPositives,
        taken: set[str],
    ) -> Annotation:
        """Return a negative whose positive is made with it, which joins ``positives``."""
        false, *true = first_valid_texts(caption, outcomes, taken)
        row = self._row(false, caption.pair, attempt)
        return with_positive(row, positives.add(true[0], attempt) if true else "")

    def _row(self, found: EditedText, pair: Pair, attempt: str) -> Annotation:
        return edited_annotation(found, pair, "hard_negative", attempt, self._origin)
