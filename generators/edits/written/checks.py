"""Validation of rewritten captions: each text must be the requested edit of its caption and nothing else.

For texts by a language model, by rules or from a benchmark. The result is the edit, or a reason code
(`written.reasons.REASONS`).

- Formatting is normalized: labels and quotes are removed, and the new words are inserted into the source, so capitals,
  spacing and the final mark are those of the source. Repairs of the source ("silent repairs", The Hard Positive Truth,
  appendix C.3) are undone.
- The difference must be one span of the requested type, or one swapped pair of spans. Words that change in number,
  article or pronoun because of the edit are allowed and counted (`Checked.agreement_changes`).
- All words must be known, and the edit must not violate a constraint of grammar or truth (`constraints.table`).

A text is only compared with its own source, so prompt injection in a caption can at worst lead to a rejected row.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pairwright.datasets.records import Edit, Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.edited import repeats_words
from pairwright.generators.captions.realisation import Change, normalize_capitals, rewrite, splits_any_span
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import applicable_constraints, first_violated
from pairwright.generators.edits.written.agreement import adds_agreement_error
from pairwright.generators.edits.written.alignment import Difference, TokenSpan, differences, lower_words
from pairwright.generators.edits.written.edit_location import (
    agrees_with_edit,
    as_proposed_edit,
    find_edit,
    find_list_extension,
    find_mismatch,
)
from pairwright.generators.edits.written.repairs import restore_minor_words, restore_spelling
from pairwright.generators.edits.written.sentence_extraction import comparison_key, extract_sentence
from pairwright.generators.edits.written.source_changes import (
    change_of,
    changes_of_swap,
    comma_for_and,
    without_final_mark,
)
from pairwright.generators.edits.written.swaps import as_proposed_swap, find_swap, is_of_target
from pairwright.generators.edits.written.targets import RELATION, RequestedEdit, verb_of_phrase
from pairwright.generators.language.lemmas import dictionary_lemmas, lemmatize
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.function_words import words_with

_OPEN: Final = ("ADJ", "ADV", "NOUN", "VERB")
_NAMED: Final = frozenset({*_OPEN, "PROPN", "X"})
_OTHER_TYPE: Final = frozenset({"another_form", "another_target", "same_words", "other_words"})
_RECOGNIZED: Final = frozenset({"", "same_meaning", "true_of_image"})  # reasons of texts that are edits of the type
_CLOSED = words_with("closed")


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of a check: the edit, or a reason of `written.reasons.REASONS` and the text as it was written.

    Attributes:
        text: the new caption, in the format of its source.
        edits: what changed, as `realisation.rewrite` returns it.
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


class _CaptionTexts:
    """A caption with its existing texts.

    Attributes:
        own: keys (`comparison_key`) of its texts of the checked kind.
        types: accepted for texts that are not of the requested type.
        source: tokens of the caption up to its final mark.
    """

    def __init__(self, caption: Caption, own: set[str], types: Sequence[str]) -> None:
        self.caption, self.own, self.types = caption, own, types
        self.source, self.words = without_final_mark(caption.tokens), frozenset(caption.lower)
        self._key, *siblings = map(comparison_key, (caption.pair.caption, *caption.pair.captions))
        self._siblings = frozenset(siblings)

    def reject_repeated(self, requested: RequestedEdit, text: str) -> str:
        """Return why a text is not new, or an empty string."""
        key = comparison_key(text)
        if not key:
            return "no_edit"
        if key == self._key:
            return "identical"
        if key in self.own:
            return "duplicate"
        if key in self._siblings:
            return "true_of_image" if requested.kind == "hard_negative" else "duplicate"
        return ""


@dataclass(frozen=True, slots=True)
class _FoundEdit:
    """An edit that was found in a text."""

    edit: ProposedEdit
    changes: list[Change]
    agreement_changes: int


class EditChecks:
    """Checks rewritten captions; stateless except for caches."""

    def __init__(self, thesaurus: WordNet, pool: PoolStatistics, tagger: Tagger) -> None:
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
        other_types: Sequence[str] = (),
    ) -> list[Checked]:
        """Check texts in order; texts that repeat an accepted or a ``taken`` one of their kind are duplicates.

        The other types, such as "replace-object", are tried in order for a text that is not of the requested type;
        `Checked.form` and `Checked.target` are those of the edit.
        """
        texts = self._corrected(caption.pair.caption, written)
        existing = _CaptionTexts(caption, set(map(comparison_key, taken)), other_types)
        return self._check_in_order(existing, written, texts, self._tagged(texts))

    def check_batch(
        self, batch: Sequence[tuple[Pair, Sequence[tuple[RequestedEdit, str]]]], *, other_types: Sequence[str] = ()
    ) -> list[list[Checked]]:
        """Check the texts of several captions as `check_all` does; captions and texts are tagged in one call."""
        texts = [self._corrected(pair.caption, written) for pair, written in batch]
        # A caption next to its edits, so that the tagger computes shared windows once.
        tokens = self._tagged(
            text for (pair, _), own in zip(batch, texts, strict=True) if own for text in (pair.caption, *own)
        )
        return [
            self._check_in_order(
                _CaptionTexts(Caption(pair, tokens[pair.caption]), set(), other_types), written, own, tokens
            )
            if own
            else []
            for (pair, written), own in zip(batch, texts, strict=True)
        ]

    def _tagged(self, texts: Iterable[str]) -> dict[str, Sequence[Token]]:
        """Return the tokens of each text that is not empty, tagged in one call."""
        distinct = [text for text in dict.fromkeys(texts) if text]
        return dict(zip(distinct, self._tagger.tag(distinct), strict=True))

    def _corrected(self, source: str, written: Sequence[tuple[RequestedEdit, str]]) -> list[str]:
        """Return the sentence of each text, in the capitals of the source."""
        return [normalize_capitals(extract_sentence(text, source, self._is_word), source) for _, text in written]

    def _check_in_order(
        self,
        existing: _CaptionTexts,
        written: Sequence[tuple[RequestedEdit, str]],
        texts: Sequence[str],
        tokens: Mapping[str, Sequence[Token]],
    ) -> list[Checked]:
        found: list[Checked] = []
        for (requested, _), text in zip(written, texts, strict=True):
            checked = self._check(existing, requested, text, tokens.get(text, ()))
            if checked.reason in _OTHER_TYPE:
                checked = self._check_types(existing, requested, text, tokens[text]) or checked
            if not checked.reason:
                existing.own.add(comparison_key(checked.text))
            found.append(checked)
        return found

    def _check_types(
        self, existing: _CaptionTexts, requested: RequestedEdit, text: str, tokens: Sequence[Token]
    ) -> Checked | None:
        """Return the result for the first of the other types that matches a text, accepted or possibly true."""
        others = (RequestedEdit.of_type(requested.kind, name) for name in existing.types)
        found = (self._check(existing, other, text, tokens) for other in others if other != requested)
        return next((checked for checked in found if checked.reason in _RECOGNIZED), None)

    def _check(self, existing: _CaptionTexts, requested: RequestedEdit, text: str, tokens: Sequence[Token]) -> Checked:
        caption, source, new = existing.caption, existing.source, without_final_mark(tokens)
        reason = existing.reject_repeated(requested, text)
        if not reason and repeats_words(text, caption.pair.caption):
            reason = "not_grammatical"
        if not reason and not (source and new):
            reason = "no_edit"
        if reason:
            return Checked(text, reason=reason)
        new = self._undo_repairs(requested, source, new)
        if not all(token.text.lower() in existing.words or self._is_known(token) for token in new):
            return Checked(text, reason="unknown_word")
        found = (
            self._find_swap(caption, requested, source, new)
            if requested.form == "swap"
            else self._find(caption, requested, source, new)
        )
        if isinstance(found, str):
            return Checked(text, reason=found)
        constraints = applicable_constraints(requested.kind, requested.form, requested.target, by_rules=False)
        violated = first_violated(constraints, found.edit, self._known)
        if violated is not None:
            return Checked(text, reason=violated.reason, constraint=violated.id)
        made, edits = rewrite(caption.pair.caption, found.changes)
        # A part of "two-story" may be replaced by another attribute, and by nothing else.
        parts = requested.form == "add" or requested.target == RELATION
        cut = parts and splits_any_span(caption.joined, found.changes)
        if reason := "not_grammatical" if cut else existing.reject_repeated(requested, made):
            return Checked(text, reason=reason)
        return Checked(made, edits, requested.form, requested.target, found.agreement_changes)

    def _undo_repairs(self, requested: RequestedEdit, source: Sequence[Token], new: Sequence[Token]) -> Sequence[Token]:
        swap = requested.form == "swap"
        if requested.kind == "hard_negative" or swap:  # "skate board" is another name of a skateboard
            new = restore_spelling(source, new, self._is_known)
        return restore_minor_words(source, new, add=not swap) if requested.form != "replace" else new

    def _find_swap(
        self, caption: Caption, requested: RequestedEdit, source: Sequence[Token], new: Sequence[Token]
    ) -> _FoundEdit | str:
        # Taggers misread words in another order ("riding" as a noun), so equal words are compared as well.
        if _bag(source) != _bag(new) and Counter(_lower(source)) != Counter(_lower(new)):
            return "other_words"
        if adds_agreement_error(source, new):
            return "not_grammatical"
        swap = find_swap(source, new)
        if swap is None:
            return "repaired" if Counter(_lower(source)) != Counter(_lower(new)) else "no_swap"
        if requested.kind == "hard_negative" and not is_of_target(source, swap, requested.target):
            return "another_target"
        changes = changes_of_swap(source, new, swap, self._is_name)
        return _FoundEdit(as_proposed_swap(caption, requested, source, swap), changes, swap.agreement_changes)

    def _find(
        self, caption: Caption, requested: RequestedEdit, source: Sequence[Token], new: Sequence[Token]
    ) -> _FoundEdit | str:
        if sorted(_lower(source)) == sorted(_lower(new)):
            return "same_words"
        found = differences(source, new)
        grown = find_list_extension(found) if requested.form == "add" else None
        main = grown or find_edit(requested, found)
        if isinstance(main, str):
            return main
        taken = (main, *(each for each in found if agrees_with_edit(each, main)))
        if adds_agreement_error(source, _apply(source, taken)):
            return "not_grammatical"
        changes = [change_of(each, self._is_name) for each in taken]
        if grown:
            changes.append(comma_for_and(found[0].old))
        agreed = {at for each in taken for _, at in each.agreed}
        old, fresh = main.old, self._retag_new_word(main)
        if reason := find_mismatch(requested, old, fresh):
            return reason
        return _FoundEdit(as_proposed_edit(caption, requested, old, fresh), changes, len(agreed) + bool(grown))

    def _retag_new_word(self, main: Difference) -> TokenSpan:
        """Return the span of the text with its last new word (in verb phrases the first) tagged like the old one, if possible.

        Taggers often misread rare words; the slot tells the part of speech.
        """
        if not main.old.at or not main.new.at:
            return main.new
        end = 0 if verb_of_phrase(main.old) else -1
        old, at, new = main.old.words[end], main.new.at[end], main.new.tokens
        base = lemmatize(new[at].text, old.tag)
        if old.pos == new[at].pos or old.pos not in _OPEN or not self._is_listed(base, old.pos):
            return main.new
        retagged = replace(new[at], tag=old.tag, pos=old.pos, lemma=base)
        return replace(main.new, tokens=[*new[:at], retagged, *new[at + 1 :]])

    def _is_listed(self, word: str, pos: str) -> bool:
        return self._thesaurus.has(word, pos) or self._pool.frequency(word, pos) > 0

    def _is_known(self, token: Token) -> bool:
        """Return whether a word is in the dictionary or the pool, or of a closed class."""
        word = token.text.lower()
        if token.pos not in _NAMED or word in _CLOSED:
            return True
        return self._is_word(word) or any(self._is_listed(token.lemma, pos) for pos in _OPEN)

    def _find_word(self, word: str) -> bool:
        bases = {word}.union(*dictionary_lemmas(word).values())
        return any(self._is_listed(base, pos) for base in bases for pos in _OPEN)

    def _is_name(self, token: Token) -> bool:
        return token.tag in {"NNP", "NNPS"} and not self._pool.frequency(token.text.lower(), "NOUN")


def _apply(source: Sequence[Token], found: Sequence[Difference]) -> list[Token]:
    made = list(source)
    for each in sorted(found, key=lambda each: -each.old.start):
        made[each.old.start : each.old.end] = each.new.tokens[each.new.start : each.new.end]
    return made


def _bag(tokens: Sequence[Token]) -> Counter[str]:
    """Return the lemmas with their counts, which a swap does not change."""
    return Counter("a" if token.text.lower() == "an" else token.lemma for token in tokens if token.pos != "PUNCT")


def _lower(tokens: Sequence[Token]) -> list[str]:
    return lower_words(token for token in tokens if token.pos != "PUNCT")
