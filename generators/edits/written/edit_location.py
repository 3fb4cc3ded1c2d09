"""Location of the edit among the differences between a text and its source.

Exactly one hunk must be the edit. Words that agree with it may differ as well, and repairs of function words are undone
(`repairs`). Any other hunk is a second edit. Hunks of one relation ("next to", "to the left of") are merged.
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
from pairwright.generators.edits.written.repairs import is_minor
from pairwright.generators.edits.written.targets import (
    ATTRIBUTE,
    NOUNS,
    OBJECT,
    RELATION,
    RequestedEdit,
    TokenSpan,
    is_number_change,
    noun_after,
    targets_of_addition,
    targets_of_words,
    verb_of_phrase,
)
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.relations import load_relations

_LONGEST: Final = {"replace": 5, "add": 9}  # content words, on either side
_MASS = flagged("mass")
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_INSIDE_PHRASE: Final = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "CD", "NN", "NNS", "NNP", "HYPH", "CC", ",", "RB"})
_CONNECTIVES: Final = frozenset({"CC", "IN", "TO", "VBG", "VBN", "WDT"})
_PREPOSITIONAL: Final = frozenset({"IN", "RP", "TO"})
_SEPARATORS: Final = frozenset(".;:!?()[]—–")  # sentence ends and parentheticals
_FIRST_PERSON: Final = frozenset({"i", "you"})  # ", I changed it"
_AUXILIARIES: Final = frozenset({"be", "have"})
_DETERMINING: Final = frozenset({"DT", "PRP$", "CD", "JJ"})
_LIST_CONNECTIVES: Final = frozenset({",", "and", "or"})


def find_edit(
    requested: RequestedEdit, hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]
) -> Hunk | str:
    """Return the one hunk that is the edit, or a reason."""
    edits = [hunk for hunk in hunks if not hunk.is_agreement and not _is_repair(hunk, source, new)]
    if requested.target == RELATION and edits:
        edits = _merge_relation_hunks(edits, source, new)
    if not edits:
        return "another_form" if all(hunk.is_agreement for hunk in hunks) else "repaired"
    if len(edits) > 1:
        return "several_edits"
    main = _trim_repairs(edits[0], source, new)
    if requested.kind == "hard_positive" and requested.form == "replace" and requested.target == OBJECT:
        main = _extend_by_noun(main, source)
    return main


def find_list_extension(hunks: Sequence[Hunk], source: Sequence[Token], new: Sequence[Token]) -> Hunk | None:
    """Return the item that extends a coordination at its end ("X and Y" to "X, Y, and Z"), or None.

    The first hunk is then the comma that replaces "and", or the deleted "and" after a comma.
    """
    if len(hunks) < 2:
        return None
    first, last = hunks[0], hunks[-1]
    old, extended = _words(source[first.start : last.end]), _words(new[first.new_start : last.new_end])
    if not first.start or old[:1] != ["and"] or len(old) == 1:
        return None
    items = old[1:] if source[first.start - 1].text == "," else [",", *old[1:]]
    if extended[: len(items)] != items:
        return None
    added = extended[len(items) :]
    ands = added[added[:1] == [","] :]
    if ands[:1] != ["and"] or len(ands) == 1 or "and" in items or not {",", "and"}.isdisjoint(ands[1:]):
        return None
    start = first.new_start + len(items)
    return Hunk(last.end, last.end, start, last.new_end, (), tuple(range(start, last.new_end)))


def agrees_with_edit(hunk: Hunk, main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Return whether a hunk is agreement with the edit: a pronoun, or a verb, noun or article of another number."""
    if _is_article_of(hunk, main, source, new):
        return True
    if not hunk.is_agreement or main.start <= hunk.start < main.end:
        return False
    number = _changes_number(main, source, new)
    owned = number and any(source[at].tag == "PRP$" for at, _ in hunk.agreed)  # "its paw", "their paws"
    return owned or all(
        source[at].tag in {"PRP", "PRP$"}
        or (number and source[at].pos in {"AUX", "VERB"})
        or (
            source[at].tag in NOUNS
            and at >= main.end
            and _INSIDE_PHRASE.issuperset(t.tag for t in source[main.end : at])
        )
        for at, _ in hunk.agreed
    )


def _is_article_of(hunk: Hunk, main: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    """Return whether an article was inserted or deleted because its noun changed number: "a long | tongue"."""
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
        and between <= _INSIDE_PHRASE
    )


def find_mismatch(requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> str:
    """Return why a difference is not the requested edit, or an empty string."""
    counted = is_number_change(old, new)
    gone, fresh = old.content, new.content
    if not fresh and not counted:
        return "left_out" if gone or not new.at else "repaired"
    if old.at and not gone and not counted:
        return "repaired"
    form = "replace" if old.at else "add"
    if form != requested.form:
        return "another_form"
    if max(len(gone), len(fresh)) > _LONGEST[form]:
        return "too_long"
    return _find_target_mismatch(requested, old, new, counted=counted)


def _find_target_mismatch(requested: RequestedEdit, old: TokenSpan, new: TokenSpan, *, counted: bool) -> str:
    if requested.form == "add":
        targets = targets_of_addition(new)
    else:
        targets = frozenset({ATTRIBUTE}) if counted else targets_of_words(old) & targets_of_words(new)
    if verb_of_phrase(old) and verb_of_phrase(new):
        return "too_long"  # another verb with another object
    if requested.target in targets:
        return "not_grammatical" if _breaks_sentence(requested, old, new) else ""
    several = len(old.content) > 1 or (bool(old.at) and sum(word.tag in NOUNS for word in new.content) > 1)
    return "too_long" if several and not targets else "another_target"


def as_proposed_edit(caption: Caption, requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> ProposedEdit:
    """Return the proposed edit, for constraints."""
    source = old.tokens
    before = next((token.lemma for token in reversed(source[: old.start]) if token.tag in NOUNS), "")
    # A noun that only changed number within the hunk is the described one.
    inside = [source[at] for at in range(old.start, old.end) if at not in old.at]
    described = next((token.lemma for token in reversed(inside) if token.tag in NOUNS), "")
    after = described or noun_after(source, old.end)
    joined = source[old.end : old.end + 2]
    if len(joined) > 1 and joined[0].tag == "HYPH" and joined[1].text.endswith("ed"):
        after = joined[1].text.lower()[:-2]  # "a red-haired girl"
    gone, fresh = _lexicon_key(requested.target, old), _lexicon_key(requested.target, new)
    start = old.start
    verb = source[old.start - 1] if old.start and requested.target == RELATION else None
    if verb is not None and verb.pos == "VERB" and not split_relation(gone)[0] and not split_relation(fresh)[0]:
        gone, fresh = f"{verb.lemma} {gone}", f"{verb.lemma} {fresh}"  # "sitting | on", "sitting | under"
        start -= 1
    return ProposedEdit(
        caption, requested.form, requested.target, gone, fresh, before, after, start, old.end, kind=requested.kind
    )


def noun_key(tokens: Sequence[Token]) -> str:
    """Return the first noun with the nouns right before its head, as a key of the lexicon."""
    nouns: list[Token] = []
    for token in tokens:
        if token.tag in NOUNS:
            nouns.append(token)
        elif nouns:
            break
    return " ".join([*(token.text.lower() for token in nouns[:-1]), *(token.lemma for token in nouns[-1:])])


def _lexicon_key(target: str, span: TokenSpan) -> str:
    words = span.content or span.words
    if target == RELATION and (verb := verb_of_phrase(span)):
        return " ".join(token.lemma for token in verb)
    if target == ATTRIBUTE:
        return " ".join(_words(words))
    relation = " ".join(token.lemma for token in span.words)
    return relation if target == RELATION else noun_key(words) or relation


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text.lower() for token in tokens]


def _is_repair(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> bool:
    return all(is_minor(source[at]) for at in hunk.gone) and all(is_minor(new[at]) for at in hunk.new)


def _trim_repairs(hunk: Hunk, source: Sequence[Token], new: Sequence[Token]) -> Hunk:
    """Return an edit without repairs at its ends: an inserted auxiliary, comma or article that the source omits."""
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


def _extend_by_noun(hunk: Hunk, source: Sequence[Token]) -> Hunk:
    """Return the hunk extended by the noun before it, if it only inserts or deletes words: "laptop | computer"."""
    if (hunk.gone and hunk.new) or not hunk.start or source[hunk.start - 1].tag not in NOUNS:
        return hunk
    return _resize_hunk(hunk, hunk.start - 1, hunk.end, hunk.new_start - 1, hunk.new_end)


def _merge_relation_hunks(edits: list[Hunk], source: Sequence[Token], new: Sequence[Token]) -> list[Hunk]:
    """Return the hunks, merged if one relation replaces another: "in front of" for "in"."""
    first, last = edits[0], edits[-1]
    find = load_relations().find_prepositions
    known = find(_words(source)).items()
    for start, end in find(_words(new)).items():
        before, behind = first.new_start - start, end - last.new_end
        span = first.start - before, last.end + behind
        if before >= 0 <= behind and span in known:
            return [_resize_hunk(first, *span, start, end)]
    between = [token for one, two in pairwise(edits) for token in source[one.end : two.start]]
    if all(token.tag in _PREPOSITIONAL for token in between):  # "standing on top of", "sitting on"
        return [_resize_hunk(first, first.start, last.end, first.new_start, last.new_end)]
    return edits


def _resize_hunk(hunk: Hunk, start: int, end: int, new_start: int, new_end: int) -> Hunk:
    """Return a hunk of these tokens; all but agreeing ones count as deleted and inserted."""
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
    """Return whether an edit may change the number of its noun, so that its verb must change."""
    tags = [[tokens[at].tag for at in places] for tokens, places in ((source, main.gone), (new, main.new))]
    nouns = all(each and each[-1] in NOUNS for each in tags)
    several = any({"CC", "CD", "DT"} & {*each} for each in tags)
    return not nouns or several or (tags[0][-1] in _PLURAL) is not (tags[1][-1] in _PLURAL)


def _breaks_sentence(requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> bool:
    """Return whether new words end the sentence early, precede an article, or add a noun without a connective."""
    fresh, last, following = new.words, new.before(), new.following()
    if not (_SEPARATORS | _FIRST_PERSON).isdisjoint({*_words(fresh)} - {*_words(old.words)}):
        return True
    if requested.form != "add":
        return False
    behind = following.text.lower() if following is not None else ""
    if requested.target == ATTRIBUTE:
        return behind in ARTICLES | {"the"} and fresh[-1].tag[:2] in {"JJ", "VB"}
    joined = next((two.tag for one, two in pairwise(new.tokens[new.end :]) if one.tag == "CC"), "")
    if fresh[0].text != "," in _words(fresh):
        return joined.startswith("VB")  # "eating a | pizza, a | pie and holding a cup"
    if last is None or last.tag not in NOUNS | {"JJ"} or not _CONNECTIVES.isdisjoint(token.tag for token in fresh):
        return False
    named = following is not None and following.tag in NOUNS
    return behind not in _LIST_CONNECTIVES if fresh[0].text == "," else not named
