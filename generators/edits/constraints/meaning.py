"""Whether new words mean the same as the old ones: no negative may, every positive must.

The two questions are not opposites. A negative is rejected if the new word may be said of the same thing; a positive if
the new word is not known to say the same. In between lies what words alone cannot tell.
"""

from itertools import product
from typing import Final

from pairwright.generators.captions.box_truth import is_vague, number_of
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.lexical import (
    GENERAL,
    SENSES,
    are_other_acts,
    deed,
    may_hold_together,
    reworded,
    same_act,
    same_relation,
)
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.lexicon.attributes import concepts, same_concept
from pairwright.generators.lexicon.relations import load_relations

_ARTICLES: Final = frozenset({"a", "an"})
_SMALL: Final = frozenset({"a", "of", "-"})  # "a pair of"
_A_FEW: Final = 2  # more than so many may be called several
_SENSES: Final = 10  # of a noun, all that count


def is_same_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a noun may name what another names: a synonym, a kind of it, or what captioners call it."""
    old, new = edit.old.split(), edit.new.split()
    if old[-1] == new[-1]:
        return len(old) != len(new) and set(old) <= set(new)
    names = {(_name(edit.old, known), _name(edit.new, known)), (edit.old, edit.new)}
    return any(not known.nouns.exclusive(*pair) or known.related(*pair, "NOUN") for pair in names)


def is_general_noun(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether one noun names the sort of thing that the other is ("a room", "a kitchen")."""
    del known
    return edit.new in GENERAL.get(edit.old, ()) or edit.old in GENERAL.get(edit.new, ())


def is_same_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether an attribute may hold of what another holds of, or counts the same."""
    if edit.new in _ARTICLES:
        return not _is_one(edit.old)  # where there are two dogs there is a dog
    old, new = _content(edit.old), _content(edit.new)
    if len(old) != 1 or len(new) != 1:
        return reworded(edit.old, edit.new)
    one, other = old[0], new[0]
    classes = [{group for group, _ in concepts().get(word, ())} for word in (one, other)]
    return (
        reworded(one, other)
        or other in same_concept(one)
        or (not classes[0].isdisjoint(classes[1]) and not known.unlike(one, other, edit.after))
        or same_count(one, other)
        or known.related(one, other, "ADJ")
    )


def is_same_relation(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a relation may hold between the same two things as another."""
    old, new = deed(edit.old), deed(edit.new)
    if same_relation(edit.old, edit.new) or old == new or may_hold_together(old, new):
        return True
    return " " not in old + new and (same_act(old, new) or known.related(old, new, "VERB"))


def is_no_rewording(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a positive says, or may say, something else than its caption."""
    old, new = edit.old, edit.new
    if same_relation(old, new) or reworded(old, new):
        return False
    if any(_differ(one, other, edit, known) for one, other in product(old.split(), new.split())):
        return True
    if edit.target == "relation":
        return load_relations().exclusive(old, new, edit.before, edit.after) or not is_same_relation(edit, known)
    keeps = _keeps_thing if edit.target == "object" else _keeps_attribute
    return not keeps(edit, known)


def same_count(one: str, other: str) -> bool:
    """Whether two words may count the same: "couple" and "two", "several" and "four"."""
    numbers = _number(one), _number(other)
    if numbers[0] and numbers[0] == numbers[1]:
        return True
    vague = is_vague(one), is_vague(other)
    return any(vague) and (all(vague) or max(numbers) > _A_FEW)


def _number(word: str) -> int:
    return 1 if word in _ARTICLES else number_of(word)


def _is_one(words: str) -> bool:
    return all(_number(word) == 1 for word in words.split())


def _content(words: str) -> list[str]:
    return [word for word in words.split() if word != "of"]


def _name(noun: str, known: Knowledge) -> str:
    return noun if known.has_name(noun) else noun.rpartition(" ")[2]


def _keeps_thing(edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether a noun is another name for the thing, or one of them is unknown."""
    old, new = edit.old, edit.new
    names = {(_name(old, known), _name(new, known)), (old, new), (f"{old} {edit.after}", f"{new} {edit.after}")}
    if any(reworded(*pair) or _is_meant(*pair, known) for pair in names):
        return True
    if not old or not new:
        return True
    heads = old.rpartition(" ")[2] == new.rpartition(" ")[2]
    return heads or not all(known.thesaurus.has(_name(noun, known), "NOUN") for noun in (old, new))


def _is_meant(old: str, new: str, known: Knowledge) -> bool:
    """Whether ``old`` is a kind of ``new`` in the sense that captions mean; synonyms have to be usual ones."""
    is_a, sense = known.thesaurus.is_a, SENSES.get(old)
    if not is_a(old, new, "NOUN") or not (sense is None or is_a(sense, new, "NOUN") or is_a(new, sense, "NOUN")):
        return False
    return not is_a(new, old, "NOUN") or new in known.thesaurus.synonyms(old, "NOUN", _SENSES)


def _keeps_attribute(edit: ProposedEdit, known: Knowledge) -> bool:
    one, other = ([word for word in words.split() if word not in _SMALL] for words in (edit.old, edit.new))
    changed = [[word for word in one if word not in other], [word for word in other if word not in one]]
    forms = [("-".join(edit.old.replace("-", " ").split()), "-".join(edit.new.replace("-", " ").split()))]
    if len(changed[0]) * len(changed[1]) == 1:  # more words than one for one say something else
        forms.append((changed[0][0], changed[1][0]))
    return any(
        new in same_concept(old)
        or reworded(old, new)
        or same_count(old, new)
        or known.thesaurus.is_a(old, new, "ADJ")
        or known.thesaurus.is_a(lemmatize(old, "VBN"), lemmatize(new, "VBN"), "VERB")
        for old, new in forms
    )


def _differ(old: str, new: str, edit: ProposedEdit, known: Knowledge) -> bool:
    """Whether two words say different things of one thing."""
    if _other_count(old, new):
        return True
    if (_number(old) and _number(old) == _number(new)) or reworded(old, new):
        return False
    antonyms = known.thesaurus.antonyms
    if edit.target == "object":
        narrower = known.thesaurus.is_a(new, old, "NOUN") and not known.thesaurus.is_a(old, new, "NOUN")
        return narrower or new in antonyms(old, "NOUN")
    if edit.target == "attribute":
        return known.unlike(old, new, edit.after) or new in antonyms(old, "ADJ")
    return are_other_acts(old, new) or new in antonyms(old, "VERB")


def _other_count(one: str, other: str) -> bool:
    """Whether two words count differently: "two" and "four", "several" and "two"."""
    numbers = _number(one), _number(other)
    if all(numbers):
        return numbers[0] != numbers[1]
    vague = (is_vague(one) and numbers[1]) or (is_vague(other) and numbers[0])
    return bool(vague) and not same_count(one, other)
