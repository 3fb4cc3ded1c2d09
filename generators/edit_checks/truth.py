"""What an edit says about the image: nothing new, something already said, or something else.

A negative must not merely reword its caption, nor say what other captions or boxes say; a positive must not say
anything else. Words decide, by WordNet and by our own tables, so this finds what words can tell: that "sofa" is a
couch, that another caption has the cat, that "not next to" needs eyes. It errs on the side of rejecting.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from pairwright.generators.captions.box_truth import is_vague, may_count, number_of, place_in_doubt
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.context import ImageWords, plural_of, words_of
from pairwright.generators.edit_checks.kinds import ATTRIBUTE, OBJECT, RELATION
from pairwright.generators.edit_checks.nearness import may_hold_together, near, reworded, same_forms, unlike
from pairwright.generators.edit_checks.senses import is_meant
from pairwright.generators.knowledge.names import Names
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.nouns import loosely_same
from pairwright.generators.words.attributes import PLACES, contrary, exclude_each_other, same_concept
from pairwright.generators.words.nouns import KINDS
from pairwright.generators.words.relations import INSTEAD_OF, RELATIONS
from pairwright.generators.words.synonyms import RELATIONS as REWORDED
from pairwright.generators.words.verbs import INSTEAD, same_act
from pairwright.generators.words.wordlists import word_set

_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_BOTH_WAYS: Final = frozenset(wording for each in RELATIONS if not each.strict for wording in each.wordings)
_IN_BETWEEN: Final = word_set("and or , a an the two three four some his her its their is are")
_NUMBERS: Final = (
    ("one", "1", "single", "a", "an"), ("two", "2", "couple", "pair"), ("three", "3", "trio"), ("four", "4"), ("five", "5"),
    ("six", "6"), ("seven", "7"), ("eight", "8"), ("nine", "9"), ("ten", "10"),
)  # fmt: skip
_AUXILIARIES: Final = frozenset({"be", "have"})
_SENSES: Final = 10  # of a noun, all that count
_A_FEW: Final = 2  # more than so many may be called several
_SMALL: Final = frozenset({"a", "of", "-"})  # "a pair of"
_NUMBER: Final = {word: words[0] for words in _NUMBERS for word in words}


@dataclass(frozen=True, slots=True)
class Reading:
    """An edit as the truth sees it.

    Attributes:
        target: object, attribute or relation.
        old: the words of the source that are gone, without articles.
        new: the words that stand for them.
        before: lemma of the last noun before the edit; empty where there is none.
        after: lemma of the first noun behind the edit; of an edited noun phrase, behind it.
    """

    target: str
    old: Sequence[Token]
    new: Sequence[Token]
    before: str
    after: str


class Truth:
    """Answers by tables.

    Args:
        thesaurus: WordNet.
        pool: statistics of the user's captions.
    """

    def __init__(self, thesaurus: Thesaurus, pool: Pool) -> None:
        self._thesaurus = thesaurus
        self._names = Names(pool, thesaurus, Things(thesaurus))

    def of_negative(self, reading: Reading, caption: Caption) -> str:
        """Return why the edit makes no negative, or an empty string."""
        if reading.old and self._rewords(reading):
            return "same_meaning"
        return "true_of_image" if self._is_said(reading, caption) else ""

    def of_positive(self, reading: Reading) -> str:
        """Return why the edit makes no positive, or an empty string."""
        if self._rewords_surely(reading):
            return ""
        pairs = product(_lemmas(reading.old), _lemmas(reading.new))
        if any(self._differ(old, new, reading.target) for old, new in pairs):
            return "may_be_false"
        old, new = _wording(reading.old), _wording(reading.new)
        if new in INSTEAD_OF.get(old, ()) or _are_places_apart(old, new):
            return "may_be_false"
        return "" if self._keeps_its_meaning(reading) else "may_be_false"

    def _keeps_its_meaning(self, reading: Reading) -> bool:
        """Whether what the new words say follows from the old ones, as far as it is known of them."""
        if reading.target == RELATION:
            return self._rewords(reading)
        if reading.target == OBJECT:
            return not self._knows_both(reading) or self._is_reworded(reading)
        one, other = ([lemma for lemma in _lemmas(each) if lemma not in _SMALL] for each in (reading.old, reading.new))
        shared = {*one} & {*other}
        forms = [(_hyphened(reading.old), _hyphened(reading.new))]
        forms += product(
            [lemma for lemma in one if lemma not in shared], [lemma for lemma in other if lemma not in shared]
        )
        if len(forms) > 2:  # more words than one for one
            forms = forms[:1]
        return any(
            other in same_concept(one)
            or reworded(one, other)
            or same_count(one, other)
            or any(self._thesaurus.is_a(one, other, pos) for pos in ("ADJ", "VERB"))
            for one, other in forms
        )

    def _is_reworded(self, reading: Reading) -> bool:
        old, new = _nouns(reading.old), _nouns(reading.new)
        names = [(self._name(old), self._name(new)), (_compound(old), _compound(new))]
        whole = _compound(reading.old), _compound(reading.new)
        names += [whole, (f"{whole[0]} {reading.after}", f"{whole[1]} {reading.after}")]  # "railway | station"
        return any(reworded(*pair) or self._is_meant(*pair) for pair in names)

    def _is_meant(self, old: str, new: str) -> bool:
        """Whether ``old`` is a kind of ``new`` in the sense that captions mean; synonyms have to be usual ones."""
        if not self._thesaurus.is_a(old, new, "NOUN") or not is_meant(old, new, self._thesaurus):
            return False
        return not self._thesaurus.is_a(new, old, "NOUN") or new in self._thesaurus.synonyms(old, "NOUN", _SENSES)

    def _knows_both(self, reading: Reading) -> bool:
        """Whether one thing is exchanged for another, both of which the dictionary has: if not near, they are two."""
        old, new = _nouns(reading.old), _nouns(reading.new)
        names = [self._name(nouns) for nouns in (old, new) if nouns]
        both = len(names) > 1 and all(self._thesaurus.has(name, "NOUN") for name in names)
        return both and old[-1].lemma != new[-1].lemma

    def _rewords(self, reading: Reading) -> bool:
        """Whether the new words may be said of what the old ones are said of."""
        old, new = _wording(reading.old), _wording(reading.new)
        if reading.target == RELATION and (
            _same_relation(old, new)
            or _same_deed(reading.old, reading.new)
            or may_hold_together(_deed(reading.old), _deed(reading.new))
        ):
            return True
        if reading.target == OBJECT:
            return self._same_thing(_nouns(reading.old), _nouns(reading.new))
        one, other = ([lemma for lemma in _lemmas(each) if lemma != "of"] for each in (reading.old, reading.new))
        if not other:
            return True  # an article: where there are two dogs there is a dog
        if len(one) != 1 or len(other) != 1:
            return near(old, new)
        return self._same_word(one[0], other[0], "VERB" if reading.target == RELATION else "ADJ")

    def _same_word(self, one: str, other: str, pos: str) -> bool:
        places = {place.group for place in PLACES.get(one, ())} & {place.group for place in PLACES.get(other, ())}
        return (
            near(one, other)
            or other in same_concept(one)
            or (bool(places) and not unlike(one, other))
            or same_count(one, other)
            or (pos == "VERB" and same_act(one, other))
            or self._thesaurus.related(one, other, pos)
        )

    def _same_thing(self, old: Sequence[Token], new: Sequence[Token]) -> bool:
        if not old or not new:
            return False
        heads = old[-1].lemma, new[-1].lemma
        if heads[0] == heads[1]:
            return len(old) != len(new) and {t.lemma for t in old} <= {t.lemma for t in new}  # a kind of it
        one, other = self._name(old), self._name(new)
        return any(
            near(a, b) or self._thesaurus.related(a, b, "NOUN")
            for a, b in {(one, other), (_compound(old), _compound(new))}
        )

    def _name(self, nouns: Sequence[Token]) -> str:
        """Return the compound where it is a word of its own ("dining room"), else its head."""
        compound = _compound(nouns)
        return compound if compound in KINDS or self._thesaurus.has(compound, "NOUN") else nouns[-1].lemma

    def _is_said(self, reading: Reading, caption: Caption) -> bool:
        words = caption.words
        if reading.target == OBJECT:
            old, nouns = _compound(_nouns(reading.old)), _nouns(reading.new)
            if not nouns or (old and old.rpartition(" ")[2] == nouns[-1].lemma):
                return bool(nouns) and words.has(_compound(nouns))
            return self._is_mentioned(_compound(nouns), old, caption)
        if reading.target == ATTRIBUTE:
            noun = reading.after or reading.before
            said = [token.text.lower() for token in reading.new]
            counted = max((number_of(token.text.lower()) for token in reading.old), default=0)
            return bool(noun) and any(
                words.said_with(name, word, elsewhere=bool(reading.old)) or may_count(words, noun, word, counted)
                for word in said
                for name in loosely_same(noun)
            )
        if place_in_doubt(words, reading.before, _wording(reading.new), reading.after):
            return True
        return any(_relates(line, reading) for line in words.others)

    def _is_mentioned(self, new: str, old: str, caption: Caption) -> bool:
        """Whether the image is said to have the new thing.

        Boxes and other captions may name it by a looser word than the caption itself, beside which it is written.
        """
        wide = loosely_same(new) | loosely_same(new.rpartition(" ")[2])
        names = self._names.of(new) - wide - {plural_of(word) for word in wide} | same_forms(new)
        if old:
            names -= same_forms(old)
        own = f" {' '.join(caption.words.own)} "
        if any(name in caption.words.own if " " not in name else f" {name} " in own for name in names):
            return True
        if not caption.words.others and not caption.words.labels and not caption.words.crowds:
            return False
        others = ImageWords.of(replace(caption.pair, caption=""))
        # What others call it literally is said, also where they may mean the old thing by it.
        return others.has(new) or others.has(plural_of(new)) or self._names.is_said(new, old, others)

    def _rewords_surely(self, reading: Reading) -> bool:
        old, new = _wording(reading.old), _wording(reading.new)
        if _same_relation(old, new) or reworded(old, new):
            return True
        nouns = _nouns(reading.old), _nouns(reading.new)
        return all(nouns) and reworded(_compound(nouns[0]), _compound(nouns[1]))

    def _differ(self, old: str, new: str, target: str) -> bool:
        """Whether two words say different things of one thing."""
        if _other_count(old, new):
            return True
        if _NUMBER.get(old, old) == _NUMBER.get(new, new) or reworded(old, new):
            return False
        if target != OBJECT and (new in INSTEAD.get(old, ()) or new in self._thesaurus.antonyms(old, "VERB")):
            return True
        if target == RELATION:
            return False
        if target == ATTRIBUTE:
            return exclude_each_other(old, new) or new in contrary(old) or new in self._thesaurus.antonyms(old, "ADJ")
        narrower = self._thesaurus.is_a(new, old, "NOUN") and not self._thesaurus.is_a(old, new, "NOUN")
        return new in KINDS.get(old, ()) or narrower or new in self._thesaurus.antonyms(old, "NOUN")


def same_count(one: str, other: str) -> bool:
    """Whether two words may count the same: "couple" and "two", "several" and "four"."""
    if one in _NUMBER and _NUMBER[one] == _NUMBER.get(other):
        return True
    vague = is_vague(one), is_vague(other)
    return any(vague) and (all(vague) or max(number_of(one), number_of(other)) > _A_FEW)


def _other_count(one: str, other: str) -> bool:
    """Whether two words count differently: "two" and "four", "several" and "two"."""
    numbers = _NUMBER.get(one), _NUMBER.get(other)
    if all(numbers):
        return numbers[0] != numbers[1]
    vague = is_vague(one) and number_of(other), is_vague(other) and number_of(one)
    return any(vague) and not same_count(one, other)


def says_the_same(between: Sequence[Token]) -> bool:
    """Whether two things around these words may change places and the text is as true as before: "and", "near"."""
    words = [token.text.lower() for token in between]
    wording = " ".join(word for word in words if word not in _IN_BETWEEN - {"and", "or"})
    return wording in _BOTH_WAYS or all(word in _IN_BETWEEN for word in words)


def joins_with_and(between: Sequence[Token]) -> bool:
    """Whether nothing but "and", commas and articles stand between two stretches."""
    words = [token.text.lower() for token in between]
    return bool({"and", "or"}.intersection(words)) and all(word in _IN_BETWEEN for word in words)


def _same_relation(old: str, new: str) -> bool:
    return any(old in r.wordings and new in r.wordings for r in RELATIONS) or (
        new in REWORDED.get(old, ()) or old in REWORDED.get(new, ())
    )


def _are_places_apart(old: str, new: str) -> bool:
    """Whether two wordings name two relations that hold one way only: "above" and "on"."""
    one, other = ({each.name for each in RELATIONS if each.strict and said in each.wordings} for said in (old, new))
    return bool(one and other) and one.isdisjoint(other)


def _same_deed(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Whether two stretches are one verb in other forms: "rides", "is riding" and "rode"."""
    return bool(_deed(old)) and _deed(old) == _deed(new)


def _deed(tokens: Sequence[Token]) -> str:
    """Return a relation by its lemmas, without "is" and "has"."""
    return " ".join(lemma for lemma in _lemmas(tokens) if lemma not in _AUXILIARIES)


def _relates(line: Sequence[str], reading: Reading) -> bool:
    """Whether a caption has the new relation between the same two things."""
    if not reading.before or not reading.after:
        return False
    relation = words_of(_wording(reading.new))
    first, second = _forms(reading.before), _forms(reading.after)
    for at in range(len(line) - len(relation) + 1):
        if tuple(line[at : at + len(relation)]) == relation:
            return not first.isdisjoint(line[:at]) and not second.isdisjoint(line[at + len(relation) :][:5])
    return False


def _forms(noun: str) -> frozenset[str]:
    said_as = loosely_same(noun)
    return said_as | {plural_of(word) for word in said_as}


def _lemmas(tokens: Sequence[Token]) -> list[str]:
    return [token.lemma for token in tokens]


def _wording(tokens: Sequence[Token]) -> str:
    return " ".join(token.text.lower() for token in tokens)


def _hyphened(tokens: Sequence[Token]) -> str:
    """Return words as one: "snow covered" is "snow-covered"."""
    return "-".join(token.text.lower() for token in tokens if token.text != "-")


def _nouns(tokens: Sequence[Token]) -> list[Token]:
    """Return the nouns of the first noun phrase, up to "of"."""
    found: list[Token] = []
    for token in tokens:
        if token.tag in _NOUNS:
            found.append(token)
        elif found:
            break
    return found


def _compound(nouns: Sequence[Token]) -> str:
    return " ".join([*(token.text.lower() for token in nouns[:-1]), *(token.lemma for token in nouns[-1:])])
