"""Meaning constraints: negatives must not be synonymous with their caption, positives must be entailed by it.

The two conditions are not complementary. A negative is rejected if the new word may hold of the same thing, a positive
if the new word is not known to hold. In between are words whose relation the lexicon does not know.
"""

from itertools import product
from typing import Final

from pairwright.generators.captions.box_checks import is_vague
from pairwright.generators.captions.phrases import ARTICLES
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import (
    ONE_SENSE,
    are_opposed,
    plain_relation,
    reworded,
    split_relation,
)
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.lexicon.attributes import counts, number_ranges, own_number_ranges, same_concept, share_class
from pairwright.generators.lexicon.relations import UNKNOWN
from pairwright.generators.lexicon.synonyms import reword_each_other

_POS: Final = {"object": "noun", "attribute": "adjective", "relation": "relation"}
_SMALL: Final = frozenset({"a", "of", "-"})  # "a pair of"
_ONE: Final = ARTICLES | {word for word, value in counts().items() if value == 1}
_SEVERAL: Final = (3, 10**9)
_SENSES: Final = 10  # WordNet senses of a noun that are read


def is_same_object(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two nouns may name the same thing: synonyms, hypernym and hyponym, or loosely the same."""
    old, new = edit.old.split(), edit.new.split()
    if old[-1:] == new[-1:]:
        return len(old) != len(new) and set(old) <= set(new)
    names = {(_name(edit.old, known), _name(edit.new, known)), (edit.old, edit.new)}
    return any(
        (reword_each_other(*pair) or known.related(*pair, "NOUN")) and not known.nouns.exclusive(*pair)
        for pair in names
    )


def is_same_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two attributes may hold of the same thing, or two numbers count the same."""
    if edit.new in ARTICLES:
        return not _is_one(edit.old)  # where there are two dogs there is a dog
    old, new = ([word for word in words.split() if word != "of"] for words in (edit.old, edit.new))
    if len(old) != 1 or len(new) != 1:
        return reword_each_other(edit.old, edit.new)
    one, other = old[0], new[0]
    if _range(one) and _range(other):
        return same_count(one, other)
    if are_opposed(one, other):
        return False
    return share_class(one, other) or reword_each_other(one, other) or known.related(one, other, "ADJ")


def is_same_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether two relations may hold between the same two things."""
    old, new = plain_relation(edit.old), plain_relation(edit.new)
    if old == new or reworded(old, new, "relation", edit.after):
        return True
    if known.relations.analyse(old) and known.relations.analyse(new):
        return not known.relations.refutes(old, new, edit.before or UNKNOWN, edit.after)
    verbs = split_relation(old)[0], split_relation(new)[0]
    return all(verbs) and (verbs[0] == verbs[1] or known.related(*verbs, "VERB"))


def is_not_entailed(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether a positive is not known to be entailed by its caption."""
    old, new = plain_relation(edit.old), plain_relation(edit.new)
    if reworded(old, new, _POS[edit.target], edit.after):
        return False
    if edit.target == "relation":
        one, other = known.relations.analyse(old), known.relations.analyse(new)
        if one is None or other is None:
            return old != new
        follows = not (one.states & ~other.states).any()  # "on" from "sit on"
        return not (follows or known.relations.paraphrase(old, new, edit.after))
    if any(_contradict(one, other, edit, known) for one, other in product(old.split(), new.split())):
        return True
    keeps = _entails_object if edit.target == "object" else _entails_attribute
    return not keeps(edit, known)


def same_count(one: str, other: str) -> bool:
    """Return whether two number words may denote the same number: "couple" and "two", "several" and "four"."""
    first, second = _range(one), _range(other)
    return bool(first and second) and first[0] <= second[1] and second[0] <= first[1]


def count_differently(one: str, other: str) -> bool:
    """Return whether two number words never denote the same number: "a" and "two"."""
    return bool(_range(one) and _range(other)) and not same_count(one, other)


def _range_is_within(old: str, new: str) -> bool:
    """Return whether the range of a number word is within that of another: "two" and "couple"."""
    first, second = _range(old), _range(new)
    return bool(first and second) and second[0] <= first[0] and first[1] <= second[1]


def _range(word: str) -> tuple[int, ...]:
    """Return the range of a number word, (least, largest); empty for other words."""
    if word in _ONE:
        return (1, 1)
    return own_number_ranges().get(word) or (_SEVERAL if is_vague(word) else number_ranges().get(word) or ())


def _is_one(words: str) -> bool:
    return all(_range(word)[:1] == (1,) for word in words.split())


def _name(noun: str, known: Knowledge) -> str:
    return noun if known.nouns.is_known(noun) else noun.rpartition(" ")[2]


def _entails_object(edit: ProposedEdit, known: Knowledge) -> bool:
    """Return whether the old noun entails the new one, or one of them is unknown."""
    old, new = edit.old, edit.new
    names = {(_name(old, known), _name(new, known)), (old, new), (f"{old} {edit.after}", f"{new} {edit.after}")}
    if any(reworded(*pair, "noun") or _is_hyponym_in_captions(*pair, known) for pair in names):
        return True
    if not old or not new:
        return True
    heads = old.rpartition(" ")[2] == new.rpartition(" ")[2]
    return heads or not all(known.thesaurus.has(_name(noun, known), "NOUN") for noun in (old, new))


def _is_hyponym_in_captions(old: str, new: str, known: Knowledge) -> bool:
    """Return whether ``old`` is a hyponym of ``new`` in the sense that captions use, or a common synonym."""
    is_a = known.thesaurus.is_a
    if not is_a(old, new, "NOUN") or (old in ONE_SENSE and new not in known.thesaurus.hypernym_path(old, "NOUN")):
        return False
    return not is_a(new, old, "NOUN") or new in known.thesaurus.synonyms(old, "NOUN", _SENSES)


def _entails_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    one, other = ([word for word in words.split() if word not in _SMALL] for words in (edit.old, edit.new))
    changed = [[word for word in one if word not in other], [word for word in other if word not in one]]
    forms = [("-".join(edit.old.replace("-", " ").split()), "-".join(edit.new.replace("-", " ").split()))]
    if len(changed[0]) * len(changed[1]) == 1:  # a single word replaced by a single word
        forms.append((changed[0][0], changed[1][0]))
    return any(
        new in same_concept(old)
        or reworded(old, new, "adjective", edit.after)
        or _range_is_within(old, new)
        or known.thesaurus.is_a(old, new, "ADJ")
        or known.thesaurus.is_a(lemmatize(old, "VBN"), lemmatize(new, "VBN"), "VERB")
        for old, new in forms
    )


def _contradict(old: str, new: str, edit: ProposedEdit, known: Knowledge) -> bool:
    if _range(old) and _range(new):
        return not _range_is_within(old, new) or _is_one(new) is not _is_one(old)
    if reworded(old, new, _POS[edit.target], edit.after):
        return False
    antonyms = known.thesaurus.antonyms
    if edit.target == "object":
        narrower = known.thesaurus.is_a(new, old, "NOUN") and not known.thesaurus.is_a(old, new, "NOUN")
        return known.nouns.exclusive(old, new) or narrower or new in antonyms(old, "NOUN")
    return known.attributes.exclusive(old, new, edit.after) or new in antonyms(old, "ADJ")
