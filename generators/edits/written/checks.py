"""Checks of written texts: is a text the requested edit of its caption, and no more?

Made for texts that a language model wrote; as good for texts made by rules. A check ends in the edit or in a reason
(`written.reasons.REASONS`).

- The format is corrected: what stands around the sentence is removed, and the new words are put into the source as it
  was written, so capitals, spaces and the final mark are those of the source. Repairs of the source ("silent repairs",
  The Hard Positive Truth, appendix C.3) are not taken over.
- The difference has to be one stretch of the requested kind, or one swapped pair. Words that change in number, article
  or pronoun because of the edit are allowed and counted (`Checked.agreement_changes`).
- The words have to be known, and the edit must violate no constraint of grammar and truth (`constraints.table`).

A text is only compared with its own source, so a caption that reads like an instruction can at worst lead to a
rejected row.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from pairwright.datasets.records import Edit, Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import repeats_words
from pairwright.generators.captions.realisation import Change, normalize_capitals, rewrite, splits_any_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import find_violation
from pairwright.generators.edits.written.agreement import has_slip
from pairwright.generators.edits.written.alignment import Hunk, differences
from pairwright.generators.edits.written.locating import (
    find_edit,
    follows,
    grown_list,
    proposed,
    wrong_edit,
)
from pairwright.generators.edits.written.rebuilding import (
    change_of_hunk,
    changes_of_swap,
    comma_for_and,
    without_final_mark,
)
from pairwright.generators.edits.written.repairs import spelled_as, with_small_words
from pairwright.generators.edits.written.swaps import is_of_target, proposed_swap, swapped
from pairwright.generators.edits.written.targets import RELATION, RequestedEdit, TokenSpan, deed
from pairwright.generators.edits.written.unwrapping import sameness, unwrapped
from pairwright.generators.language.lemmas import dictionary_lemmas, lemmatize, singular_of
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.protocols import Pool, Thesaurus

_OPEN: Final = ("ADJ", "ADV", "NOUN", "VERB")
_NAMED: Final = frozenset({*_OPEN, "PROPN", "X"})
_OTHER_TYPE: Final = frozenset({"another_form", "another_target", "same_words", "other_words"})
_READ: Final = frozenset({"", "same_meaning", "true_of_image"})  # of a text that is an edit of a type
_CLOSED = words_with("closed")
_PART: Final = 3  # letters of each part of two words written as one, at least


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of a check: the edit, or a reason of `written.reasons.REASONS` and the text as it was written.

    Attributes:
        text: the new caption, in the format of its source.
        edits: what changed, as `realisation.rewrite` returns it.
        form: of the edit.
        target: of the edit.
        agreement_changes: words outside of the edit that changed to agree with it.
        reason: empty if the text is accepted.
        constraint: id of the violated constraint, if one is.
    """

    text: str
    edits: tuple[Edit, ...] = ()
    form: str = ""
    target: str = ""
    agreement_changes: int = 0
    reason: str = ""
    constraint: str = ""


@dataclass(frozen=True)
class _CaptionTexts:
    """A caption, the texts that it has already, and what all of its checks need.

    Attributes:
        caption: the caption.
        own: its texts of the kind that is checked, by `sameness`.
        other: its texts of the other kind.
        types: of which a text may be that is not of the requested one.
    """

    caption: Caption
    own: set[str]
    other: frozenset[str]
    types: tuple[str, ...] = ()

    @cached_property
    def source(self) -> Sequence[Token]:
        """The tokens of the caption up to its final mark."""
        return without_final_mark(self.caption.tokens)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the caption in lower case."""
        return frozenset(self.caption.lower)

    @cached_property
    def key(self) -> str:
        """What the caption shares with texts that are the same."""
        return sameness(self.caption.pair.caption)

    @cached_property
    def said(self) -> frozenset[str]:
        """The other captions of the image, by `sameness`."""
        return frozenset(map(sameness, self.caption.pair.captions))

    def repeats(self, asked: RequestedEdit, text: str) -> str:
        """Return why a text says nothing new, or an empty string."""
        key = sameness(text)
        if not key:
            return "no_edit"
        if key == self.key:
            return "identical"
        if key in self.own:
            return "duplicate"
        if key in self.other:
            return "on_both_sides"
        if key in self.said:
            return "true_of_image" if asked.kind == "hard_negative" else "duplicate"
        return ""


@dataclass(frozen=True, slots=True)
class _FoundEdit:
    """An edit that was found in a text.

    Attributes:
        edit: as constraints see it.
        changes: of the source.
        agreement_changes: words that agree with it.
    """

    edit: ProposedEdit
    changes: list[Change]
    agreement_changes: int


class EditChecks:
    """The checks; holds tables only.

    Args:
        thesaurus: WordNet.
        pool: statistics of the user's captions.
        tagger: the one that tagged the captions.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool, tagger: Tagger) -> None:
        self._thesaurus, self._pool, self._tagger = thesaurus, pool, tagger
        self._known = Knowledge(thesaurus, pool)
        self._is_word = lru_cache(maxsize=50_000)(self._find_word)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the caches."""
        return EditChecks, (self._thesaurus, self._pool, self._tagger)

    def check_all(
        self,
        caption: Caption,
        written: Sequence[tuple[RequestedEdit, str]],
        *,
        taken: Collection[str] = (),
        other_side: Collection[str] = (),
        other_types: Sequence[str] = (),
    ) -> list[Checked]:
        """Check texts in their order; an accepted one makes later ones of the same words duplicates.

        Args:
            caption: the edited caption, with its tokens.
            written: what was requested, and what came.
            taken: existing texts of the caption, of the same kind.
            other_side: texts of the caption of the other kind (positives for negatives).
            other_types: such as "replace-object": types of which a text may be that is not of the requested one, in the
                order in which they are tried; `Checked.form` and `Checked.target` are those of the edit.
        """
        texts = self._corrected(caption.pair.caption, written)
        fresh = [text for text in dict.fromkeys(texts) if text]
        tokens = dict(zip(fresh, self._tagger.tag(fresh), strict=True)) if fresh else {}
        rows = _CaptionTexts(
            caption, set(map(sameness, taken)), frozenset(map(sameness, other_side)), tuple(other_types)
        )
        return self._check_in_order(rows, written, texts, tokens)

    def check_batch(
        self, batch: Sequence[tuple[Pair, Sequence[tuple[RequestedEdit, str]]]], *, other_types: Sequence[str] = ()
    ) -> list[list[Checked]]:
        """Check the texts of several captions as `check_all` does; captions and texts are tagged in one call."""
        texts = [self._corrected(pair.caption, written) for pair, written in batch]
        # A caption beside its edits: the tagger computes what they share once.
        needed = (
            text for (pair, _), own in zip(batch, texts, strict=True) if own for text in (pair.caption, *own) if text
        )
        distinct = list(dict.fromkeys(needed))
        tokens = dict(zip(distinct, self._tagger.tag(distinct), strict=True))
        return [
            self._check_in_order(
                _CaptionTexts(Caption(pair, tokens[pair.caption]), set(), frozenset(), tuple(other_types)),
                written,
                own,
                tokens,
            )
            if own
            else []
            for (pair, written), own in zip(batch, texts, strict=True)
        ]

    def _corrected(self, source: str, written: Sequence[tuple[RequestedEdit, str]]) -> list[str]:
        """Return each text without what stands around its sentence, and in the capitals of the source."""
        return [normalize_capitals(unwrapped(text, source, self._is_word), source) for _, text in written]

    def _check_in_order(
        self,
        rows: _CaptionTexts,
        written: Sequence[tuple[RequestedEdit, str]],
        texts: Sequence[str],
        tokens: Mapping[str, Sequence[Token]],
    ) -> list[Checked]:
        found: list[Checked] = []
        for (asked, _), text in zip(written, texts, strict=True):
            checked = self._check(rows, asked, text, tokens.get(text, ()))
            if checked.reason in _OTHER_TYPE:
                checked = self._check_types(rows, asked, text, tokens[text]) or checked
            if not checked.reason:
                rows.own.add(sameness(checked.text))
            found.append(checked)
        return found

    def _check_types(
        self, rows: _CaptionTexts, asked: RequestedEdit, text: str, tokens: Sequence[Token]
    ) -> Checked | None:
        """Return the result for the first of the other types that a text is of, be it accepted or perhaps true."""
        for name in rows.types:
            other = RequestedEdit.of_type(asked.kind, name)
            if other == asked:
                continue
            checked = self._check(rows, other, text, tokens)
            if checked.reason in _READ:
                return checked
        return None

    def _check(self, rows: _CaptionTexts, asked: RequestedEdit, text: str, tokens: Sequence[Token]) -> Checked:
        caption, source, new = rows.caption, rows.source, without_final_mark(tokens)
        reason = rows.repeats(asked, text)
        if not reason and repeats_words(text, caption.pair.caption):
            reason = "not_grammatical"
        if not reason and not (source and new):
            reason = "no_edit"
        if reason:
            return Checked(text, reason=reason)
        new = self._unrepaired(asked, source, new)
        if not all(token.text.lower() in rows.words or self._is_known(token) for token in new):
            return Checked(text, reason="unknown_word")
        found = (
            self._find_swap(caption, asked, source, new)
            if asked.form == "swap"
            else self._find(caption, asked, source, new)
        )
        if isinstance(found, str):
            return Checked(text, reason=found)
        violated = find_violation(found.edit, self._known)
        if violated is not None:
            return Checked(text, reason=violated.reason, constraint=violated.id)
        made, edits = rewrite(caption.pair.caption, found.changes)
        # One part of "two-story" may give way to another one, and to nothing else.
        parts = asked.form == "add" or asked.target == RELATION
        cut = parts and splits_any_span(caption.joined, found.changes)
        if reason := "not_grammatical" if cut else rows.repeats(asked, made):
            return Checked(text, reason=reason)
        return Checked(made, edits, asked.form, asked.target, found.agreement_changes)

    def _unrepaired(self, asked: RequestedEdit, source: Sequence[Token], new: Sequence[Token]) -> Sequence[Token]:
        if asked.kind == "hard_negative" or asked.form == "swap":  # "skate board" is another name of a skateboard
            new = spelled_as(source, new, self._is_known, swap=asked.form == "swap")
        return with_small_words(source, new, add=asked.form == "add") if asked.form != "replace" else new

    def _find_swap(
        self, caption: Caption, asked: RequestedEdit, source: Sequence[Token], new: Sequence[Token]
    ) -> _FoundEdit | str:
        # Out of their order, words are easily taken for others ("riding", a noun): the same ones are the same.
        if _bag(source) != _bag(new) and Counter(_lower(source)) != Counter(_lower(new)):
            return "other_words"
        if has_slip(source, new):
            return "not_grammatical"
        swap = swapped(source, new)
        if swap is None:
            return "repaired" if Counter(_lower(source)) != Counter(_lower(new)) else "no_swap"
        if asked.kind == "hard_negative" and not is_of_target(source, swap, asked.target):
            return "another_target"
        changes = changes_of_swap(source, new, swap, self._is_name)
        return _FoundEdit(proposed_swap(caption, asked, source, swap), changes, swap.agreement_changes)

    def _find(
        self, caption: Caption, asked: RequestedEdit, source: Sequence[Token], new: Sequence[Token]
    ) -> _FoundEdit | str:
        if sorted(_lower(source)) == sorted(_lower(new)):
            return "same_words"
        if has_slip(source, new):
            return "not_grammatical"
        hunks = differences(source, new)
        grown = grown_list(hunks, source, new) if asked.form == "add" else None
        main = grown or find_edit(asked, hunks, source, new)
        if isinstance(main, str):
            return main
        agreeing = [hunk for hunk in hunks if follows(hunk, main, source, new)]
        taken = (main, *agreeing)
        if taken != tuple(hunks) and has_slip(source, _applied(source, new, taken)):
            return "repaired"  # a repair that was not taken over would have been needed
        changes = [change_of_hunk(source, new, hunk, self._is_name) for hunk in taken]
        if grown:
            changes.append(comma_for_and(source, hunks[0]))
        agreed = {at for hunk in taken for _, at in hunk.agreed}
        new = self._in_slot(source, new, main)
        old = TokenSpan(source, main.start, main.end, main.gone)
        fresh = TokenSpan(new, main.new_start, main.new_end, main.new)
        if reason := wrong_edit(asked, old, fresh):
            return reason
        return _FoundEdit(proposed(caption, asked, old, fresh), changes, len(agreed) + bool(grown))

    def _in_slot(self, source: Sequence[Token], new: Sequence[Token], hunk: Hunk) -> Sequence[Token]:
        """Return the text's tokens, the last new word tagged as the last old one if it can be that; of a deed, the first.

        A tagger is easily misled by a rare word; the place where it stands says what it is.
        """
        if not hunk.gone or not hunk.new:
            return new
        end = 0 if deed(TokenSpan(source, hunk.start, hunk.end, hunk.gone)) else -1
        at = hunk.new[end]
        old, word = source[hunk.gone[end]], new[at]
        base = lemmatize(word.text, old.tag)
        if old.pos == word.pos or old.pos not in _OPEN or not self._has(base, old.pos):
            return new
        return [*new[:at], replace(word, tag=old.tag, pos=old.pos, lemma=base), *new[at + 1 :]]

    def _has(self, word: str, pos: str) -> bool:
        return self._thesaurus.has(word, pos) or self._pool.frequency(word, pos) > 0

    def _is_known(self, token: Token) -> bool:
        """Whether the dictionary or the pool has a word; those of closed classes are known to the tagger."""
        word = token.text.lower()
        if token.pos not in _NAMED or word in _CLOSED:
            return True
        return self._is_word(word) or any(self._has(token.lemma, pos) for pos in _OPEN)

    def _find_word(self, word: str) -> bool:
        """Whether a word is one, or a noun that the dictionary need not list: "kayaker", "streetlamp"."""
        bases = {word, *_bases(word)}
        if any(self._has(base, pos) for base in bases for pos in _OPEN):
            return True
        noun = singular_of(word)
        verbs = (noun[:-1], noun[:-2]) if noun.endswith("er") else ()
        return any(self._thesaurus.has(verb, "VERB") for verb in verbs) or any(
            self._thesaurus.has(f"{noun[:at]} {noun[at:]}", "NOUN") for at in range(_PART, len(noun) - _PART + 1)
        )

    def _is_name(self, token: Token) -> bool:
        return token.tag in {"NNP", "NNPS"} and not self._pool.frequency(token.text.lower(), "NOUN")


def _applied(source: Sequence[Token], new: Sequence[Token], hunks: Sequence[Hunk]) -> list[Token]:
    """Return the tokens of the source with differences applied."""
    made = list(source)
    for hunk in sorted(hunks, key=lambda each: -each.start):
        made[hunk.start : hunk.end] = new[hunk.new_start : hunk.new_end]
    return made


@lru_cache(maxsize=20_000)
def _bases(word: str) -> frozenset[str]:
    """Return the dictionary forms of which a word may be a form, whatever the tagger took it for."""
    return frozenset(base for found in dictionary_lemmas(word).values() for base in found)


def _bag(tokens: Sequence[Token]) -> Counter[str]:
    """Return the words by lemma, which stay the same when words change places and agree with others."""
    return Counter("a" if token.text.lower() == "an" else token.lemma for token in tokens if token.pos != "PUNCT")


def _lower(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens if token.pos != "PUNCT"]
