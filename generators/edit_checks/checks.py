"""The checks on every written row: is the text the asked edit of its caption, and no more?

Made for texts that somebody wrote freely (a language model), and as good for texts made by rules. Each check is a pure
function of the caption, what is said of its image, and the text; each ends in the edit or in a reason
(`edit_checks.reasons.REASONS`).

- First the format is put right: what stands around the sentence is taken off, and the new words are put into the
  source as it was written, so capitals, spaces and the final mark are those of the source.
- Then the difference has to be one stretch of the asked kind, or one swapped pair. Words that changed in number,
  article or pronoun because of the edit, and the "and" that becomes a comma where a list grows, are allowed and counted (`Checked.mended`); any other mending of the source is
  not ("silent repairs", The Hard Positive Truth, appendix C.3).
- Then the words: known ones, no mere rewording in a negative, no other meaning in a positive, nothing that other
  captions or boxes say.

A text is only ever compared with its own source, so a caption that reads like an instruction can at worst lead to a
rejected row.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pairwright.datasets.records import Edit
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_checks.agreement import mended, mends_the_source, tagged_as, with_words
from pairwright.generators.edit_checks.alignment import Hunk, differences
from pairwright.generators.edit_checks.joining import joins_badly
from pairwright.generators.edit_checks.kinds import OBJECT, RELATION, Asked, Stretch, denies
from pairwright.generators.edit_checks.places import (
    cuts_a_word,
    grown_list,
    joined_otherwise,
    list_comma,
    longer_name,
    not_agreement,
    reading_of,
    the_edit,
    wrong_form,
    wrong_target,
)
from pairwright.generators.edit_checks.rebuilding import (
    changes_of_hunk,
    changes_of_swap,
    comma_for_and,
    without_final_mark,
)
from pairwright.generators.edit_checks.swap_checks import swap_trouble
from pairwright.generators.edit_checks.swaps import swapped
from pairwright.generators.edit_checks.truth import Truth
from pairwright.generators.edit_checks.unwrapping import sameness, unwrapped
from pairwright.generators.edits.realisation import Change, normalize_capitals, rewrite
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.language.spacy_import import import_lemminflect
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.words.wordlists import word_set

_OPEN: Final = frozenset({"NOUN", "VERB", "ADJ", "ADV"})
_TWICE: Final = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
_DENIED: Final = Asked("hard_negative", "replace", RELATION)
_CLOSED: Final = word_set("next such more most other each both no not n't 's")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a written text came to: the edit, or a reason of `edit_checks.reasons.REASONS` and the text as it was written.

    Attributes:
        text: the new caption, in the format of its source.
        edits: what changed, as `edits.rewrite` tells it.
        form: of the edit.
        target: of the edit.
        mended: words outside of the edit that changed to agree with it.
        reason: empty when the text is good.
    """

    text: str
    edits: tuple[Edit, ...] = ()
    form: str = ""
    target: str = ""
    mended: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The texts that the caption has already, by `sameness`: of the kind that is checked, and of the other one."""

    own: set[str]
    other: frozenset[str]


class EditChecks:
    """The checks; holds tables only.

    Args:
        thesaurus: WordNet.
        pool: statistics of the user's captions.
        tagger: the one that tagged the captions.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool, tagger: Tagger) -> None:
        self._thesaurus, self._pool, self._tagger = thesaurus, pool, tagger
        self._truth = Truth(thesaurus, pool)
        self._things = Things(thesaurus)

    def check_all(
        self,
        caption: Caption,
        written: Sequence[tuple[Asked, str]],
        *,
        taken: Collection[str] = (),
        other_side: Collection[str] = (),
    ) -> list[Checked]:
        """Check texts in their order; one that is taken makes later ones of the same words duplicates.

        Args:
            caption: what was edited, with its tokens.
            written: what was asked for, and what came.
            taken: texts of the caption that stand already, of the same kind.
            other_side: texts of the caption of the other kind (positives for negatives).
        """
        source = caption.pair.caption
        texts = [normalize_capitals(unwrapped(text, source, self._is_word), source) for _, text in written]
        fresh = [text for text in dict.fromkeys(texts) if text and sameness(text) != sameness(source)]
        tokens = dict(zip(fresh, self._tagger.tag(fresh), strict=True)) if fresh else {}
        rows = _Rows({sameness(text) for text in taken}, frozenset(sameness(text) for text in other_side))
        found: list[Checked] = []
        for (asked, _), text in zip(written, texts, strict=True):
            checked = self._check(caption, asked, text, tokens.get(text, ()), rows)
            if not checked.reason:
                rows.own.add(sameness(checked.text))
            found.append(checked)
        return found

    def _check(self, caption: Caption, asked: Asked, text: str, tokens: Sequence[Token], rows: _Rows) -> Checked:
        reason = _repeats(caption, asked, text, rows)
        if not reason and _is_clumsy(text, caption.pair.caption):
            reason = "not_grammatical"
        if reason:
            return Checked(text, reason=reason)
        source, new = without_final_mark(caption.tokens), without_final_mark(tokens)
        if not source or not new:
            return Checked(text, reason="no_edit")
        found = (
            self._swap(caption, asked, source, new) if asked.form == "swap" else self._span(caption, asked, source, new)
        )
        if isinstance(found, str):
            return Checked(text, reason=found)
        changes, mended = found
        made, edits = rewrite(caption.pair.caption, changes)
        if reason := _repeats(caption, asked, made, rows):
            return Checked(text, reason=reason)
        return Checked(made, edits, asked.form, asked.target, mended)

    def _swap(
        self, caption: Caption, asked: Asked, source: Sequence[Token], new: Sequence[Token]
    ) -> tuple[list[Change], int] | str:
        # Out of their order, words are easily taken for others ("riding", a noun): the same ones are the same.
        if _bag(source) != _bag(new) and Counter(_lower(source)) != Counter(_lower(new)):
            return "other_words"
        words = mended(source, new, self._thesaurus)
        if words is None:
            return "not_grammatical"
        new = with_words(new, words)
        swap = swapped(source, new)
        if swap is None:
            return "repaired" if Counter(_lower(source)) != Counter(_lower(new)) else "no_swap"
        reason = swap_trouble(caption, asked, source, new, swap, self._things.is_alive)
        if reason:
            return reason
        return changes_of_swap(source, new, swap, self._is_name), swap.mended

    def _span(
        self, caption: Caption, asked: Asked, source: Sequence[Token], new: Sequence[Token]
    ) -> tuple[list[Change], int] | str:
        if Counter(_lower(source)) == Counter(_lower(new)):
            return "same_words"
        hunks = differences(source, new)
        new = tagged_as(source, new, hunks)
        words = mended(source, new, self._thesaurus)
        if words is None:
            return "not_grammatical"
        if words:
            new = with_words(new, words)
            hunks = differences(source, new)
        along = self._along(asked, source, new, hunks)
        hunks = [hunk for hunk in hunks if hunk not in along]
        grown = grown_list(hunks, source, new) if asked.form == "add" else None
        main = grown or the_edit(hunks, source, new)
        if isinstance(main, str):
            return main
        if asked.kind == "hard_positive" and asked.target == OBJECT:
            main = longer_name(main, source)
        agreeing = [hunk for hunk in hunks if hunk.is_agreement and not main.start <= hunk.start < main.end]
        reason = self._one_span(caption, asked, source, new, main) or not_agreement(agreeing, main, source, new)
        if reason:
            return reason
        if mends_the_source(source, (at for hunk in agreeing for at in range(hunk.start, hunk.end)), self._thesaurus):
            return "repaired"
        changes = [changes_of_hunk(source, new, hunk, self._is_name) for hunk in (main, *agreeing, *along)]
        agreed = {at for hunk in (main, *agreeing) for _, at in hunk.agreed}
        if grown:
            changes.append(comma_for_and(source, hunks[0]))
        return changes, len(agreed | words.keys()) + bool(grown) + len(along)

    @staticmethod
    def _along(asked: Asked, source: Sequence[Token], new: Sequence[Token], hunks: Sequence[Hunk]) -> list[Hunk]:
        """Return the differences that come along with the edit as an agreeing word does."""
        comma = list_comma(hunks, source, new) if asked.form == "add" else None
        return [comma] if comma else joined_otherwise(hunks, source, new)

    def _one_span(
        self, caption: Caption, asked: Asked, source: Sequence[Token], new: Sequence[Token], hunk: Hunk
    ) -> str:
        """Return what is wrong with the one stretch that differs, or an empty string."""
        new = self._in_slot(source, new, hunk)
        old = Stretch(source, hunk.start, hunk.end, hunk.gone)
        fresh = Stretch(new, hunk.new_start, hunk.new_end, hunk.new)
        denied = asked == _DENIED and denies(old, fresh)
        reason = "" if denied else wrong_form(asked.form, old, fresh) or wrong_target(asked, old, fresh)
        if reason:
            return reason
        if cuts_a_word(asked.target, old, fresh) or joins_badly(asked, old, fresh):
            return "not_grammatical"
        own = set(caption.lower)
        if not all(new[at].text.lower() in own or self._is_known(new[at]) for at in hunk.new):
            return "unknown_word"
        reading = reading_of(asked.target, source, old, fresh)
        if denied:
            reading = replace(reading, new=[new[at] for at in hunk.new])
        if asked.kind == "hard_positive":
            return self._truth.of_positive(reading)
        return self._truth.of_negative(reading, caption)

    def _in_slot(self, source: Sequence[Token], new: Sequence[Token], hunk: Hunk) -> Sequence[Token]:
        """Return the text's tokens, the last new word tagged as the last old one where it can be that.

        A tagger is easily misled by a rare word; the place where it stands says what it is.
        """
        if not hunk.gone or not hunk.new:
            return new
        at = hunk.new[-1]
        old, word = source[hunk.gone[-1]], new[at]
        base = lemmatize(word.text, old.tag)
        if old.pos == word.pos or old.pos not in _OPEN or not self._has(base, old.pos):
            return new
        tagged = Token(word.text, word.start, word.end, old.tag, old.pos, base)
        return [*new[:at], tagged, *new[at + 1 :]]

    def _has(self, word: str, pos: str) -> bool:
        return self._thesaurus.has(word, pos) or self._pool.frequency(word, pos) > 0

    def _is_known(self, token: Token) -> bool:
        """Whether the dictionary or the pool has a word; those of closed classes are known to the tagger."""
        word = token.text.lower()
        if token.pos not in _OPEN | {"PROPN", "X"} or word in _CLOSED:
            return True
        return any(self._has(base, pos) for base in {token.lemma, word, *_bases(word)} for pos in sorted(_OPEN))

    def _is_word(self, word: str) -> bool:
        return any(self._has(base, pos) for base in {word, *_bases(word)} for pos in sorted(_OPEN))

    def _is_name(self, token: Token) -> bool:
        return token.tag in {"NNP", "NNPS"} and not self._pool.frequency(token.text.lower(), "NOUN")


def _repeats(caption: Caption, asked: Asked, text: str, rows: _Rows) -> str:
    key = sameness(text)
    if not key:
        return "no_edit"
    if key == sameness(caption.pair.caption):
        return "identical"
    if key in rows.own:
        return "duplicate"
    if key in rows.other:
        return "on_both_sides"
    if any(key == sameness(said) for said in caption.pair.captions):
        return "true_of_image" if asked.kind == "hard_negative" else "duplicate"
    return ""


@lru_cache(maxsize=20_000)
def _bases(word: str) -> frozenset[str]:
    """Return the dictionary forms of which a word may be a form, whatever the tagger took it for."""
    return frozenset(base for found in import_lemminflect().getAllLemmas(word).values() for base in found)


def _is_clumsy(text: str, source: str) -> bool:
    """Whether a word stands twice in a row that does not in the source."""
    return bool({found[0].lower() for found in _TWICE.finditer(text)} - {f[0].lower() for f in _TWICE.finditer(source)})


def _bag(tokens: Sequence[Token]) -> Counter[str]:
    """Return the words by lemma, which stay the same when words change places and agree with others."""
    return Counter("a" if token.text.lower() == "an" else token.lemma for token in tokens if token.pos != "PUNCT")


def _lower(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens if token.pos != "PUNCT"]
