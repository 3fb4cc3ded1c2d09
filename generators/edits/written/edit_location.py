"""Location of the edit among the differences between a text and its source.

Exactly one difference must be the edit. Words that agree with it may differ as well, and repairs of function words are
undone (`repairs`). Any other difference is a second edit. Differences of one relation are merged ("standing on top of",
"sitting on").
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.constraints.lexical import AUXILIARIES, split_relation
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.written.alignment import Difference, TokenSpan, lower_words
from pairwright.generators.edits.written.repairs import is_minor
from pairwright.generators.edits.written.targets import (
    ATTRIBUTE,
    NOUNS,
    OBJECT,
    RELATION,
    RequestedEdit,
    first_nouns,
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
_CONNECTIVES: Final = frozenset({"CC", "IN", "TO", "VBG", "VBN", "WDT"})
_LIST_CONNECTIVES: Final = frozenset({",", "and", "or"})
_PREPOSITIONAL: Final = frozenset({"IN", "RP", "TO"})
_SEPARATORS: Final = frozenset(".;:!?()[]—–")  # sentence ends and parentheticals
_FIRST_PERSON: Final = frozenset({"i", "you"})  # ", I changed it"
_DETERMINING: Final = frozenset({"DT", "PRP$", "CD", "JJ"})


def find_edit(requested: RequestedEdit, found: Sequence[Difference]) -> Difference | str:
    """Return the one difference that is the edit, or a reason."""
    edits = [each for each in found if not each.is_agreement and not _is_repair(each)]
    if requested.target == RELATION and edits:
        edits = _merge_relation(edits)
    if not edits:
        return "another_form" if all(each.is_agreement for each in found) else "repaired"
    if len(edits) > 1:
        return "several_edits"
    main = _trim_repairs(edits[0])
    if requested.kind == "hard_positive" and requested.form == "replace" and requested.target == OBJECT:
        main = _extend_by_noun(main)
    return main


def find_list_extension(found: Sequence[Difference]) -> Difference | None:
    """Return the item that extends a coordination at its end ("X and Y" to "X, Y, and Z"), or None.

    The first difference is then the comma that replaces "and", or the deleted "and" after a comma.
    """
    if len(found) < 2:
        return None
    source, new, start, end = found[0].old.tokens, found[0].new.tokens, found[0].old.start, found[-1].old.end
    old, extended = lower_words(source[start:end]), lower_words(new[found[0].new.start : found[-1].new.end])
    if not start or old[:1] != ["and"] or len(old) == 1:
        return None
    items = old[1:] if source[start - 1].text == "," else [",", *old[1:]]
    if extended[: len(items)] != items:
        return None
    added = extended[len(items) :]
    ands = added[added[:1] == [","] :]
    if ands[:1] != ["and"] or len(ands) == 1 or "and" in items or not {",", "and"}.isdisjoint(ands[1:]):
        return None
    item = found[0].new.start + len(items), found[-1].new.end
    return Difference(TokenSpan(source, end, end, ()), TokenSpan.of(new, item))


def agrees_with_edit(difference: Difference, main: Difference) -> bool:
    """Return whether a difference is agreement with the edit: a pronoun, or words of another number."""
    agreed = [difference.old.tokens[at] for at, _ in difference.agreed]
    if not difference.is_agreement or main.old.start <= difference.old.start < main.old.end:
        return False
    if _changes_number(main):
        return any(token.text.lower() not in ARTICLES for token in agreed)  # "a" for "an" is a repair
    return all(token.tag in {"PRP", "PRP$"} for token in agreed)


def find_mismatch(requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> str:
    """Return why a difference is not the requested edit, or an empty string."""
    counted, form = is_number_change(old, new), "replace" if old.at else "add"
    gone, fresh = old.content, new.content
    if not fresh and not counted:
        return "left_out" if gone or not new.at else "repaired"
    if old.at and not gone and not counted:
        return "repaired"
    if form != requested.form:
        return "another_form"
    if max(len(gone), len(fresh)) > _LONGEST[form] or (verb_of_phrase(old) and verb_of_phrase(new)):
        return "too_long"  # or another verb with another object
    if form == "add":
        targets = targets_of_addition(new)
    else:
        targets = frozenset({ATTRIBUTE}) if counted else targets_of_words(old) & targets_of_words(new)
    if requested.target in targets:
        return "not_grammatical" if _breaks_sentence(requested, old, new) else ""
    several = len(gone) > 1 or (form == "replace" and sum(word.tag in NOUNS for word in fresh) > 1)
    return "too_long" if several and not targets else "another_target"


def as_proposed_edit(caption: Caption, requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> ProposedEdit:
    """Return the proposed edit, for constraints."""
    source = old.tokens
    before = next((token.lemma for token in reversed(source[: old.start]) if token.tag in NOUNS), "")
    # A noun that only changed number within the span is the described one.
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
    nouns = first_nouns(tokens)
    return " ".join([*lower_words(nouns[:-1]), *(token.lemma for token in nouns[-1:])])


def _lexicon_key(target: str, span: TokenSpan) -> str:
    words = span.content or span.words
    if target == RELATION and (verb := verb_of_phrase(span)):
        return " ".join(token.lemma for token in verb)
    if target == ATTRIBUTE:
        return " ".join(lower_words(words))
    relation = " ".join(token.lemma for token in span.words)
    return relation if target == RELATION else noun_key(words) or relation


def _is_repair(difference: Difference) -> bool:
    return all(map(is_minor, (*difference.old.words, *difference.new.words)))


def _trim_repairs(edit: Difference) -> Difference:
    """Return an edit without repairs at its ends: an inserted auxiliary, comma or article that the source omits."""
    source, new = edit.old.tokens, edit.new.tokens
    opens_alike = edit.agreed[:1] == ((edit.old.start, edit.new.start),)
    if edit.old.at and opens_alike and source[edit.old.start].text.lower() in ARTICLES:
        old, fresh = (replace(span, start=span.start + 1) for span in (edit.old, edit.new))
        edit = Difference(old, fresh, edit.agreed[1:])
    gone, start, end, before = edit.old.words, edit.new.start, edit.new.end, edit.old.before()
    acts = any(token.pos in {"AUX", "VERB"} for token in gone)
    opening = [before] if before is not None else []
    opening += [source[edit.old.start]] if gone else []
    determined = any(token.tag in _DETERMINING for token in opening)

    def is_extra(at: int, *, first: bool) -> bool:
        token = new[at]
        if at not in edit.new.at:
            return False
        if token.text == ",":
            return bool(gone) and "," not in lower_words(gone)
        if token.text.lower() in ARTICLES:  # of the noun itself, or of the one behind the addition
            one = bool(gone) and gone[-1].tag == "NN" == new[end - 1].tag and gone[-1].lemma not in _MASS
            return not determined and (one if first else not gone)
        return not first and not acts and token.lemma in AUXILIARIES

    while end - 1 > start and is_extra(end - 1, first=False):
        end -= 1
    while end - 1 > start and is_extra(start, first=True):
        start += 1
    kept = tuple(at for at in edit.new.at if start <= at < end)
    return replace(edit, new=TokenSpan(new, start, end, kept))


def _extend_by_noun(edit: Difference) -> Difference:
    """Return an edit extended by the noun before it, if it only inserts or deletes words: "laptop | computer"."""
    before = edit.old.before()
    if (edit.old.at and edit.new.at) or before is None or before.tag not in NOUNS:
        return edit
    old, new = (replace(span, start=span.start - 1) for span in (edit.old, edit.new))
    return Difference.of(old, new, edit.agreed)


def _merge_relation(edits: list[Difference]) -> list[Difference]:
    """Return the differences, merged if one relation replaces another: "in front of" for "in", "standing on top of" for "sitting on"."""
    first, last = edits[0], edits[-1]
    source, new = first.old.tokens, first.new.tokens
    find = load_relations().find_prepositions
    known = find(lower_words(source)).items()
    for start, end in find(lower_words(new)).items():
        before, behind = first.new.start - start, end - last.new.end
        span = first.old.start - before, last.old.end + behind
        if before >= 0 <= behind and span in known:
            return [Difference.of(TokenSpan(source, *span, ()), TokenSpan(new, start, end, ()), first.agreed)]
    between = [token for one, two in pairwise(edits) for token in source[one.old.end : two.old.start]]
    if any(token.tag not in _PREPOSITIONAL for token in between):
        return edits
    old, new_span = replace(first.old, end=last.old.end), replace(first.new, end=last.new.end)
    return [Difference.of(old, new_span, first.agreed)]


def _changes_number(main: Difference) -> bool:
    """Return whether an edit may change the number of its noun, so that other words must change."""
    tags = [[word.tag for word in span.words] for span in (main.old, main.new)]
    nouns = all(each and each[-1] in NOUNS for each in tags)
    several = any({"CC", "CD", "DT"} & {*each} for each in tags)
    return not nouns or several or (tags[0][-1] in _PLURAL) is not (tags[1][-1] in _PLURAL)


def _breaks_sentence(requested: RequestedEdit, old: TokenSpan, new: TokenSpan) -> bool:
    """Return whether new words end the sentence early, or add a noun behind another one without a connective."""
    if not (_SEPARATORS | _FIRST_PERSON).isdisjoint({*lower_words(new.words)} - {*lower_words(old.words)}):
        return True
    last, following = new.before(), new.following()
    if requested.form != "add" or last is None or last.tag not in NOUNS:
        return False
    continued = following is not None and (following.tag in NOUNS or following.text.lower() in _LIST_CONNECTIVES)
    return not continued and _CONNECTIVES.isdisjoint(token.tag for token in new.words)
