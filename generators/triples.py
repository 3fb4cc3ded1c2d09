"""Triples of a caption, a hard negative and a hard positive: reading the negative, and choosing the positive.

The evaluation of The Hard Positive Truth (section 3.4) asks whether a model ranks the caption *and* a true rewriting of
it above the negative. The two rewritings are edits of one kind: where the negative replaces an attribute, the positive
rewords one, at the same words where that can be done; where the negative exchanges two things, the positive exchanges
what "and" joins. ADD has no positive of its own form.

A negative goes through the checks on written rows (`edits.written`). They determine its type and give it
the format of its caption, so that capitals and final punctuation do not reveal it.
"""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pairwright.datasets.records import Annotation, Edit
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import first_valid_edit
from pairwright.generators.edit_types import BENCHMARK_TYPES, POSITIVE_TYPES
from pairwright.generators.edits.written.checks import Checked, EditChecks
from pairwright.generators.edits.written.sentence_extraction import comparison_key
from pairwright.generators.edits.written.targets import RequestedEdit
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.positives import BY_PREFERENCE, RewriteRule

DISQUALIFYING_REASONS = frozenset({"no_edit", "identical", "duplicate", "same_meaning", "true_of_image"})
# What describes a thing may be a noun too ("a brick building"), but what names one seldom only describes.
_TYPES_BY_LIKELIHOOD = tuple(sorted(BENCHMARK_TYPES, key=lambda kind: kind != "replace-attribute"))
_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class TripleNegative:
    """A parsed negative.

    Attributes:
        text: of the negative, in the format of its caption when the checks could read it.
        type: such as "replace-object"; empty if unknown.
        edits: the differences from the caption; empty if they could not be determined.
        places: the same, of the text in its caption's format; only where they are in the caption counts.
        reformatted: whether ``text`` differs from the input text.
        reason: a word of `edits.written.reasons.REASONS`; empty when it is a negative.
    """

    text: str
    type: str
    edits: tuple[Edit, ...] = ()
    places: tuple[Edit, ...] = ()
    reformatted: bool = False
    reason: str = ""

    def is_compatible(self, positive: "TriplePositive") -> bool:
        """Whether a positive edits the same words, or the words that this one edits are unknown."""
        return not self.places or overlap(positive.edits, self.places)


@dataclass(frozen=True, slots=True)
class TriplePositive:
    """A candidate hard positive; edits are those of the caption."""

    text: str
    type: str
    edits: tuple[Edit, ...]


class CachingTagger:
    """A tagger with a cache.

    Args:
        tagger: the wrapped tagger; called in batches for texts announced by `learn`.
    """

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger
        self._known: dict[str, list[Token]] = {}

    @property
    def name(self) -> str:
        """Name of the tagger."""
        return self._tagger.name

    def learn(self, texts: Iterable[str]) -> None:
        """Tag texts in advance; clears the cache if it is full."""
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
    """Parses negatives and chooses the positive for each.

    Args:
        checks: on written texts.
        tagger: the one that tagged the captions.
        any_type: accept a positive of another type if there is none of the negative's type.
        as_given: accept a negative that is more than one clean edit, with its text unchanged.
    """

    def __init__(self, checks: EditChecks, tagger: Tagger, *, any_type: bool = False, as_given: bool = False) -> None:
        self._checks, self._tagger = checks, tagger
        self._any_type, self._as_given = any_type, as_given

    def read(self, caption: Caption, text: str, declared: str, taken: Collection[str]) -> TripleNegative:
        """Parse a negative.

        Args:
            caption: that it contradicts.
            text: of the negative.
            declared: the type given by its source; empty if unknown.
            taken: earlier negatives of the caption.
        """
        found, kind = self._typed(caption, text, declared, taken)
        if self._as_given and found.reason not in DISQUALIFYING_REASONS:
            edits = found.edits if found.text == text and not found.reason else ()
            return TripleNegative(text, kind, edits, found.edits)
        if found.reason:
            return TripleNegative(text, kind, reason=found.reason)
        return TripleNegative(found.text, kind, found.edits, found.edits, found.text != text)

    def _typed(self, caption: Caption, text: str, declared: str, taken: Collection[str]) -> tuple[Checked, str]:
        """Return the result of the checks and the type: ``declared`` if it holds, else the type of the edit."""
        kind = declared if declared in BENCHMARK_TYPES else _TYPES_BY_LIKELIHOOD[0]
        found = self._checked(caption, text, kind, taken, _TYPES_BY_LIKELIHOOD)
        return found, declared if found.reason else f"{found.form}-{found.target}"

    def _checked(
        self, caption: Caption, text: str, kind: str, taken: Collection[str], other_types: Sequence[str] = ()
    ) -> Checked:
        asked = RequestedEdit.of_type("hard_negative", kind)
        return self._checks.check_all(caption, [(asked, text)], taken=taken, other_types=other_types)[0]

    def rounds(self, kind: str) -> list[tuple[str, ...]]:
        """Return the positive types to try for a negative type: first its own, then others if allowed."""
        own = positive_types_for(kind)
        others = tuple(other for other in BY_PREFERENCE if other not in own)
        return [types for types in (own, others if self._any_type else ()) if types]

    def choose(
        self, caption: Caption, negative: TripleNegative, offers: Iterable[TriplePositive], against: Collection[str]
    ) -> TriplePositive | str:
        """Return the first suitable positive, preferring those that edit the same words.

        Args:
            caption: of both.
            negative: a parsed negative without a reason.
            offers: candidate positives in order of preference.
            against: all negatives of the caption.

        Returns:
            The positive, or a reason: ``on_both_sides`` if every candidate means the same as a negative,
            ``no_candidate`` without candidates.
        """
        reason = "no_candidate"
        false = {comparison_key(text) for text in (*against, negative.text, caption.pair.caption)}
        for offer in sorted(offers, key=lambda offer: not overlap(offer.edits, negative.places)):
            if comparison_key(offer.text) in false or self._says_the_same(caption, negative, offer):
                reason = "on_both_sides"
            else:
                return offer
        return reason

    def _says_the_same(self, caption: Caption, negative: TripleNegative, offer: TriplePositive) -> bool:
        """Whether the negative contradicts the caption but not the positive ("navy" for "blue", and "navy blue")."""
        if not negative.type or not negative.is_compatible(offer):
            return False
        pair = replace(caption.pair, caption=offer.text, captions=(), boxes=())
        other = Caption(pair, self._tagger.tag([offer.text])[0])
        return self._checked(other, negative.text, negative.type, ()).reason in DISQUALIFYING_REASONS


def positive_types_for(kind: str) -> tuple[str, ...]:
    """Return the positive types with the form and target of a negative type; both kinds of swap share one."""
    if kind.startswith("swap"):
        return ("swap-object",)
    return (kind,) if kind in POSITIVE_TYPES else ()


def overlap(one: Sequence[Edit], other: Sequence[Edit]) -> bool:
    """Whether two edits of a caption touch the same words of it."""
    spans = [edit.before_span for edit in other]
    return any(edit.before_span[0] < end and start < edit.before_span[1] for edit in one for start, end in spans)


def rule_candidates(
    makers: Mapping[str, RewriteRule], caption: Caption, types: Sequence[str], seed: int
) -> Iterator[TriplePositive]:
    """Yield all rule positives of a caption, type after type.

    Args:
        makers: of `positives.rewrite_rules`.
        caption: to be reworded.
        types: of `edit_types.POSITIVE_TYPES`.
        seed: of the caption's random generator.
    """
    taken = {caption.pair.caption, *caption.pair.captions}
    for kind in types:
        outcomes = makers[kind](caption, random.Random(seed + POSITIVE_TYPES.index(kind)))
        while not (found := first_valid_edit(caption, outcomes, taken)).reason:
            yield TriplePositive(found.text, kind, found.edits)


def kept_positives(annotations: Iterable[Annotation]) -> list[TriplePositive]:
    """Return the kept positives."""
    return [
        TriplePositive(row.text, f"{row.form}-{row.target}", row.edits) for row in annotations if row.status == "kept"
    ]
