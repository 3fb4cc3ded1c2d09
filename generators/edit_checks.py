"""The checks on every written row: is the text the asked edit of its caption, and no more?

Made for texts that somebody wrote freely (a language model), and as good for texts made by rules. Each check is a pure
function of the caption, what is said of its image, and the text; each ends in the edit or in a reason
(`edit_reasons.REASONS`).

- First the format is put right: what stands around the sentence is taken off, and the new words are put into the
  source as it was written, so capitals, spaces and the final mark are those of the source.
- Then the difference has to be one stretch of the asked kind, or one swapped pair. Words that changed in number,
  article or pronoun because of the edit are allowed and counted (`Checked.mended`); any other mending of the source is
  not ("silent repairs", The Hard Positive Truth, appendix C.3).
- Then the words: known ones, no mere rewording in a negative, no other meaning in a positive, nothing that other
  captions or boxes say.

A text is only ever compared with its own source, so a caption that reads like an instruction can at worst lead to a
rejected row.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pairwright.datasets.records import Edit
from pairwright.generators.captions import Caption
from pairwright.generators.edit_alignment import Hunk, differences
from pairwright.generators.edit_kinds import (
    ATTRIBUTE,
    OBJECT,
    RELATION,
    Stretch,
    counts_instead,
    kinds_of_addition,
    kinds_of_replacement,
    kinds_of_swap,
)
from pairwright.generators.edit_rebuilding import changes_of_hunk, changes_of_swap, without_final_mark
from pairwright.generators.edit_swaps import Swap, swapped
from pairwright.generators.edit_truth import Reading, Truth, joins_with_and, says_the_same
from pairwright.generators.edits import Change, rewrite
from pairwright.generators.knowledge import Pool, Thesaurus
from pairwright.generators.language.lemmas import lemma
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.vocabulary import normal_form
from pairwright.generators.llm.texts import TextShape, read_text
from pairwright.generators.relations import relations_in
from pairwright.generators.wordlists import word_set

LONGEST_REPLACED: Final = 5  # words that count, on either side
LONGEST_ADDED: Final = 9

_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_SMALL: Final = frozenset({"DT", "IN", "TO", "CC", "RP", "HYPH", "POS", "PRP", "PRP$", "WDT", "EX", "MD", "PDT"})
_OPEN: Final = frozenset({"NOUN", "VERB", "ADJ", "ADV"})
_TWICE: Final = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
_WITHIN: Final = frozenset({"JJ", "RB", "CC", "CD", "HYPH"})  # between words that describe one thing
_ARTICLES: Final = frozenset({"a", "an"})
_AUXILIARIES: Final = word_set("is are was were has have be")
_CLOSED: Final = word_set("next such more most other each both no not n't 's")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was to be written: ``hard_negative`` or ``hard_positive``, and form and target of the edit."""

    kind: str
    form: str
    target: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a written text came to: the edit, or a reason of `edit_reasons.REASONS` and the text as it was written.

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


def sameness(text: str) -> str:
    """Return what two texts share when they differ in capitals, spacing and the final mark only."""
    return normal_form(text).rstrip(" .!?,;:…")


def unwrapped(text: str, source: str) -> str:
    """Return the sentence in what was written: no quotes, label, opening or afterword around it.

    What the source has itself is not taken off.
    """
    shape = TextShape("line")
    read = read_text(text, shape)
    return text.strip() if read.value is None or read_text(source, shape).forgiven else read.value


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
        texts = [unwrapped(text, source) for _, text in written]
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
        if _bag(source) != _bag(new):
            return "other_words"
        swap = swapped(source, new)
        if swap is None:
            return "repaired" if Counter(_lower(source)) != Counter(_lower(new)) else "no_swap"
        between = source[slice(*swap.between)]
        if asked.kind == "hard_positive":
            if not joins_with_and(between):
                return "may_be_false"
        else:
            kinds = _kinds_of_swap(source, swap)
            if asked.target not in kinds:
                return "another_target"
            reason = _mends_an_article(source, new, swap) or self._swap_truth(caption, source, swap, asked.target)
            if reason:
                return reason
        return changes_of_swap(source, new, swap, self._is_name), swap.mended

    def _swap_truth(self, caption: Caption, source: Sequence[Token], swap: Swap, target: str) -> str:
        between = source[slice(*swap.between)]
        if target == OBJECT:
            stays = any(t.tag in {"JJ", "CD"} for t in source[max(0, swap.first[0] - 1) : swap.first[0]])
            return "same_meaning" if between and says_the_same(between) and not stays else ""
        longer = max(swap.first, swap.second, key=lambda span: span[1] - span[0])
        past = between or source[slice(*longer)]
        if all(token.tag in _WITHIN or token.pos == "PUNCT" for token in past):
            return "same_meaning"  # both describe one thing
        said = any(caption.words.said_with(*pair, elsewhere=True) for pair in _newly_described(source, swap))
        return "true_of_image" if said else ""

    def _span(
        self, caption: Caption, asked: Asked, source: Sequence[Token], new: Sequence[Token]
    ) -> tuple[list[Change], int] | str:
        if Counter(_lower(source)) == Counter(_lower(new)):
            return "same_words"
        hunks = differences(source, new)
        edits = [hunk for hunk in hunks if not hunk.is_agreement]
        edits = _joined_in_relation(_joined_by_of(edits, source), source, new)
        if not edits:
            return "another_form"
        main, *others = sorted(edits, key=lambda hunk: _is_repair(hunk, source, new))
        if others:
            repairs = all(_is_repair(hunk, source, new) for hunk in others)
            return "repaired" if repairs or _is_repair(main, source, new) else "several_edits"
        agreeing = [hunk for hunk in hunks if hunk.is_agreement and not main.start <= hunk.start < main.end]
        reason = self._one_span(caption, asked, source, new, main) or _not_agreement(agreeing, main, source)
        if reason:
            return reason
        changes = [changes_of_hunk(source, new, hunk, self._is_name) for hunk in (main, *agreeing)]
        return changes, len(agreeing) + len(main.agreed)

    def _one_span(
        self, caption: Caption, asked: Asked, source: Sequence[Token], new: Sequence[Token], hunk: Hunk
    ) -> str:
        """Return what is wrong with the one stretch that differs, or an empty string."""
        new = self._in_slot(source, new, hunk)
        old = Stretch(source, hunk.start, hunk.end, hunk.gone)
        fresh = Stretch(new, hunk.new_start, hunk.new_end, hunk.new)
        reason = _wrong_form(asked.form, old, fresh) or _wrong_target(asked, old, fresh)
        if reason:
            return reason
        if not all(self._is_known(new[at]) for at in hunk.new):
            return "unknown_word"
        reading = _reading(asked.target, source, old, fresh)
        if asked.kind == "hard_positive":
            return self._truth.of_positive(reading)
        return self._truth.of_negative(reading, caption.words)

    def _in_slot(self, source: Sequence[Token], new: Sequence[Token], hunk: Hunk) -> Sequence[Token]:
        """Return the text's tokens, a single new word tagged as the old one where it can be that.

        A tagger is easily misled by a rare word; the place where it stands says what it is.
        """
        if len(hunk.gone) != 1 or len(hunk.new) != 1:
            return new
        old, word = source[hunk.gone[0]], new[hunk.new[0]]
        base = lemma(word.text, old.tag)
        if old.pos == word.pos or old.pos not in _OPEN or not self._has(base, old.pos):
            return new
        tagged = Token(word.text, word.start, word.end, old.tag, old.pos, base)
        return [*new[: hunk.new[0]], tagged, *new[hunk.new[0] + 1 :]]

    def _has(self, word: str, pos: str) -> bool:
        return self._thesaurus.has(word, pos) or self._pool.frequency(word, pos) > 0

    def _is_known(self, token: Token) -> bool:
        """Whether the dictionary or the pool has a word; those of closed classes are known to the tagger."""
        word = token.text.lower()
        if token.pos not in _OPEN | {"PROPN", "X"} or word in _CLOSED:
            return True
        return any(self._has(base, pos) for base in {token.lemma, word, *_bases(word)} for pos in sorted(_OPEN))

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
    import lemminflect

    return frozenset(base for found in lemminflect.getAllLemmas(word).values() for base in found)


def _kinds_of_swap(source: Sequence[Token], swap: Swap) -> frozenset[str]:
    if swap.first[1] < swap.second[0]:
        return kinds_of_swap(source, swap.first, swap.second)
    moved = min(swap.first, swap.second, key=lambda span: span[1] - span[0])
    # One word moved past others: it describes another thing now, or it is no swap of two things.
    return kinds_of_swap(source, moved, moved) & {ATTRIBUTE}


def _wrong_form(asked: str, old: Stretch, new: Stretch) -> str:
    """Return what is wrong with a difference that should be a replacement or an addition."""
    if not new.at:
        return "left_out"
    gone, fresh = [old.tokens[at] for at in old.at], [new.tokens[at] for at in new.at]
    if old.counting() or counts_instead(gone, fresh):
        form = "replace"
    elif old.at:
        return "repaired"
    else:
        form = "add"
    if not new.counting():
        return "left_out" if old.counting() else "repaired"
    edges = {fresh[0].text.lower(), fresh[-1].text.lower()} & _AUXILIARIES
    if edges and not any(token.pos in {"AUX", "VERB"} for token in gone):
        return "repaired"  # "a man | and a boy are | eating": it was no sentence before
    return "" if form == asked else "another_form"


def _wrong_target(asked: Asked, old: Stretch, new: Stretch) -> str:
    longest = LONGEST_ADDED if asked.form == "add" else LONGEST_REPLACED
    if max(len(old.counting()), len(new.counting())) > longest:
        return "too_long"
    if asked.form == "add":
        kinds = kinds_of_addition(new)
    elif counts_instead([old.tokens[at] for at in old.at], [new.tokens[at] for at in new.at]):
        kinds = frozenset({ATTRIBUTE})
    else:
        kinds = kinds_of_replacement(old, new)
    if asked.target in kinds:
        return ""
    if kinds:
        return "another_target"
    several = sum(token.tag in _NOUNS for token in new.counting()) > 1 or len(old.counting()) > 1
    return "too_long" if several else "another_target"


def _is_clumsy(text: str, source: str) -> bool:
    """Whether a word stands twice in a row that does not in the source."""
    return bool({found[0].lower() for found in _TWICE.finditer(text)} - {f[0].lower() for f in _TWICE.finditer(source)})


def _lower(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens if token.pos != "PUNCT"]


def _bag(tokens: Sequence[Token]) -> Counter[str]:
    """Return the words by lemma, which stay the same when words change places and agree with others."""
    return Counter("a" if token.text.lower() == "an" else token.lemma for token in tokens if token.pos != "PUNCT")


def _joined_by_of(hunks: Sequence[Hunk], source: Sequence[Token]) -> list[Hunk]:
    """Return the hunks, those joined by "of" as one: "a bowl of fruit" is one thing."""
    made: list[Hunk] = []
    for hunk in hunks:
        last = made[-1] if made else None
        if last is not None and last.gone and hunk.gone and hunk.new and last.new:
            between = [token.text.lower() for token in source[last.end : hunk.start]]
            if between == ["of"] and hunk.new_start == last.new_end + 1:
                made[-1] = _as_one([last, hunk])
                continue
        made.append(hunk)
    return made


def _joined_in_relation(hunks: list[Hunk], source: Sequence[Token], new: Sequence[Token]) -> list[Hunk]:
    """Return the hunks, as one when a relation stands for another: "next to" for "to the left of" shares a word."""
    if len(hunks) <= 1:
        return hunks
    one = _as_one(hunks)
    old, fresh = Stretch(source, one.start, one.end, one.gone), Stretch(new, one.new_start, one.new_end, one.new)
    return [one] if _whole_relation(old) and _whole_relation(fresh) else hunks


def _as_one(hunks: Sequence[Hunk]) -> Hunk:
    """Return one hunk from the first to the last, the words between them gone and new again."""
    first, last = hunks[0], hunks[-1]
    gone, new = range(first.start, last.end), range(first.new_start, last.new_end)
    agreed = tuple(pair for hunk in hunks for pair in hunk.agreed)
    return Hunk(
        first.start,
        last.end,
        first.new_start,
        last.new_end,
        tuple(at for at in gone if at not in {old for old, _ in agreed}),
        tuple(at for at in new if at not in {fresh for _, fresh in agreed}),
        agreed,
    )


def _is_repair(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether a difference is a matter of grammar, punctuation or spelling only."""
    gone, fresh = [source[at] for at in hunk.gone], [new[at] for at in hunk.new]
    if all(token.tag in _SMALL or token.pos in {"PUNCT", "AUX"} for token in (*gone, *fresh)):
        return True
    old, said = "".join(t.text.lower() for t in gone), "".join(t.text.lower() for t in fresh)
    return old.replace("-", "") == said.replace("-", "") or _misspelled(old, said) or _same_lemmas(gone, fresh)


def _same_lemmas(gone: Sequence[Token], fresh: Sequence[Token]) -> bool:
    """Whether the words are the same but for their forms and small words: "standing", "is standing"."""

    def content(tokens: Sequence[Token]) -> list[str]:
        return [token.lemma for token in tokens if token.tag not in _SMALL and token.pos not in {"PUNCT", "AUX"}]

    return bool(content(gone)) and content(gone) == content(fresh)


def _misspelled(one: str, other: str) -> bool:
    """Whether two long words differ in one letter, or two neighbours that changed places."""
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[2:] == b[2:] and a[:2] == b[:2][::-1])


def _not_agreement(hunks: Sequence[Hunk], main: Hunk, source: Sequence[Token]) -> str:
    """Return a reason when a noun changed in number, or an article, though the edit does not touch it."""
    for hunk in hunks:
        for at, _ in hunk.agreed:
            if source[at].text.lower() in _ARTICLES:
                return "repaired"
            if source[at].tag in _NOUNS and not _in_phrase(source, main.end, at):
                return "repaired"
    return ""


def _newly_described(source: Sequence[Token], swap: Swap) -> list[tuple[str, str]]:
    """Return each thing (lemma of its noun) with the word that describes it only after the exchange."""
    (start, middle), (second, end) = swap.first, swap.second
    if middle < second:
        nouns = _noun_after(source, middle), _noun_after(source, end)
        found = [(nouns[0], source[end - 1]), (nouns[1], source[middle - 1])]
    elif middle - start < end - second:
        found = [(_noun_after(source, end), source[middle - 1])]
    else:
        found = [(_noun_after(source, start), source[end - 1])]
    return [(noun, word.text.lower()) for noun, word in found if noun]


def _mends_an_article(source: Sequence[Token], new: Sequence[Token], swap: Swap) -> str:
    """Return a reason when an article changed before a word that stayed where it was."""
    outside = [*range(swap.first[0] - 1), *range(swap.second[1], len(source))]
    return (
        "repaired"
        if any(_lower([source[at]]) != _lower([new[at]]) for at in outside if source[at].text.lower() in _ARTICLES)
        else ""
    )


def _in_phrase(source: Sequence[Token], start: int, at: int) -> bool:
    inside = {"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "NN", "NNS", "NNP", "HYPH", "CC", ",", "RB"}
    return start <= at and all(token.tag in inside for token in source[start:at])


def _noun_after(tokens: Sequence[Token], start: int) -> str:
    """Return the lemma of the head of the noun phrase at or behind ``start``."""
    head = ""
    for token in tokens[start:]:
        if token.tag in _NOUNS:
            head = token.lemma
        elif head:
            break
    return head


def _reading(target: str, source: Sequence[Token], old: Stretch, new: Stretch) -> Reading:
    before = next((token.lemma for token in reversed(source[: old.start]) if token.tag in _NOUNS), "")
    # Where the noun itself is in the hunk, in another number, it is what is described.
    inside = [token for at, token in enumerate(source[old.start : old.end], old.start) if at not in old.at]
    described = next((token.lemma for token in reversed(inside) if token.tag in _NOUNS), "")
    after = described or _noun_after(source, old.end)
    gone: Sequence[Token] = old.counting() or [source[at] for at in old.at]
    fresh: Sequence[Token] = new.counting()
    if target == RELATION:
        gone, fresh = _whole_relation(old) or gone, _whole_relation(new) or fresh
    return Reading(target, gone, fresh, before, after)


def _whole_relation(stretch: Stretch) -> Sequence[Token]:
    """Return the words of the relation in which a stretch lies: "to the left of" for "left"."""
    for found in relations_in(stretch.tokens):
        if found.start <= stretch.start and stretch.end <= found.end:
            return stretch.tokens[found.start : found.end]
    return ()
