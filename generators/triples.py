"""Triples of a caption, a hard negative and a hard positive: reading the negative, and choosing the positive.

The evaluation of The Hard Positive Truth (section 3.4) asks whether a model ranks the caption *and* a true rewriting of
it above the negative. The two rewritings are edits of one kind: where the negative replaces an attribute, the positive
rewords one, at the same words where that can be done; where the negative exchanges two things, the positive exchanges
what "and" joins. ADD has no positive of its own form.

A negative goes through the checks on written rows (`edit_checks`). They say of which type it is, and put it into the
format of its caption, so that capitals and final marks tell nothing.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pairwright.datasets.records import Annotation, Edit
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import first_good
from pairwright.generators.edit_checks.checks import Checked, EditChecks
from pairwright.generators.edit_checks.kinds import Asked
from pairwright.generators.edit_checks.reasons import nearness
from pairwright.generators.edit_checks.unwrapping import sameness
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.negatives import FOR_BENCHMARKS
from pairwright.generators.positives import TYPES as POSITIVES
from pairwright.generators.positives import RewriteRule

TYPES = FOR_BENCHMARKS
DISQUALIFYING_REASONS = frozenset({"no_edit", "identical", "duplicate", "same_meaning", "true_of_image"})
_RETYPE_REASONS = frozenset({"another_form", "another_target", "same_words", "other_words"})
_FALLBACK_TYPES = ("replace-attribute", "replace-relation", "replace-object", "swap-object")
# What describes a thing may be a noun too ("a brick building"), but what names one seldom only describes.
_TYPES_BY_LIKELIHOOD = tuple(sorted(TYPES, key=lambda kind: kind != "replace-attribute"))
_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class TripleNegative:
    """A negative as it was read.

    Attributes:
        text: of the negative, in the format of its caption when the checks could read it.
        type: such as "replace-object"; empty when nothing is known of it.
        edits: what differs; empty when it could not be told.
        places: the same, of the text in its caption's format; only where they are in the caption counts.
        mended: whether ``text`` is not what was given.
        reason: a word of `edit_checks.reasons.REASONS`; empty when it is a negative.
    """

    text: str
    type: str
    edits: tuple[Edit, ...] = ()
    places: tuple[Edit, ...] = ()
    mended: bool = False
    reason: str = ""

    def is_compatible(self, positive: "TriplePositive") -> bool:
        """Whether a positive may edit the same words: it does, or nobody knows which words this one edits."""
        return not self.places or overlap(positive.edits, self.places)


@dataclass(frozen=True, slots=True)
class TriplePositive:
    """A hard positive that may go beside a negative; edits are those of the caption."""

    text: str
    type: str
    edits: tuple[Edit, ...]


class CachingTagger:
    """A tagger that tags a text once as long as it remembers it.

    Args:
        tagger: which does the work; in batches when texts are told of beforehand (`learn`).
    """

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger
        self._known: dict[str, list[Token]] = {}

    @property
    def name(self) -> str:
        """Name of the tagger."""
        return self._tagger.name

    def learn(self, texts: Iterable[str]) -> None:
        """Tag texts that will be asked for; others are forgotten when there are too many."""
        if len(self._known) > _CACHE_SIZE:
            self._known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._tagger.tag(new), strict=True))

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, in order."""
        if any(text not in self._known for text in texts):
            self.learn(texts)
        return [self._known[text] for text in texts]


class Triples:
    """Reads negatives and says which positives may go beside them.

    Args:
        checks: on written texts.
        tagger: the one that tagged the captions.
        any_type: take a positive of another type when there is none of the negative's.
        as_given: take a negative that is more than one clean edit, too, and its text as it is.
    """

    def __init__(self, checks: EditChecks, tagger: Tagger, *, any_type: bool = False, as_given: bool = False) -> None:
        self._checks, self._tagger = checks, tagger
        self._any_type, self._as_given = any_type, as_given

    def read(self, caption: Caption, text: str, told: str, taken: Collection[str]) -> TripleNegative:
        """Return a negative as the checks see it.

        Args:
            caption: which it contradicts.
            text: of the negative.
            told: the type that its source names; empty when it names none.
            taken: negatives of the caption that stand already.
        """
        found, kind = self._typed(caption, text, told, taken)
        if self._as_given and found.reason not in DISQUALIFYING_REASONS:
            edits = found.edits if found.text == text and not found.reason else ()
            return TripleNegative(text, kind, edits, found.edits)
        if found.reason:
            return TripleNegative(text, kind, reason=found.reason)
        return TripleNegative(found.text, kind, found.edits, found.edits, found.text != text)

    def _typed(self, caption: Caption, text: str, told: str, taken: Collection[str]) -> tuple[Checked, str]:
        """Return what the checks say and the type: what was told where that holds, else the type that the edit has."""
        found = self._checked(caption, text, told, taken) if told in TYPES else Checked(text, reason="another_target")
        if not found.reason or found.reason not in _RETYPE_REASONS:
            return found, told
        others = [(self._checked(caption, text, kind, taken), kind) for kind in _TYPES_BY_LIKELIHOOD if kind != told]
        # What says the same as an attribute ("stone" for "brick") is no negative by being a noun, too.
        read = [other for other in others if other[0].reason in {"", "same_meaning", "true_of_image"}]
        best = read[0] if read else max(others, key=lambda other: nearness(other[0].reason))
        return (found, told) if best[0].reason and told in TYPES else (best[0], "" if best[0].reason else best[1])

    def _checked(self, caption: Caption, text: str, kind: str, taken: Collection[str]) -> Checked:
        form, _, target = kind.partition("-")
        return self._checks.check_all(caption, [(Asked("hard_negative", form, target), text)], taken=taken)[0]

    def rounds(self, kind: str) -> list[tuple[str, ...]]:
        """Return the types of positives to try for a type of negative: first its own, then others if allowed."""
        own = positive_types_for(kind)
        others = tuple(other for other in _FALLBACK_TYPES if other not in own)
        return [types for types in (own, others if self._any_type else ()) if types]

    def choose(
        self, caption: Caption, negative: TripleNegative, offers: Iterable[TriplePositive], against: Collection[str]
    ) -> TriplePositive | str:
        """Return the first offer that may go beside a negative, those that edit the same words before others.

        Args:
            caption: of both.
            negative: which was read well.
            offers: positives, those that are wanted most first.
            against: all negatives of the caption.

        Returns:
            The positive, or why there is none: ``on_both_sides`` when it says what a negative says, ``no_candidate``
            when nothing was offered.
        """
        reason = "no_candidate"
        false = {sameness(text) for text in (*against, negative.text, caption.pair.caption)}
        for offer in sorted(offers, key=lambda offer: not overlap(offer.edits, negative.places)):
            if sameness(offer.text) in false or self._says_the_same(caption, negative, offer):
                reason = "on_both_sides"
            else:
                return offer
        return reason

    def _says_the_same(self, caption: Caption, negative: TripleNegative, offer: TriplePositive) -> bool:
        """Whether the negative is one of the caption but none of the positive: "navy" for "blue", and "navy blue"."""
        if not negative.type or not negative.is_compatible(offer):
            return False
        pair = replace(caption.pair, caption=offer.text, captions=(), boxes=())
        other = Caption(pair, self._tagger.tag([offer.text])[0])
        return self._checked(other, negative.text, negative.type, ()).reason in DISQUALIFYING_REASONS


def positive_types_for(kind: str) -> tuple[str, ...]:
    """Return the types of positives that have the form and target of a negative; a swap of either target has one."""
    if kind.startswith("swap"):
        return ("swap-object",)
    return (kind,) if kind in POSITIVES else ()


def overlap(one: Sequence[Edit], other: Sequence[Edit]) -> bool:
    """Whether two edits of a caption touch the same words of it."""
    spans = [edit.before_span for edit in other]
    return any(edit.before_span[0] < end and start < edit.before_span[1] for edit in one for start, end in spans)


def rule_candidates(
    makers: Mapping[str, RewriteRule], caption: Caption, types: Sequence[str], seed: int
) -> Iterator[TriplePositive]:
    """Yield all positives of a caption that the rules make, type after type.

    Args:
        makers: see `positives.makers`.
        caption: to be reworded.
        types: of `positives.TYPES`.
        seed: of the caption's chance.
    """
    taken = {caption.pair.caption, *caption.pair.captions}
    for kind in types:
        outcomes = makers[kind](caption, random.Random(seed + POSITIVES.index(kind)))
        while not (found := first_good(caption, outcomes, taken)).reason:
            yield TriplePositive(found.text, kind, found.edits)


def kept_positives(annotations: Iterable[Annotation]) -> list[TriplePositive]:
    """Return the positives among annotations that were kept."""
    return [
        TriplePositive(row.text, f"{row.form}-{row.target}", row.edits) for row in annotations if row.status == "kept"
    ]
