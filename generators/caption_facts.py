"""What the captions of an image prove, read off their words.

All captions are read, without a tagger (tagging them would cost far more than all the rest): by lists of nouns, small
words and a few patterns, each of which has to fit word by word. So much is missed, and what is found is plain:

- *doing*: "a man riding a horse", of one person or animal, or of several of a kind;
- *where*: "a laptop on a wooden desk", of a thing that there is one of;
- *setting*: "in a kitchen", where the captions name one such place;
- *material*: "a wooden table", likewise;
- *colour*: "a red car", of a thing that there is one of and that no caption gives another colour;
- *number*: "two zebras", where nothing says otherwise;
- *there*: nouns with an article before them.

Captions that speak of what is not there, or of likenesses ("no", "without", "looks like", "statue"), are left aside.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pairwright.datasets.records import Pair
from pairwright.generators import questions
from pairwright.generators.attributes import COLOUR, MATERIAL, NEIGHBOURS
from pairwright.generators.context import ImageWords, loosely_same, plural_of
from pairwright.generators.facts import Fact, names
from pairwright.generators.label_sets import COCO
from pairwright.generators.language.inflection import inflect
from pairwright.generators.nouns import ADDABLE, FRAMES, KINDS, MASS, OF_PEOPLE, PLURAL_ONLY, WORN
from pairwright.generators.phrases import NUMBER_WORDS
from pairwright.generators.wordlists import word_set

MOST_THERE = 4
MOST_WORDS = 14  # of what somebody does

_CLAUSE = re.compile(r"[.,;:!?()\"]|\s-\s")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_UNSURE = word_set(
    "no not without like toy toys statue statues painting paintings sculpture fake model models stuffed poster cartoon "
    "shaped reflection reflections mirror sign signs logo nothing none isn't aren't if or maybe appears seems looks"
)
_ARTICLES = word_set("a an one the")
_SMALL = word_set(
    "a an one the on in at of with and or to by near under behind beside next from into onto over above below inside "
    "for while as that which is are was has have two three four five six seven eight nine ten some several many his her "
    "its their up down off through across along around between against top front who"
)
_STOPS = word_set(
    "is are was were while as that which who but so because whilst stands sits looks walks holds rides poses plays waits eats runs talks "
    "watches smiles glances glance gets has does goes takes makes lies leans jumps flies rests moves"
)
_PLACES = ("on top of", "in front of", "next to", "on", "in", "under", "behind", "beside", "near", "inside", "beneath")
_DETERMINED = word_set("a an the his her its their some two three")
_LYING = word_set("sitting lying laying standing parked hanging placed resting sits stands lies mounted")
_NO_DOING = word_set(
    "being having looking evening morning during building ceiling clothing wedding king railing string wing ring "
    "something anything nothing everything dining living trying going getting using beginning including remaining"
)
_DEEDS = word_set(
    "stand sit ride hold walk play eat run jump lie wear carry watch fly surf ski swim graze wait pose drink sleep lean "
    "look pull push throw smile"
)
_SOMETHING_ELSE = word_set("it them him her other others one this that these those same")
_NO_PLACES = word_set("shape outfit style form phone cellphone telephone cell mood way pose line position")
_ACTING = word_set(
    "wearing holding riding eating carrying pulling pushing throwing catching reading watching flying cutting drinking "
    "pouring brushing feeding walking chasing hitting kicking crossing"
)
_SETTINGS = word_set(
    "kitchen bathroom bedroom office restaurant park beach zoo airport field forest museum market harbor garage "
    "classroom library hallway garden desert stadium bakery cafe store farm gym barn"
)
_SETTINGS |= {"living room", "dining room", "parking lot", "train station", "tennis court", "baseball field"}
_AT_SETTING = word_set("in at inside on")
_COLOURS = {word: concept for concept, words in COLOUR.items() for word in words if concept != "blond"}
_CONCEPTS = tuple(concept for concept in COLOUR if concept != "blond")
_MATERIALS = {
    word: concept
    for concept in ("wood", "metal", "brick", "stone", "glass", "leather", "plastic", "concrete")
    for word in MATERIAL[concept]
}
_NUMBERS = {word: number for number, word in enumerate(NUMBER_WORDS[1:9], 2)}
_ANIMALS = word_set(
    "dog cat horse cow sheep elephant giraffe zebra bear bird goat pig puppy kitten monkey duck deer rabbit camel lion "
    "tiger panda seagull pony calf lamb"
)
_DOERS = (OF_PEOPLE - word_set("male female people adult fan friend")) | _ANIMALS
_THINGS = frozenset(
    noun
    for noun in {*KINDS, *(other for others in KINDS.values() for other in others), *ADDABLE, *COCO, *_DOERS}
    if noun not in FRAMES | MASS | PLURAL_ONLY | word_set("home city produce luggage hill snow eye mouth nose paw tail")
)
_NAMED = _THINGS - OF_PEOPLE - _ANIMALS - _SETTINGS - _COLOURS.keys()
_KNOWN = _THINGS | _DOERS | _SETTINGS
_PLURALS = {plural_of(noun): noun for noun in sorted(_THINGS) if plural_of(noun) not in _THINGS}
_PLURALS |= {"people": "person"}


@dataclass(frozen=True)
class CaptionFacts:
    """What can be asked about the captions of a pair; ``words`` are those of the pair."""

    pair: Pair
    words: ImageWords

    @cached_property
    def _clauses(self) -> tuple[tuple[str, ...], ...]:
        """The clauses of all sure captions, words as written."""
        captions = dict.fromkeys((self.pair.caption, *self.pair.captions))
        found = []
        for caption in captions:
            if _UNSURE.isdisjoint(_WORD.findall(caption.lower())):
                found += [tuple(_WORD.findall(part)) for part in _CLAUSE.split(caption)]
        return tuple(clause for clause in found if len(clause) > 1)

    @cached_property
    def _lower(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(word.lower() for word in clause) for clause in self._clauses)

    def is_one(self, noun: str) -> bool:
        """Whether there is one of it, as far as boxes and captions tell."""
        if noun in OF_PEOPLE and self.words.labels.get("person", 0) > 1:
            return False
        names_of_it = loosely_same(noun) if noun not in OF_PEOPLE else {noun}
        return not any(self.words.several(name) or name in self.words.crowds for name in names_of_it)

    @cached_property
    def _nouns(self) -> tuple[tuple[tuple[str, int, int], ...], ...]:
        """The known nouns of each clause, as `_nouns_in` gives them."""
        return tuple(tuple(_nouns_in(lower)) for lower in self._lower)

    def _found(self, known: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
        """Yield (number of the clause, noun, start, end) of each noun that is among ``known``."""
        for at, nouns in enumerate(self._nouns):
            yield from ((at, noun, start, end) for noun, start, end in nouns if noun in known)

    def _speaks_of_one(self, noun: str) -> bool:
        return any(
            " ".join(self._lower[at][start:end]) == noun and _article_before(self._lower[at], start)
            for at, _, start, end in self._found(frozenset((noun,)))
        )

    def _boxes(self, noun: str) -> int:
        return self.words.labels.get("person" if noun in OF_PEOPLE else noun, 0)

    def doing(self) -> list[Fact]:
        """Return what persons and animals do, each question once."""
        facts: dict[tuple[str, str], Fact] = {}
        for number, noun, start, end in self._found(_DOERS):
            clause, lower = self._clauses[number], self._lower[number]
            fact = self._deed(noun, lower, clause, start, end)
            if fact is not None:
                action = fact.fields["action"] if fact.wordings is questions.ACTING else ""
                _add(facts, fact, action)
        return list(facts.values())

    def _deed(self, noun: str, lower: Sequence[str], clause: Sequence[str], start: int, end: int) -> Fact | None:
        several = lower[start:end] != tuple(noun.split())
        at = end + (lower[end : end + 1] in {("is",), ("are",)})
        action = _action(lower[at] if at < len(lower) else "", several=several and at == end, alone=at == end)
        if not action:
            return None
        if several and (self._speaks_of_one(noun) or self._boxes(noun) == 1):
            return None
        if not several and not (_article_before(lower, start) and self.is_one(noun)):
            return None
        rest = _rest(clause[at + 1 :], _DOERS)
        if rest is None or len(rest) > MOST_WORDS or (not several and {"each", "together", "other"} & set(rest)):
            return None
        fields = {"noun": " ".join(lower[start:end]), "verb": "are" if several else "is", "action": action}
        fields["rest"] = "".join(f" {word}" for word in rest)
        acting = action in _ACTING and bool(rest) and rest[0].lower() in _DETERMINED
        return Fact(questions.ACTING if acting else questions.DOING, questions.DOES, fields, about=(noun,))

    def where(self) -> list[Fact]:
        """Return where single things are."""
        facts: dict[str, Fact] = {}
        for number, noun, start, end in self._found(_THINGS):
            clause, lower = self._clauses[number], self._lower[number]
            if noun in facts or " ".join(lower[start:end]) != noun or not _begins(lower, start):
                continue
            at = end + (lower[end : end + 1] == ("is",))
            at += at < len(lower) and lower[at] in _LYING and noun not in _DOERS
            place = next((p for p in _PLACES if lower[at : at + len(p.split())] == tuple(p.split())), "")
            beyond = at + len(place.split())
            if not place or lower[beyond : beyond + 1] == () or lower[beyond] not in _DETERMINED - {"its", "their"}:
                continue
            rest = _rest(clause[beyond:], frozenset(), ands=False)
            if rest and 1 < len(rest) <= MOST_WORDS and _is_place(rest) and self.is_one(noun):
                fields = {"noun": noun, "place": f"{place} {' '.join(rest)}"}
                facts[noun] = Fact(questions.WHERE_IS, questions.IS_WHERE, fields, about=(noun,))
        return list(facts.values())

    def setting(self) -> list[Fact]:
        """Return the place of the scene, when the captions name one."""
        found: dict[str, str] = {}
        for at, place, start, end in self._found(_SETTINGS):
            lower = self._lower[at]
            before = lower[start - 2 : start] if start > 1 else ()
            if len(before) == 2 and before[0] in _AT_SETTING and before[1] in {"a", "an", "the"}:
                found.setdefault(place, " ".join((*before, *lower[start:end])))
        if len(found) != 1:
            return []
        [(place, said)] = found.items()
        others = (name for name in _SETTINGS if name != place and self.words.has(name))
        if any(name not in place and place not in name for name in others):
            return []
        return [Fact(questions.SETTING, questions.TAKES_PLACE, {"place": said}, about=(place,))]

    def colours(self) -> list[Fact]:
        """Return the colours of single things."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(_THINGS):
            lower = self._lower[at]
            colour = lower[start - 1] if start > 1 else ""
            if colour not in _COLOURS or lower[start - 2] not in _ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            if self.is_one(noun) and not self.words.other_colour(noun, colour):
                _add(facts, colour_fact(noun, colour))
        return list(facts.values())

    def materials(self) -> list[Fact]:
        """Return what single things are made of."""
        facts: dict[tuple[str, str], Fact] = {}
        for at, noun, start, end in self._found(_THINGS - _DOERS):
            lower = self._lower[at]
            material = _MATERIALS.get(lower[start - 1], "") if start > 1 else ""
            if not material or lower[start - 2] not in _ARTICLES or " ".join(lower[start:end]) != noun:
                continue
            others = (word for word, other in _MATERIALS.items() if other != material)
            if self.is_one(noun) and not any(self.words.said_with(noun, word) for word in others):
                fields = {"noun": noun, "material": material}
                _add(facts, Fact(questions.MADE_OF, questions.IS_MADE_OF, fields, short="{material}", about=(noun,)))
        return list(facts.values())

    def numbers(self, boxes: Mapping[str, int]) -> list[Fact]:
        """Return how many there are of things that are without boxes, or have as many; at least two.

        Args:
            boxes: label -> number of boxes; -1 where there is a crowd.
        """
        facts: dict[str, Fact] = {}
        for at, noun, start, end in self._found(_THINGS):
            lower = self._lower[at]
            number = _NUMBERS.get(lower[start - 1], 0) if start else 0
            if not number or " ".join(lower[start:end]) == noun or boxes.get(noun, number) != number:
                continue
            if noun in OF_PEOPLE and 0 < self._boxes(noun) < number:
                continue
            if self.words.is_number(noun, number) and not self._speaks_of_one(noun):
                facts.setdefault(noun, count_fact(noun, number))
        return list(facts.values())

    def there(self) -> list[Fact]:
        """Return a few single things that captions name and no box has."""
        facts: dict[str, Fact] = {}
        marked = {word for label in self.words.labels for word in label.split()}
        for at, noun, start, end in self._found(_NAMED):
            lower = self._lower[at]
            same = loosely_same(noun) | set(noun.split())
            if same.intersection(self.words.labels) or noun in marked or not same.isdisjoint(facts):
                continue
            if " ".join(lower[start:end]) == noun and _article_before(lower, start) and _ends(lower, end):
                fields = names(noun)
                facts[noun] = Fact(
                    questions.IS_THERE_ONE, questions.YES_ONE, fields, "yes", about=(noun,), presence=True
                )
        return list(facts.values())[:MOST_THERE]


def colour_fact(noun: str, colour: str) -> Fact:
    """Return the question of a colour; its wrong options are no neighbours of the right one."""
    concept = _COLOURS[colour]
    wrong = tuple(each for each in _CONCEPTS if each != concept and frozenset((each, concept)) not in NEIGHBOURS)
    fields = {"noun": noun, "colour": colour}
    return Fact(questions.WHAT_COLOUR, questions.COLOUR, fields, short="{colour}", wrong=wrong, about=(noun,))


def count_fact(label: str, number: int) -> Fact:
    """Return the question of a number, 0 to 9; its wrong options are other numbers near it."""
    answer = (questions.COUNT_NONE, questions.COUNT_ONE, questions.COUNT_MANY)[min(number, 2)]
    # Of small numbers the options are the same whichever is right; of others, the right one may stand anywhere.
    near = range(4) if number < 4 else range(number - 2, number + 3)
    wrong = tuple(str(other) for other in near if other != number)
    return Fact(questions.HOW_MANY, answer, names(label, number), short="{number}", wrong=wrong, about=(label,))


def _add(facts: dict[tuple[str, str], Fact], fact: Fact, matter: str = "") -> None:
    """Add a fact, unless the same is known of what is called the same ("couch", "sofa")."""
    [noun] = fact.about
    same = loosely_same(noun)
    if not any(other in same and asked == matter for other, asked in facts):
        facts[noun, matter] = fact


def _nouns_in(lower: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield known nouns with their place, two words before one; of plurals the singular is given."""
    at = 0
    while at < len(lower):
        if at + 1 < len(lower):
            said = f"{lower[at]} {lower[at + 1]}"
            noun = said if said in _KNOWN else _PLURALS.get(said, "")
            if noun:
                yield noun, at, at + 2
                at += 2
                continue
        noun = lower[at] if lower[at] in _KNOWN else _PLURALS.get(lower[at], "")
        if noun and not _is_part(lower, at):
            yield noun, at, at + 1
        at += 1


def _is_part(lower: Sequence[str], at: int) -> bool:
    """Whether another noun follows, so that this one only says what kind it is ("a dog house", "an orange star")."""
    return at + 1 < len(lower) and (lower[at + 1] in _THINGS or lower[at + 1] in _PLURALS)


def _article_before(lower: Sequence[str], start: int) -> bool:
    """Whether an article stands before a noun, with at most two words between, none of them small."""
    for back in range(1, 4):
        if start - back < 0:
            return False
        word = lower[start - back]
        if word in _ARTICLES:
            return True
        if word in _SMALL:
            return False
    return False


@lru_cache(maxsize=4096)
def _action(word: str, *, several: bool, alone: bool) -> str:
    """Return what a verb says that somebody is doing: of "riding", "rides", and with several "ride", "riding"."""
    if word.endswith("ing"):
        return word if word not in _NO_DOING and len(word) > 4 else ""
    if several:
        return inflect(word, "VBG") if word in _DEEDS else ""
    deed = next((deed for deed in _DEEDS if alone and word == inflect(deed, "VBZ")), "")
    return inflect(deed, "VBG") if deed else ""


def _begins(lower: Sequence[str], start: int) -> bool:
    """Whether a noun with its article begins the clause, so that what follows is said of it and of nothing before."""
    opening = 2 if lower[:1] == ("there",) else 0
    return opening < start <= opening + 3 and lower[opening] in _ARTICLES and _article_before(lower, start)


@lru_cache(maxsize=20_000)
def _goes_on(word: str) -> bool:
    return word in _SMALL or word.endswith("ing")


def _ends(lower: Sequence[str], end: int) -> bool:
    return end == len(lower) or _goes_on(lower[end])


def _rest(words: Sequence[str], doers: frozenset[str], *, ands: bool = True) -> list[str] | None:
    """Return the words that belong to what came before; None where that is not clear."""
    rest: list[str] = []
    for at, word in enumerate(words):
        lower = word.lower()
        if lower in _STOPS:
            break
        if lower == "and":
            after = [each.lower() for each in words[at + 1 :]]
            if not ands or any(each in doers or each in _PLURALS or each.endswith("ing") for each in after):
                break
        rest.append(word)
    return None if rest and rest[-1].lower() in (_SMALL - {"up", "down", "off"}) | _SOMETHING_ELSE else rest


def _is_place(rest: Sequence[str]) -> bool:
    """Whether the phrase at the start names a place, rather than clothes, a form or a telephone."""
    nouns = {word.lower() for word in rest[1:4]}
    return nouns.isdisjoint(WORN) and nouns.isdisjoint(_NO_PLACES) and rest[-1].lower() not in _COLOURS
