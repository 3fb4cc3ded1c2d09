"""The edit among the differences between a text and its source, and what it is of.

One hunk has to be the edit. Beside it, words that agree with it may differ. Repairs of small words are not taken over (see
`repairs`). Anything else is a second edit. Hunks of one relation ("next to", "to the left of") are one.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.constraints.lexical import split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.written.alignment import Hunk
from pairwright.generators.edits.written.repairs import is_small
from pairwright.generators.edits.written.targets import (
    ATTRIBUTE,
    NOUNS,
    OBJECT,
    RELATION,
    RequestedEdit,
    TokenSpan,
    counts_instead,
    deed,
    noun_after,
    targets_of_addition,
    targets_of_words,
)
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.relations import load_relations

_LONGEST: Final = {"replace": 5, "add": 9}  # words that count, on either side
_MASS = flagged("mass")
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_INSIDE: Final = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "NN", "NNS", "NNP", "HYPH", "CC", ",", "RB"})
_JOINERS: Final = frozenset({"CC", "IN", "TO", "VBG", "VBN", "WDT"})
_PLACING: Final = frozenset({"IN", "RP", "TO"})
_ENDING: Final = frozenset(".;:!?()[]—–")  # end a sentence or put words aside
_SPEAKING: Final = frozenset({"i", "you"})  # ", I changed it"
_AUXILIARIES: Final = frozenset({"be", "have"})
_DETERMINING: Final = frozenset({"DT", "PRP$", "CD", "JJ"})
_LISTS_ON: Final = frozenset({",", "and", "or"})


def find_edit(asked: RequestedEdit, hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | str:
    """Return the one hunk that is the edit, or a reason."""
    edits = [hunk for hunk in hunks if not hunk.is_agreement and not _is_repair(hunk, source, new)]
    if asked.target == RELATION and edits:
        edits = _joined_in_relation(edits, source, new)
    if not edits:
        return "another_form" if all(hunk.is_agreement for hunk in hunks) else "repaired"
    if len(edits) > 1:
        return "several_edits"
    main = _without_repairs(edits[0], source, new)
    if asked.kind == "hard_positive" and asked.form == "replace" and asked.target == OBJECT:
        main = _longer_name(main, source)
    return main


def grown_list(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | None:
    """Return what is added where a list grows at its end, "X and Y" to "X, Y, and Z"; None if none does.

    The first hunk then is the comma that replaces "and", or the "and" behind a comma that is gone.
    """
    if len(hunks) < 2:
        return None
    first, last = hunks[0], hunks[-1]
    old, said = _words(source[first.start : last.end]), _words(new[first.new_start : last.new_end])
    if not first.start or old[:1] != ["and"] or len(old) == 1:
        return None
    items = old[1:] if source[first.start - 1].text == "," else [",", *old[1:]]
    if said[: len(items)] != items:
        return None
    added = said[len(items) :]
    ands = added[added[:1] == [","] :]
    if ands[:1] != ["and"] or len(ands) == 1 or "and" in items or not {",", "and"}.isdisjoint(ands[1:]):
        return None
    start = first.new_start + len(items)
    return Hunk(last.end, last.end, start, last.new_end, (), tuple(range(start, last.new_end)))


def follows(hunk: Hunk, main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether a difference in agreement follows from the edit: a pronoun, a verb, noun or article of another number."""
    if _is_article_of(hunk, main, source, new):
        return True
    if not hunk.is_agreement or main.start <= hunk.start < main.end:
        return False
    number = _changes_number(main, source, new)
    owned = number and any(source[at].tag == "PRP$" for at, _ in hunk.agreed)  # "its paw", "their paws"
    return owned or all(
        source[at].tag in {"PRP", "PRP$"}
        or (number and source[at].pos in {"AUX", "VERB"})
        or (source[at].tag in NOUNS and at >= main.end and _INSIDE.issuperset(t.tag for t in source[main.end : at]))
        for at, _ in hunk.agreed
    )


def _is_article_of(hunk: Hunk, main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether an article came or went since the noun behind it has another number: "a long | tongue", "long | claws"."""
    words = [source[at] for at in hunk.gone] + [new[at] for at in hunk.new]
    if (
        len(words) != 1
        or words[0].text.lower() not in ARTICLES
        or hunk.end > main.start
        or not (main.gone and main.new)
    ):
        return False
    nouns = source[main.gone[-1]], new[main.new[-1]]
    uncertain = any(
        noun.tag == "NNS" and noun.text.lower() == noun.lemma for noun in nouns
    )  # "single sheep" may be one
    if uncertain or not hunk.start:  # a capital would have to move
        return False
    between = {token.tag for token in source[hunk.end : main.start]}
    return (
        tuple(noun.tag for noun in nouns) == (("NN", "NNS") if hunk.gone else ("NNS", "NN"))
        and bool(between)
        and between <= _INSIDE
    )


def wrong_edit(asked: RequestedEdit, old: TokenSpan, new: TokenSpan) -> str:
    """Return why a difference is not what was asked for, or an empty string."""
    counted = counts_instead(old, new)
    gone, fresh = old.counting, new.counting
    if not fresh and not counted:
        return "left_out" if gone or not new.at else "repaired"
    if old.at and not gone and not counted:
        return "repaired"
    form = "replace" if old.at else "add"
    if form != asked.form:
        return "another_form"
    if max(len(gone), len(fresh)) > _LONGEST[form]:
        return "too_long"
    return _wrong_target(asked, old, new, counted=counted)


def _wrong_target(asked: RequestedEdit, old: TokenSpan, new: TokenSpan, *, counted: bool) -> str:
    if asked.form == "add":
        targets = targets_of_addition(new)
    else:
        targets = frozenset({ATTRIBUTE}) if counted else targets_of_words(old) & targets_of_words(new)
    if deed(old) and deed(new):
        return "too_long"  # another deed with another thing
    if asked.target in targets:
        return "not_grammatical" if _joins_badly(asked, old, new) else ""
    several = len(old.counting) > 1 or (bool(old.at) and sum(word.tag in NOUNS for word in new.counting) > 1)
    return "too_long" if several and not targets else "another_target"


def proposed(caption: Caption, asked: RequestedEdit, old: TokenSpan, new: TokenSpan) -> ProposedEdit:
    """Return the edit as constraints see it."""
    source = old.tokens
    before = next((token.lemma for token in reversed(source[: old.start]) if token.tag in NOUNS), "")
    # Where the noun itself is in the hunk, in another number, it is what is described.
    inside = [source[at] for at in range(old.start, old.end) if at not in old.at]
    described = next((token.lemma for token in reversed(inside) if token.tag in NOUNS), "")
    after = described or noun_after(source, old.end)
    joined = source[old.end : old.end + 2]
    if len(joined) > 1 and joined[0].tag == "HYPH" and joined[1].text.endswith("ed"):
        after = joined[1].text.lower()[:-2]  # "a red-haired girl"
    gone, fresh = _key(asked.target, old), _key(asked.target, new)
    start = old.start
    verb = source[old.start - 1] if old.start and asked.target == RELATION else None
    if verb is not None and verb.pos == "VERB" and not split_relation(gone)[0] and not split_relation(fresh)[0]:
        gone, fresh = f"{verb.lemma} {gone}", f"{verb.lemma} {fresh}"  # "sitting | on", "sitting | under"
        start -= 1
    return ProposedEdit(caption, asked.form, asked.target, gone, fresh, before, after, start, old.end, kind=asked.kind)


def noun_key(tokens: Sequence[Token]) -> str:
    """Return the first noun with the nouns right before its head, as a key of the lexicon."""
    nouns: list[Token] = []
    for token in tokens:
        if token.tag in NOUNS:
            nouns.append(token)
        elif nouns:
            break
    return " ".join([*(token.text.lower() for token in nouns[:-1]), *(token.lemma for token in nouns[-1:])])


def _key(target: str, stretch: TokenSpan) -> str:
    words = stretch.counting or stretch.words
    if target == RELATION and (acted := deed(stretch)):
        return " ".join(token.lemma for token in acted)
    if target == ATTRIBUTE:
        return " ".join(_words(words))
    relation = " ".join(token.lemma for token in stretch.words)
    return relation if target == RELATION else noun_key(words) or relation


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens]


def _is_repair(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    return all(is_small(source[at]) for at in hunk.gone) and all(is_small(new[at]) for at in hunk.new)


def _without_repairs(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> Hunk:
    """Return an edit without what the source does without: an auxiliary or comma at its ends, an article of its noun."""
    if hunk.gone and hunk.agreed[:1] == ((hunk.start, hunk.new_start),) and source[hunk.start].text.lower() in ARTICLES:
        hunk = replace(hunk, start=hunk.start + 1, new_start=hunk.new_start + 1, agreed=hunk.agreed[1:])
    gone, start, end = [source[at] for at in hunk.gone], hunk.new_start, hunk.new_end
    before = source[hunk.start - 1].tag if hunk.start else ""
    acts = any(token.pos in {"AUX", "VERB"} for token in gone)
    determined = before in _DETERMINING or (bool(gone) and source[hunk.start].tag in _DETERMINING)

    def is_extra(at: int, *, first: bool) -> bool:
        token = new[at]
        if at not in hunk.new:
            return False
        if token.text == ",":
            return bool(gone) and "," not in _words(gone)
        if token.text.lower() in ARTICLES:  # of the noun itself, or of the one behind the addition
            one = bool(gone) and gone[-1].tag == "NN" == new[end - 1].tag and gone[-1].lemma not in _MASS
            return not determined and (one if first else not gone)
        return not first and not acts and token.lemma in _AUXILIARIES

    while end - 1 > start and is_extra(end - 1, first=False):
        end -= 1
    while end - 1 > start and is_extra(start, first=True):
        start += 1
    kept = tuple(at for at in hunk.new if start <= at < end)
    return replace(hunk, new_start=start, new_end=end, new=kept)


def _longer_name(hunk: Hunk, source: Sequence[Token]) -> Hunk:
    """Return the hunk with the noun before it, where words behind a noun are new or gone: "laptop | computer"."""
    if (hunk.gone and hunk.new) or not hunk.start or source[hunk.start - 1].tag not in NOUNS:
        return hunk
    return _spanning(hunk, hunk.start - 1, hunk.end, hunk.new_start - 1, hunk.new_end)


def _joined_in_relation(edits: list[Hunk], source: Sequence[Token], new: Sequence[Token]) -> list[Hunk]:
    """Return the hunks, as one where a relation replaces another: "in front of" for "in"."""
    first, last = edits[0], edits[-1]
    find = load_relations().find_prepositions
    known = find(_words(source)).items()
    for start, end in find(_words(new)).items():
        before, behind = first.new_start - start, end - last.new_end
        span = first.start - before, last.end + behind
        if before >= 0 <= behind and span in known:
            return [_spanning(first, *span, start, end)]
    between = [token for one, two in pairwise(edits) for token in source[one.end : two.start]]
    if all(token.tag in _PLACING for token in between):  # "standing on top of", "sitting on"
        return [_spanning(first, first.start, last.end, first.new_start, last.new_end)]
    return edits


def _spanning(hunk: Hunk, start: int, end: int, new_start: int, new_end: int) -> Hunk:
    """Return a hunk of these tokens, all but those that agree being gone and new."""
    old, new = ({pair[side] for pair in hunk.agreed} for side in (0, 1))
    gone = tuple(at for at in range(start, end) if at not in old)
    return Hunk(
        start,
        end,
        new_start,
        new_end,
        gone,
        tuple(at for at in range(new_start, new_end) if at not in new),
        hunk.agreed,
    )


def _changes_number(main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether an edit may change the number of its noun, so that a verb has to change."""
    tags = [[tokens[at].tag for at in places] for tokens, places in ((source, main.gone), (new, main.new))]
    nouns = all(each and each[-1] in NOUNS for each in tags)
    several = any({"CC", "CD", "DT"} & {*each} for each in tags)
    return not nouns or several or (tags[0][-1] in _PLURAL) is not (tags[1][-1] in _PLURAL)


def _joins_badly(asked: RequestedEdit, old: TokenSpan, new: TokenSpan) -> bool:
    """Whether new words break their sentence in two, stand before an article, or name a thing that nothing joins."""
    fresh, last, following = new.words, new.before(), new.following()
    if not (_ENDING | _SPEAKING).isdisjoint({*_words(fresh)} - {*_words(old.words)}):
        return True
    if asked.form != "add":
        return False
    behind = following.text.lower() if following is not None else ""
    if asked.target == ATTRIBUTE:
        return behind in ARTICLES | {"the"} and fresh[-1].tag[:2] in {"JJ", "VB"}
    joined = next((two.tag for one, two in pairwise(new.tokens[new.end :]) if one.tag == "CC"), "")
    if fresh[0].text != "," in _words(fresh):
        return joined.startswith("VB")  # "eating a | pizza, a | pie and holding a cup"
    if last is None or last.tag not in NOUNS | {"JJ"} or not _JOINERS.isdisjoint(token.tag for token in fresh):
        return False
    named = following is not None and following.tag in NOUNS
    return behind not in _LISTS_ON if fresh[0].text == "," else not named
