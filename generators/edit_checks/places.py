"""Whether a text differs from its source in one place only, and what stands there.

One *hunk* has to be the edit. What else differs is agreement with it, or a repair of the source (grammar, punctuation,
spelling), or a second edit: the last two are reasons to reject. Hunks that only belong together by meaning are one:
those of a relation of several words, and those joined by "of".
"""

from collections.abc import Sequence
from typing import Final

from pairwright.generators.edit_checks.alignment import Hunk
from pairwright.generators.edit_checks.kinds import (
    ATTRIBUTE,
    RELATION,
    Asked,
    Stretch,
    counts_instead,
    kinds_of_addition,
    kinds_of_replacement,
    noun_after,
)
from pairwright.generators.edit_checks.truth import Reading
from pairwright.generators.language.tokens import Token
from pairwright.generators.words.nouns import MASS
from pairwright.generators.words.relations import relations_in
from pairwright.generators.words.wordlists import word_set

LONGEST_REPLACED: Final = 5  # words that count, on either side
LONGEST_ADDED: Final = 9

_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_VERBS: Final = frozenset({"VB", "VBP", "VBZ", "VBD"})
_SMALL: Final = frozenset({"DT", "IN", "TO", "CC", "RP", "HYPH", "POS", "PRP", "PRP$", "WDT", "EX", "MD", "PDT"})
_OF_LISTS: Final = _NOUNS | {"DT", "PRP$", "JJ", "JJR", "JJS", "VBN", "VBG", "CD", "HYPH", "POS", "CC", ","}
_DEEDS: Final = frozenset({"VB", "VBG", "VBZ", "VBP", "VBD"})
# "no A or B" for "an A and a B"
_OTHERWISE: Final = frozenset({("and", "or"), ("or", "and"), ("and a", "or"), ("and an", "or")})
_DENYING: Final = word_set("without no not never n't lacking")
_HYPHENS: Final = frozenset({"-", "\u2010", "\u2011"})
_ARTICLES: Final = frozenset({"a", "an"})
_AUXILIARIES: Final = word_set("is are was were has have be")


def the_edit(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | str:
    """Return the one hunk that is the edit, or a reason."""
    edits = [hunk for hunk in hunks if not hunk.is_agreement]
    edits = _joined_in_relation(_joined_by_of(edits, source), source, new)
    if not edits:
        return "another_form"
    main, *others = sorted(edits, key=lambda hunk: _is_repair(hunk, source, new))
    if others:
        repairs = all(_is_repair(hunk, source, new) for hunk in others)
        return "repaired" if repairs or _is_repair(main, source, new) else "several_edits"
    return _whole(main, source, new)


def grown_list(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | None:
    """Return what is added where a list grows at its end, "X and Y" to "X, Y, and Z"; None where none does.

    The comma that stands for "and" then belongs to the list's punctuation (`edit_checks.rebuilding.comma_for_and`).
    """
    if len(hunks) < 2:
        return None
    first, last = hunks[0], hunks[-1]
    old = [token.text.lower() for token in source[first.start : last.end]]
    said = [token.text.lower() for token in new[first.new_start : last.new_end]]
    kept = old[1:]
    if not first.start or old[:1] != ["and"] or not kept or said[: 1 + len(kept)] != [",", *kept]:
        return None
    added = said[1 + len(kept) :]
    ands = added[added[:1] == [","] :]
    if ands[:1] != ["and"] or len(ands) == 1 or "and" in kept or not {",", "and"}.isdisjoint(ands[1:]):
        return None
    start = first.new_start + 1 + len(kept)
    return Hunk(last.end, last.end, start, last.new_end, (), tuple(range(start, last.new_end)), ())


def joined_otherwise(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> list[Hunk]:
    """Return the differences that are only an "and" for an "or", or the other way round, as a denial asks for it.

    "with A and B" is denied by "without A or B": behind a word that denies, in the same phrase.
    """
    made: list[Hunk] = []
    for at, hunk in enumerate(hunks[1:], 1):
        before = hunks[at - 1]
        words = _words(source[hunk.start : hunk.end]), _words(new[hunk.new_start : hunk.new_end])
        if words not in _OTHERWISE or not _is_phrase(source[before.end : hunk.start]):
            continue
        denies = before in made or not _DENYING.isdisjoint(
            _words(
                new[before.new_start : before.new_end] if words[1] == "or" else source[before.start : before.end]
            ).split()
        )
        if denies:
            made.append(hunk)
    return made


def list_comma(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | None:
    """Return the comma that a list takes before its "and" when it grows at its front: "X and Y" to "N, X, and Y"."""
    if len(hunks) != 2:
        return None
    first, last = hunks
    grown, comma = new[first.new_start : first.new_end], new[last.new_start : last.new_end]
    between = source[first.end : last.start]
    grows = not first.gone and not last.gone and any(token.text == "," for token in grown)
    after = source[last.end : last.end + 2]
    joined = _words(comma) == "," and _words(after[:1]) in {"and", "or"} and not {t.tag for t in after} & _DEEDS
    return last if grows and joined and _is_phrase(between) else None


def _words(tokens: Sequence[Token]) -> str:
    return " ".join(token.text.lower() for token in tokens)


def _is_phrase(tokens: Sequence[Token]) -> bool:
    """Whether words are things, with what describes them, in a row."""
    return all(token.tag in _OF_LISTS or token.text.lower() == "of" for token in tokens)


def longer_name(hunk: Hunk, source: Sequence[Token]) -> Hunk:
    """Return the hunk with the noun before it, where words behind a noun are new or gone: "laptop | computer"."""
    if (hunk.gone and hunk.new) or not hunk.start or source[hunk.start - 1].tag not in _NOUNS:
        return hunk
    return _widened(hunk, 1, 0)


def _whole(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> Hunk:
    """Return the hunk, widened to the relations in which it lies: "in" and "in front of" share a word."""
    for fresh in relations_in(new):
        before, behind = hunk.new_start - fresh.start, fresh.end - hunk.new_end
        if before < 0 or behind < 0 or before + behind == 0:
            continue
        if any(old.start == hunk.start - before and old.end == hunk.end + behind for old in relations_in(source)):
            return _widened(hunk, before, behind)
    return hunk


def _widened(hunk: Hunk, before: int, behind: int) -> Hunk:
    """Return the hunk with so many words more before and behind it, which are the same in both texts."""
    start, end = hunk.start - before, hunk.end + behind
    new_start, new_end = hunk.new_start - before, hunk.new_end + behind
    agreed = {at for pair in hunk.agreed for at in pair[:1]}, {at for pair in hunk.agreed for at in pair[1:]}
    gone = tuple(at for at in range(start, end) if at not in agreed[0])
    fresh = tuple(at for at in range(new_start, new_end) if at not in agreed[1])
    return Hunk(start, end, new_start, new_end, gone, fresh, hunk.agreed)


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


def not_agreement(hunks: Sequence[Hunk], main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> str:
    """Return a reason when a noun changed in number, or an article or a verb, though the edit does not touch it."""
    verbs = (source[at].tag in _VERBS for hunk in (main, *hunks) for at, _ in hunk.agreed)
    if any(verbs) and _keeps_its_number(main, source, new):
        return "repaired"
    for hunk in hunks:
        for at, _ in hunk.agreed:
            if source[at].text.lower() in _ARTICLES:
                return "repaired"
            if source[at].tag in _NOUNS and not _in_phrase(source, main.end, at):
                return "repaired"
    return ""


def _keeps_its_number(main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether one noun stands for another of its number, so that no verb has to change: "a man ride", "a guy | rides"."""
    tags = [[tokens[at].tag for at in places] for tokens, places in ((source, main.gone), (new, main.new))]
    nouns = all(each and each[-1] in _NOUNS for each in tags)
    several = any("CC" in each or "CD" in each or "DT" in each for each in tags)
    return nouns and not several and (tags[0][-1] in _PLURAL) is (tags[1][-1] in _PLURAL)


def _in_phrase(source: Sequence[Token], start: int, at: int) -> bool:
    inside = {"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "NN", "NNS", "NNP", "HYPH", "CC", ",", "RB"}
    return start <= at and all(token.tag in inside for token in source[start:at])


def cuts_a_word(target: str, old: Stretch, new: Stretch) -> bool:
    """Whether the edit begins or ends inside of a hyphenated word and is more than one part for another.

    "a blond-haired girl" for "a red-haired girl" is one attribute for another; "a walk-in front of closet" is broken.
    """
    if not any(map(_is_glued, (old, new))):
        return False
    counts = len(old.at), len(new.at)
    return target == RELATION or counts != (1, 1)


def _is_glued(stretch: Stretch) -> bool:
    """Whether a hyphen, without a space, joins the stretch to the word before it or behind it."""
    tokens, start, end = stretch.tokens, stretch.start, stretch.end
    before = start > 1 and tokens[start - 1].text in _HYPHENS and tokens[start - 2].end == tokens[start - 1].start
    behind = end + 1 < len(tokens) and tokens[end].text in _HYPHENS and tokens[end].end == tokens[end + 1].start
    glued = before and start < len(tokens) and tokens[start - 1].end == tokens[start].start
    return glued or (behind and end > 0 and tokens[end - 1].end == tokens[end].start)


def wrong_form(asked: str, old: Stretch, new: Stretch) -> str:
    """Return what is wrong with a difference that should be a replacement or an addition."""
    if not new.at:
        return "left_out"
    gone, fresh = [old.tokens[at] for at in old.at], [new.tokens[at] for at in new.at]
    counted = counts_instead(gone, fresh)
    if old.counting() or counted:
        form = "replace"
    elif old.at:
        return "repaired"
    else:
        form = "add"
    if not new.counting() and not counted:
        return "left_out" if old.counting() else "repaired"
    edges = {fresh[0].text.lower(), fresh[-1].text.lower()} & _AUXILIARIES
    if edges and not any(token.pos in {"AUX", "VERB"} for token in gone):
        return "repaired"  # "a man | and a boy are | eating": it was no sentence before
    if form == "replace" and _opens_with_new_article(old, new):
        return "repaired"
    return "" if form == asked else "another_form"


def _opens_with_new_article(old: Stretch, new: Stretch) -> bool:
    """Whether a text in telegram style has got an article with its first noun: "Woman | A man | smiling"."""
    first, head = old.tokens[old.start], old.tokens[old.end - 1]
    given = new.tokens[new.start].tag == "DT" and first.tag not in {"DT", "CD", "PRP$"}
    return old.start == 0 and given and head.tag == "NN" and head.lemma not in MASS


def wrong_target(asked: Asked, old: Stretch, new: Stretch) -> str:
    """Return what is wrong with the size of an edit or with what it is of."""
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


def reading_of(target: str, source: Sequence[Token], old: Stretch, new: Stretch) -> Reading:
    """Return the edit as the checks of its truth see it."""
    before = next((token.lemma for token in reversed(source[: old.start]) if token.tag in _NOUNS), "")
    # Where the noun itself is in the hunk, in another number, it is what is described.
    inside = [token for at, token in enumerate(source[old.start : old.end], old.start) if at not in old.at]
    described = next((token.lemma for token in reversed(inside) if token.tag in _NOUNS), "")
    after = described or noun_after(source, old.end)
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
